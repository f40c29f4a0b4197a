//! Opening a recording, whatever holds it: a file, a pipe, or the folder that `perf record --threads` writes.

use scaleprof_binary::mapped_file::{Bytes, MappedFile, mapped, mapped_from};
use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// What stands for the standard input where a file is named.
pub const STANDARD_INPUT: &str = "-";

/// The bytes of a recording. Those of a file are read as they are looked at; what comes through a pipe is kept in memory.
#[derive(Debug)]
pub struct RecordingFile {
    first: First,
    /// What each thread of `perf record --threads` wrote, without a header.
    further: Vec<MappedFile>,
}

#[derive(Debug)]
enum First {
    Mapped(MappedFile, File),
    Read(Vec<u8>),
}

impl First {
    fn of(path: &Path) -> std::io::Result<First> {
        let file = File::open(path)?;
        Ok(First::Mapped(mapped_from(&file, path)?, file))
    }
}

impl RecordingFile {
    /// Opens a file, a pipe ([`STANDARD_INPUT`] is one too) or a folder of `perf record --threads`. A pipe can be read once.
    ///
    /// # Errors
    /// It cannot be opened or read, or is something else: a device may never end.
    pub fn open(path: &Path) -> std::io::Result<RecordingFile> {
        if path == Path::new(STANDARD_INPUT) {
            return Self::read(std::io::stdin().lock());
        }
        let kind = std::fs::metadata(path)?.file_type();
        if kind.is_dir() {
            return Self::of_folder(path);
        }
        if kind.is_fifo() {
            return Self::read(File::open(path)?);
        }
        if !kind.is_file() {
            return Err(std::io::Error::other("it is neither a file nor a pipe"));
        }
        Ok(RecordingFile {
            first: First::of(path)?,
            further: Vec::new(),
        })
    }

    fn read(mut from: impl Read) -> std::io::Result<RecordingFile> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        Ok(RecordingFile {
            first: First::Read(bytes),
            further: Vec::new(),
        })
    }

    /// `data` is a perf.data with all that is not of a thread; `data.0`, `data.1` and so on hold records alone
    /// (tools/perf/util/data.c).
    fn of_folder(folder: &Path) -> std::io::Result<RecordingFile> {
        let first = First::of(&folder.join("data")).map_err(|_| {
            std::io::Error::other("a folder without the file `data` that `perf record --threads` writes")
        })?;
        let mut numbered: Vec<u32> = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("data."));
            numbered.extend(number.and_then(|number| number.parse::<u32>().ok()));
        }
        numbered.sort_unstable();
        let mut further = Vec::new();
        for number in numbered {
            let place = folder.join(format!("data.{number}"));
            // A thread that recorded nothing leaves an empty file, which cannot be mapped.
            if std::fs::metadata(&place)?.len() > 0 {
                further.push(mapped(&place)?);
            }
        }
        Ok(RecordingFile { first, further })
    }
}

impl Deref for RecordingFile {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.first {
            First::Mapped(bytes, _) => bytes,
            First::Read(bytes) => bytes,
        }
    }
}

impl Bytes for RecordingFile {
    fn let_go(&self, part: &[u8]) {
        if let First::Mapped(bytes, _) = &self.first {
            bytes.let_go(part);
        }
    }

    fn file(&self) -> Option<&File> {
        match &self.first {
            First::Mapped(_, file) => Some(file),
            First::Read(_) => None,
        }
    }

    fn further(&self) -> Vec<&[u8]> {
        self.further.iter().map(|part| &**part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_folder_without_a_recording_and_a_device_are_told_apart_from_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let why = |path: &Path| RecordingFile::open(path).expect_err("no recording").to_string();
        assert!(why(folder.path()).contains("--threads"));
        assert!(why(Path::new("/dev/zero")).contains("neither a file nor a pipe"));
        assert!(why(&folder.path().join("missing")).contains("No such file"));
    }

    #[test]
    fn threads_files_come_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content) in [
            ("data", "head"),
            ("data.10", "c"),
            ("data.2", "b"),
            ("data.3", ""),
            ("data.old", "x"),
        ] {
            std::fs::write(folder.path().join(name), content).expect("written");
        }
        let opened = RecordingFile::open(folder.path()).expect("opened");
        assert_eq!(&*opened, b"head");
        assert_eq!(opened.further(), [b"b", b"c"]);
    }

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let writing = std::thread::spawn(move || writer.write_all(&vec![7; 200_000]));
        let opened = RecordingFile::open(Path::new(&path)).expect("opened");
        assert!(writing.join().expect("written").is_ok());
        assert_eq!(opened.len(), 200_000);
    }
}
