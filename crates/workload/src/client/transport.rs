//! Which system calls carry the packets.

use super::uring::{self, UringUnusable};
use std::fmt;
use std::str::FromStr;

/// Which system calls carry the packets of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// epoll, recv and send.
    Epoll,
    /// io_uring: one system call for a batch of sends and receives. Encrypted connections go over epoll all the same.
    IoUring,
}

/// What the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportChoice {
    /// io_uring where the kernel does all that we need of it (Linux 6.1 has it, some later ones do not), else epoll.
    #[default]
    Auto,
    /// This one or none.
    Only(Transport),
}

/// What will carry the packets on this machine.
#[derive(Debug)]
pub struct ChosenTransport {
    /// This one.
    pub transport: Transport,
    /// Why it is not io_uring, where `auto` was asked for.
    pub fallback: Option<UringUnusable>,
}

impl TransportChoice {
    /// Decides between the transports: by doing once with io_uring what a load does, not by the kernel's version.
    ///
    /// # Errors
    /// io_uring was asked for and this kernel does not do what we need.
    pub fn choose(self) -> Result<ChosenTransport, UringUnusable> {
        self.choose_by(uring::try_out)
    }

    fn choose_by(self, try_out: impl FnOnce() -> Result<(), UringUnusable>) -> Result<ChosenTransport, UringUnusable> {
        let without_fallback = |transport| ChosenTransport {
            transport,
            fallback: None,
        };
        match self {
            Self::Only(Transport::Epoll) => Ok(without_fallback(Transport::Epoll)),
            Self::Only(Transport::IoUring) => try_out().map(|()| without_fallback(Transport::IoUring)),
            Self::Auto => Ok(match try_out() {
                Ok(()) => without_fallback(Transport::IoUring),
                Err(unusable) => ChosenTransport {
                    transport: Transport::Epoll,
                    fallback: Some(unusable),
                },
            }),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Epoll => "epoll",
            Self::IoUring => "io_uring",
        })
    }
}

impl fmt::Display for TransportChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Only(transport) => transport.fmt(f),
        }
    }
}

impl FromStr for TransportChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "epoll" => Ok(Self::Only(Transport::Epoll)),
            "io_uring" => Ok(Self::Only(Transport::IoUring)),
            other => Err(format!("there is no transport '{other}': use auto, epoll or io_uring")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// As Ubuntu's 6.8.0-149: it sets a ring up and registers no buffers.
    fn refuses_buffers() -> Result<(), UringUnusable> {
        Err(UringUnusable {
            step: "registering receive buffers",
            source: io::ErrorKind::InvalidInput.into(),
        })
    }

    #[test]
    fn auto_falls_back_to_epoll_with_the_reason() {
        let chosen = TransportChoice::Auto.choose_by(refuses_buffers).expect("a way");
        assert_eq!(chosen.transport, Transport::Epoll);
        assert!(
            chosen
                .fallback
                .is_some_and(|why| why.step == "registering receive buffers")
        );
        let chosen = TransportChoice::Auto.choose_by(|| Ok(())).expect("a way");
        assert!(chosen.transport == Transport::IoUring && chosen.fallback.is_none());
    }

    #[test]
    fn io_uring_that_was_asked_for_is_refused_and_epoll_tries_nothing() {
        let error = TransportChoice::Only(Transport::IoUring)
            .choose_by(refuses_buffers)
            .expect_err("refused");
        assert!(error.to_string().contains("--transport epoll"), "{error}");
        let chosen = TransportChoice::Only(Transport::Epoll)
            .choose_by(|| unreachable!("nothing is tried"))
            .expect("epoll");
        assert!(chosen.transport == Transport::Epoll && chosen.fallback.is_none());
    }
}
