//! A cgroup (version 2) of a program's own: what freezes all of it, and what counts all its CPU time.

use std::path::{Path, PathBuf};

/// Its folder; when it is dropped the program goes back where it was.
pub struct OwnCgroup(PathBuf);

impl OwnCgroup {
    /// None, aloud, where no such cgroup can be made.
    pub fn of(process: u32) -> Option<OwnCgroup> {
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let root = roots
            .map(Path::new)
            .into_iter()
            .find(|root| root.join("cgroup.procs").exists());
        let made = root.map(|root| root.join(format!("scaleprof-test-{process}")));
        let Some(folder) = made.filter(|folder| std::fs::create_dir(folder).is_ok()) else {
            testing::skip!("no cgroup of version 2 can be made");
            return None;
        };
        let own = OwnCgroup(folder);
        own.write("cgroup.procs", &process.to_string());
        Some(own)
    }

    /// Stops all of it, or lets it go on.
    pub fn freeze(&self, frozen: bool) {
        self.write("cgroup.freeze", if frozen { "1" } else { "0" });
    }

    /// CPU time of all that ever was in it, nanoseconds. Unlike the clock of a process it holds what threads run until they are gone.
    pub fn cpu_ns(&self) -> f64 {
        let text = std::fs::read_to_string(self.0.join("cpu.stat")).expect("readable");
        let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
        usage.expect("it counts").parse::<f64>().expect("a number") * 1e3
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.join(file), text).expect("writable");
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.join("cgroup.freeze"), "0");
        let processes = std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for process in processes.lines() {
            // Only an empty one can be removed. The program may have ended meanwhile.
            let _ = std::fs::write(self.0.join("../cgroup.procs"), process);
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}
