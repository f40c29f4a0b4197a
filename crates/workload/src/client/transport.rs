//! Which system calls carry the packets.

use std::fmt;
use std::str::FromStr;

/// Which system calls carry the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// io_uring where the kernel has all that we need of it (6.1), else epoll.
    #[default]
    Auto,
    /// epoll, recv and send.
    Epoll,
    /// io_uring: one system call for a batch of sends and receives. Encrypted connections fall back to epoll.
    IoUring,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Auto => "auto",
            Transport::Epoll => "epoll",
            Transport::IoUring => "io_uring",
        })
    }
}

impl FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Transport::Auto),
            "epoll" => Ok(Transport::Epoll),
            "io_uring" => Ok(Transport::IoUring),
            other => Err(format!("there is no transport '{other}': use auto, epoll or io_uring")),
        }
    }
}
