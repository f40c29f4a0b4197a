//! TCP ports of the loopback interface that are free.

use crate::error::Error;
use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;
use std::ops::Range;

/// Below are the ports of well-known services, databases among them.
const LOWEST: u16 = 10_240;
/// So many are tried before the kernel is asked for one.
const TRIES: u16 = 64;
/// Where the kernel takes the ports of outgoing connections from (Documentation/networking/ip-sysctl.rst).
const OF_CONNECTIONS: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// A port that nobody else can draw as long as this is held. Another program may take it between then and the server's start; the
/// server then says so. That no connection takes it by chance it is not one of those that the kernel gives to connections, where that
/// leaves any.
#[derive(Debug)]
pub(crate) struct FreePort {
    number: u16,
    _listener: TcpListener,
}

impl FreePort {
    /// One that is free now.
    pub(crate) fn draw() -> Result<FreePort, Error> {
        let range = std::fs::read_to_string(OF_CONNECTIONS).unwrap_or_default();
        // 0 asks the kernel.
        let tries = drawn_from(&aside_of(&range)).chain([0]);
        let mut problem = None;
        for number in tries {
            match TcpListener::bind(("127.0.0.1", number)).and_then(|listener| Ok((listener.local_addr()?, listener))) {
                Ok((address, listener)) => {
                    return Ok(FreePort {
                        number: address.port(),
                        _listener: listener,
                    });
                }
                Err(error) => problem = Some(error),
            }
        }
        let problem = problem.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
        Err(Error::system("find a free port on", "127.0.0.1")(problem))
    }

    /// Its number.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

/// The larger one of the ranges below and above the one that connections take their ports from; empty where nothing is known.
fn aside_of(range_of_connections: &str) -> Range<u16> {
    let mut ends = range_of_connections.split_whitespace().map(str::parse::<u16>);
    let (Some(Ok(first)), Some(Ok(last))) = (ends.next(), ends.next()) else {
        return 0..0;
    };
    let below = LOWEST..first.max(LOWEST);
    let above = last.saturating_add(1).max(LOWEST)..u16::MAX;
    match below.len() >= above.len() {
        true => below,
        false => above,
    }
}

/// Some of them, by chance: programs that draw at the same time are not to meet.
fn drawn_from(range: &Range<u16>) -> impl Iterator<Item = u16> + use<> {
    let chance = RandomState::new();
    let (first, count) = (range.start, u64::from(range.end.saturating_sub(range.start)));
    (0..TRIES).filter_map(move |turn| {
        let offset = chance.hash_one(turn).checked_rem(count)?;
        // It is less than the range is long.
        Some(first + offset as u16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_port_is_one_that_the_kernel_gives_to_connections() {
        assert_eq!(aside_of("32768\t60999\n"), LOWEST..32_768);
        assert_eq!(aside_of("1024\t32767\n"), 32_768..u16::MAX);
        for none_is_left in ["1024 65535", "10000 65534", "", "1 x", "60000"] {
            assert!(aside_of(none_is_left).is_empty(), "{none_is_left}");
            assert_eq!(drawn_from(&aside_of(none_is_left)).count(), 0);
        }
        let range = aside_of("32768 60999");
        let drawn: BTreeSet<u16> = drawn_from(&range).collect();
        assert!(drawn.iter().all(|port| range.contains(port)));
        assert!(drawn.len() > 50 && drawn != drawn_from(&range).collect(), "by chance");
    }

    #[test]
    fn ports_that_are_held_are_not_drawn_again() {
        let held: Vec<FreePort> = (0..200).map(|_| FreePort::draw().expect("a port")).collect();
        let numbers: BTreeSet<u16> = held.iter().map(FreePort::number).collect();
        assert_eq!(numbers.len(), held.len());
        let range = std::fs::read_to_string(OF_CONNECTIONS).expect("of this kernel");
        let aside = aside_of(&range);
        if aside.is_empty() {
            return testing::skip!("ports that the kernel gives to nobody: it gives all, {range}");
        }
        assert!(
            numbers.iter().all(|number| aside.contains(number)),
            "{numbers:?} {aside:?}"
        );
    }
}
