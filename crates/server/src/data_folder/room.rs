//! Room on the disk, made at the cost of prepared data that nobody uses.

use super::{Cache, DataKey, Entry, PreparedData};
use crate::error::Error;
use crate::work_folder::{check_space, free_space, lock_exclusive};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Whether there is room on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Enough,
    TooLittle,
    /// Not even if all went that may go.
    OutOfReach,
}

/// An entry that may have to go.
struct Unused {
    last_used: SystemTime,
    folder: PathBuf,
    entry: Entry,
}

impl Unused {
    fn of(prepared: PreparedData) -> Unused {
        Unused {
            last_used: prepared.last_used(),
            folder: prepared.folder,
            entry: prepared.entry,
        }
    }
}

impl Cache {
    /// Makes room on the disk for `needed` bytes at the cost of what was not used for longest and nobody uses now. Nothing goes where all of
    /// it would not be enough. Whether there is room is for the check that follows to tell. Returns the keys of what went.
    pub fn make_room(&self, needed: u64) -> Result<Vec<DataKey>, Error> {
        if free_space(&self.root)? >= needed {
            return Ok(Vec::new());
        }
        self.remove_until(|to_come| {
            let free = free_space(&self.root)?;
            Ok(match free >= needed {
                true => Room::Enough,
                false if free.saturating_add(to_come) < needed => Room::OutOfReach,
                false => Room::TooLittle,
            })
        })
    }

    /// Bytes on disk of all entries.
    pub fn size(&self) -> Result<u64, Error> {
        Ok(self.list()?.iter().map(|prepared| prepared.entry.bytes).sum())
    }

    /// Removes what was not used for longest and nobody uses now until no more than `most` bytes are left. Returns the keys of what went.
    pub fn keep_to(&self, most: u64) -> Result<Vec<DataKey>, Error> {
        self.remove_until(|_| {
            Ok(match self.size()? <= most {
                true => Room::Enough,
                false => Room::TooLittle,
            })
        })
    }

    /// Removes entries as long as there is too little room; `room` is told how many bytes more may go.
    fn remove_until(&self, mut room: impl FnMut(u64) -> Result<Room, Error>) -> Result<Vec<DataKey>, Error> {
        let mut all: Vec<Unused> = self.list()?.into_iter().map(Unused::of).collect();
        all.sort_by_key(|unused| unused.last_used);
        // Our own locks are gone with the list. Those that others hold keep theirs.
        all.retain(|unused| matches!(lock_exclusive(&unused.folder), Ok(Some(_))));
        let mut to_come: u64 = all.iter().map(|unused| unused.entry.bytes).sum();
        let mut gone = Vec::new();
        for unused in all {
            if room(to_come)? != Room::TooLittle {
                break;
            }
            to_come = to_come.saturating_sub(unused.entry.bytes);
            // Somebody may have begun to use it, or removed it, meanwhile.
            if self.remove_folder(&unused.folder).is_ok() {
                gone.push(unused.entry.key);
            }
        }
        Ok(gone)
    }

    /// As [`make_room`](Self::make_room) does, or says that the disk of `place` would be full; `what` names what the bytes are for.
    pub(crate) fn room_at(&self, place: &Path, needed: u64, what: &str) -> Result<(), Error> {
        self.make_room(needed)?;
        check_space(place, needed, what)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ENTRY;
    use super::super::tests::{cache, key};
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn room_is_made_at_the_cost_of_what_was_not_used_for_longest_and_nobody_uses() {
        let (folder, cache, _data) = cache();
        for name in ["a", "b", "c", "d"] {
            let data = folder.path().join("work").join(name);
            fs::create_dir(&data).expect("a folder");
            drop(cache.store(&key(name), &data).expect("stored"));
        }
        // Made as a, b, c, d; last used as b, d, a, c.
        for (hours, name) in [(9, "b"), (8, "d"), (7, "a"), (6, "c")] {
            let entry = cache.root.join(key(name).name()).join(ENTRY);
            let then = SystemTime::now() - std::time::Duration::from_secs(hours * 3600);
            let file = File::options().write(true).open(entry).expect("its entry");
            file.set_modified(then).expect("a time");
        }
        // One of an earlier layout has the key of a newer one, and another name.
        let earlier = cache.root.join("earlier");
        fs::rename(cache.root.join(key("a").name()), &earlier).expect("renamed");
        let data = folder.path().join("work").join("a");
        fs::create_dir(&data).expect("a folder");
        drop(cache.store(&key("a"), &data).expect("stored"));
        assert_eq!(cache.remove_until(|_| Ok(Room::Enough)).expect("room"), []);
        assert_eq!(cache.remove_until(|_| Ok(Room::OutOfReach)).expect("no room"), []);
        let in_use = cache.get(&key("d")).expect("a look").expect("stored");
        drop(cache.get(&key("b")).expect("a look")); // used now
        let mut looks = 0;
        let gone = cache.remove_until(|_| {
            looks += 1;
            Ok(if looks > 2 { Room::Enough } else { Room::TooLittle })
        });
        assert_eq!(gone.expect("room"), [key("a"), key("c")]);
        assert!(!earlier.exists() && cache.get(&key("a")).expect("a look").is_some());
        let gone = cache.remove_until(|_| Ok(Room::TooLittle)).expect("what can go went");
        assert_eq!(gone, [key("b"), key("a")]);
        assert!(in_use.data().exists());
    }

    #[test]
    fn no_more_is_kept_than_was_asked_for_and_what_is_in_use_stays() {
        let (folder, cache, _data) = cache();
        let mut bytes = 0;
        for (hours, name) in [(9, "a"), (8, "b"), (7, "c")] {
            let data = folder.path().join("work").join(name);
            fs::create_dir(&data).expect("a folder");
            fs::write(data.join("t.ibd"), vec![7; 100_000]).expect("rows");
            bytes = cache.store(&key(name), &data).expect("stored").entry.bytes;
            let entry = cache.root.join(key(name).name()).join(ENTRY);
            let then = SystemTime::now() - std::time::Duration::from_secs(hours * 3600);
            let file = File::options().write(true).open(entry).expect("its entry");
            file.set_modified(then).expect("a time");
        }
        assert_eq!(cache.size().expect("known"), 3 * bytes);
        assert_eq!(cache.keep_to(3 * bytes).expect("room"), []);
        assert_eq!(cache.keep_to(3 * bytes - 1).expect("room"), [key("a")]);
        let in_use = cache.get(&key("c")).expect("a look").expect("stored");
        assert_eq!(cache.keep_to(0).expect("room"), [key("b")]);
        assert!(in_use.data().exists());
    }

    #[test]
    fn nothing_goes_for_a_disk_that_is_too_small_anyway() {
        let (_folder, cache, data) = cache();
        drop(cache.store(&key("a"), &data).expect("stored"));
        assert_eq!(cache.make_room(1).expect("room"), []);
        assert_eq!(cache.make_room(u64::MAX).expect("a look"), []);
        assert!(cache.get(&key("a")).expect("a look").is_some());
    }
}
