//! Locks on files that the kernel lets go of when we end, however that comes.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// For so long a lock may outlive a process that was killed: a program that it was just starting shares the open file, and with it
/// the lock, until its exec. On a machine whose CPUs are all taken that is not at once.
const LAST_MOMENTS: Duration = Duration::from_secs(2);

/// A locked file. Dropping it unlocks the file.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks for ourselves alone. `None` when someone else holds it and still does after a moment.
    ///
    /// # Errors
    /// The file system knows no locks.
    pub fn exclusive(file: File) -> io::Result<Option<FileLock>> {
        let deadline = Instant::now() + LAST_MOMENTS;
        while !taken(&file, FlockOperation::NonBlockingLockExclusive)? {
            if Instant::now() > deadline {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(FileLock(file)))
    }

    /// As [`FileLock::exclusive`], without waiting.
    pub(crate) fn exclusive_at_once(file: File) -> io::Result<Option<FileLock>> {
        Ok(taken(&file, FlockOperation::NonBlockingLockExclusive)?.then_some(FileLock(file)))
    }

    /// Locks together with others who only read. `None` when someone holds it exclusively.
    pub(crate) fn shared_at_once(file: File) -> io::Result<Option<FileLock>> {
        Ok(taken(&file, FlockOperation::NonBlockingLockShared)?.then_some(FileLock(file)))
    }
}

fn taken(file: &File, operation: FlockOperation) -> io::Result<bool> {
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being started shares the open file until its exec.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_a_killed_process_left_is_waited_for_and_what_lasts_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let open = || {
            File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .expect("it")
        };
        let held = FileLock::exclusive(open()).expect("locks").expect("free");
        assert!(FileLock::exclusive_at_once(open()).expect("locks").is_none());
        assert!(FileLock::exclusive(open()).expect("locks").is_none());
        // The same open file as a process that is being started has it: not unlocked by closing ours.
        let inherited = held.0.as_fd().try_clone_to_owned().expect("another");
        std::mem::forget(held);
        let waits = std::thread::scope(|scope| {
            let waits = scope.spawn(|| FileLock::exclusive(open()).expect("locks").is_some());
            std::thread::sleep(Duration::from_millis(200));
            flock(&inherited, FlockOperation::Unlock).expect("unlocked");
            waits.join().expect("no panic")
        });
        assert!(waits, "it was let go of");
    }
}
