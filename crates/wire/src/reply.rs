//! Pieces of a reply: length-encoded numbers, OK and error packets.

use crate::ServerError;

/// Status bit: a further result of the same statement follows.
pub(crate) const SERVER_MORE_RESULTS_EXISTS: u16 = 0x0008;
/// A transaction is open: what was done since it began is not committed.
pub(crate) const SERVER_STATUS_IN_TRANS: u16 = 0x0001;

/// Reads a length-encoded number; gives it and the bytes it took. `None` for NULL (0xfb) or a short buffer.
pub(crate) fn length_encoded(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let read = |n: usize| -> Option<u64> {
        let mut value = [0_u8; 8];
        value[..n].copy_from_slice(bytes.get(1..1 + n)?);
        Some(u64::from_le_bytes(value))
    };
    match first {
        0..=0xfa => Some((u64::from(first), 1)),
        0xfc => Some((read(2)?, 3)),
        0xfd => Some((read(3)?, 4)),
        0xfe => Some((read(8)?, 9)),
        _ => None,
    }
}

/// Reads a length-encoded string; `Some(None)` is NULL.
pub(crate) fn length_encoded_string(bytes: &[u8]) -> Option<(Option<&[u8]>, usize)> {
    if bytes.first() == Some(&0xfb) {
        return Some((None, 1));
    }
    let (length, used) = length_encoded(bytes)?;
    let end = used.checked_add(usize::try_from(length).ok()?)?;
    Some((Some(bytes.get(used..end)?), end))
}

/// Affected rows and status of an OK packet (also of the one that ends rows, which begins with 0xfe).
pub(crate) fn parse_ok(packet: &[u8]) -> Option<(u64, u16)> {
    let (affected, used) = length_encoded(packet.get(1..)?)?;
    let rest = packet.get(1 + used..)?;
    let (_, used) = length_encoded(rest)?;
    let status = rest.get(used..used + 2)?;
    Some((affected, u16::from_le_bytes([status[0], status[1]])))
}

/// Longest message of an error: that of MySQL and MariaDB (MYSQL_ERRMSG_SIZE of mysql_com.h).
const LONGEST_MESSAGE: usize = 512;

/// Reads an error packet. A short one gives what it has, one that is too long its beginning.
pub(crate) fn parse_error(packet: &[u8]) -> ServerError {
    let number = packet.get(1..3).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
    let rest = packet.get(3..).unwrap_or_default();
    let (state, message) = match rest.first() {
        Some(b'#') if rest.len() >= 6 => (&rest[1..6], &rest[6..]),
        _ => (&rest[..0], rest),
    };
    ServerError {
        number,
        state: String::from_utf8_lossy(state).into_owned(),
        message: String::from_utf8_lossy(&message[..message.len().min(LONGEST_MESSAGE)]).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_no_longer_than_a_servers_can_be() {
        let packet = [&b"\xff\x15\x04#28000"[..], &[b'A'; 100_000]].concat();
        let error = parse_error(&packet);
        assert_eq!(
            (error.number, error.state.as_str(), error.message.len()),
            (1045, "28000", 512)
        );
    }
}
