//! Who the server runs as.
//!
//! Servers refuse to run as root, and a server under test needs none of root's rights. Their own `--user=` changes
//! the user after start, which makes the kernel mark the process as not dumpable: profilers of the same user can
//! then read neither its maps nor its memory. So the user is changed before exec.

use crate::error::Error;
use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An unprivileged user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUser {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// Its group's number.
    pub gid: u32,
}

impl ServerUser {
    /// The user a server started by us runs as: `None` for an ordinary user (the server runs as that user too),
    /// `mysql`, else `nobody`, for root.
    pub fn for_this_process() -> Option<ServerUser> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        Some(
            ServerUser::named("mysql")
                .or_else(|| ServerUser::named("nobody"))
                // Minimal containers have no user at all; the number is what counts.
                .unwrap_or(ServerUser {
                    name: "nobody".to_owned(),
                    uid: 65534,
                    gid: 65534,
                }),
        )
    }

    /// The user of this name, if the machine knows it and it is not root.
    pub fn named(name: &str) -> Option<ServerUser> {
        let c_name = CString::new(name).ok()?;
        let mut buffer = vec![0; 4096];
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
        let mut found = std::ptr::null_mut();
        // SAFETY: all pointers are valid for the call, and the buffer's length is its own.
        let code = unsafe {
            libc::getpwnam_r(
                c_name.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &mut found,
            )
        };
        if code != 0 || found.is_null() {
            return None;
        }
        // SAFETY: a non-null `found` says that the entry was filled in.
        let entry = unsafe { entry.assume_init() };
        (entry.pw_uid != 0).then(|| ServerUser {
            name: name.to_owned(),
            uid: entry.pw_uid,
            gid: entry.pw_gid,
        })
    }

    /// Gives a file or folder to this user.
    pub fn own(&self, path: &Path) -> Result<(), Error> {
        std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))
            .map_err(Error::system("give to the server's user", path))
    }

    /// Makes sure that this user can read `path`: each folder above must let it pass. A server in /root would
    /// otherwise fail with a bare "Permission denied" from exec.
    pub fn check_reach(&self, path: &Path) -> Result<(), Error> {
        let above: Vec<&Path> = path.ancestors().collect();
        for step in above.into_iter().rev().filter(|step| !step.as_os_str().is_empty()) {
            let meta = std::fs::metadata(step).map_err(Error::system("look at", step))?;
            let wanted = if meta.is_dir() && step != path { 0o1 } else { 0o4 };
            let shift = if meta.uid() == self.uid {
                6
            } else if meta.gid() == self.gid {
                3
            } else {
                0
            };
            if (meta.mode() >> shift) & wanted != wanted {
                return Err(Error::Unreachable {
                    user: self.name.clone(),
                    path: path.to_owned(),
                    closed: PathBuf::from(step),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn root_is_never_the_servers_user() {
        assert_eq!(ServerUser::named("root"), None);
        assert_eq!(ServerUser::named("no-such-user-here"), None);
    }

    #[test]
    fn names_the_folder_that_is_closed_to_the_servers_user() {
        let user = ServerUser {
            name: "someone".into(),
            uid: 54321,
            gid: 54321,
        };
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("a file");
        let allow = |mode| std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).expect("chmod");
        allow(0o755);
        user.check_reach(&file).expect("open");
        allow(0o700);
        match user.check_reach(&file) {
            Err(Error::Unreachable { closed, .. }) => assert_eq!(closed, folder.path()),
            other => panic!("{other:?}"),
        }
    }
}
