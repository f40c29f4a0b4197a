//! Whether others than its user could change a file or folder.

use rustix::process::{getegid, geteuid};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Why what lies at a path may be somebody else's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exposed {
    /// Neither ours nor root's.
    #[error("it belongs to user {owner} (chown)")]
    Owner {
        /// The owner's number.
        owner: u32,
    },
    /// Its mode has write permission for all.
    #[error("all users may write to it (mode {mode:04o}; chmod o-w)")]
    World {
        /// Its permissions.
        mode: u32,
    },
    /// Its mode has write permission for a group with other members than us.
    #[error("its group may write to it (mode {mode:04o}, group {group}; chmod g-w)")]
    Group {
        /// Its permissions.
        mode: u32,
        /// The group's number.
        group: u32,
    },
}

/// Who runs this program, and so whose files it may believe.
#[derive(Debug, Clone, Copy)]
struct Caller {
    user: u32,
    group: u32,
    /// Who became root by sudo(8), and that user's group: that user can do all that root can.
    before_sudo: Option<(u32, u32)>,
}

impl Caller {
    fn this_process() -> Caller {
        let user = geteuid().as_raw();
        let number = |name| std::env::var(name).ok().filter(|_| user == 0)?.parse::<u32>().ok();
        Caller {
            user,
            group: getegid().as_raw(),
            before_sudo: number("SUDO_UID").zip(number("SUDO_GID")),
        }
    }

    fn check(&self, (owner, group, mode): (u32, u32, u32)) -> Result<(), Exposed> {
        let mode = mode & 0o7777;
        if owner != self.user && owner != 0 && self.before_sudo.is_none_or(|(user, _)| owner != user) {
            return Err(Exposed::Owner { owner });
        }
        if mode & 0o002 != 0 {
            return Err(Exposed::World { mode });
        }
        // An ordinary user's own group has no other member on most systems, whose umask is 002 for
        // that.
        let own_group = group == 0
            || (self.user != 0 && group == self.group)
            || self.before_sudo.is_some_and(|(_, own)| group == own);
        match mode & 0o020 != 0 && !own_group {
            true => Err(Exposed::Group { mode, group }),
            false => Ok(()),
        }
    }
}

/// Checks that nobody but root and who runs this program can change a file or folder.
///
/// # Errors
/// Who else can.
pub fn check_owner(of: &Metadata) -> Result<(), Exposed> {
    Caller::this_process().check((of.uid(), of.gid(), of.mode()))
}

/// Reads an option file. One that all users may write to is refused, as servers pass over it
/// (mysys/my_default.c); whose it is does not matter there: it is often the service's. A link is
/// followed; the file that was opened is checked.
///
/// # Errors
/// It cannot be read, is no text, or all may write to it (an [`Exposed`] inside).
pub fn read_option_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mode = file.metadata()?.mode() & 0o7777;
    if mode & 0o002 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, Exposed::World { mode }));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const ROOT: Caller = Caller {
        user: 0,
        group: 0,
        before_sudo: None,
    };
    const ANNA: Caller = Caller {
        user: 1000,
        group: 1000,
        before_sudo: None,
    };

    #[test]
    fn only_what_nobody_else_can_change_is_trusted() {
        assert_eq!(ROOT.check((0, 0, 0o40755)), Ok(()));
        assert_eq!(ROOT.check((0, 0, 0o100664)), Ok(()), "root's own group");
        assert_eq!(ROOT.check((65534, 0, 0o755)), Err(Exposed::Owner { owner: 65534 }));
        assert_eq!(ROOT.check((0, 0, 0o777)), Err(Exposed::World { mode: 0o777 }));
        let shared = Exposed::Group {
            mode: 0o775,
            group: 100,
        };
        assert_eq!(ROOT.check((0, 100, 0o775)), Err(shared));
        assert_eq!(ANNA.check((1000, 1000, 0o664)), Ok(()), "umask 002");
        assert_eq!(ANNA.check((0, 0, 0o644)), Ok(()));
        assert_eq!(ANNA.check((1000, 100, 0o775)), Err(shared));
        assert_eq!(ANNA.check((1001, 1001, 0o644)), Err(Exposed::Owner { owner: 1001 }));
    }

    #[test]
    fn who_became_root_by_sudo_is_trusted_and_nobody_else() {
        let by_sudo = Caller {
            before_sudo: Some((1000, 1001)),
            ..ROOT
        };
        assert_eq!(by_sudo.check((1000, 1001, 0o664)), Ok(()));
        assert!(by_sudo.check((1000, 1000, 0o664)).is_err(), "a group of others");
        assert_eq!(by_sudo.check((1001, 1001, 0o644)), Err(Exposed::Owner { owner: 1001 }));
    }

    #[test]
    fn a_text_that_all_may_write_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("my.cnf");
        std::fs::write(&path, "[mysqld]\n").expect("written");
        assert_eq!(read_option_file(&path).expect("ours"), "[mysqld]\n");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("chmod");
        let refused = read_option_file(&path).expect_err("anybody's").to_string();
        assert_eq!(refused, "all users may write to it (mode 0666; chmod o-w)");
    }
}
