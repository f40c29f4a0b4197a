//! What keeps scaleprof safe beside programs of other users: their files and folders, and what its
//! own children get to see.
//!
//! scaleprof runs as root on database hosts, beside programs of other users who own some of the
//! folders that it reads and writes: a server's data, a home, `/var/tmp`. A name in such a folder
//! may mean something else at each look. So here a folder is opened once and walked by descriptor,
//! no link below it is followed, what is asked is asked of the file that was opened, and what is
//! written is a new file. Programs that it starts get the variables that they need, and no password
//! of root's. A library that panics over somebody's bytes ends nothing. What a file or program means is for the crates above.

#![warn(missing_docs)]

mod environment;
mod folder;
mod foreign;
mod owner;
mod whole;

pub use environment::{FOR_DOWNLOADS, with_clean_environment};
pub use folder::{Folder, Found, NoOutput};
pub use foreign::survive;
pub use owner::{Exposed, check_owner, read_option_file};
pub use whole::{UNFINISHED, part_of, replace, replace_in};
