//! What a server sends after login.

use scaleprof_wire::ReplyScanner;

/// Scans it in one piece, and in pieces as long as its own bytes say: the replies must be the same.
pub(crate) fn attempt(bytes: &[u8]) {
    let [settings, lengths @ ..] = bytes else { return };
    let deprecate_eof = settings & 1 == 1;
    let whole = replies(deprecate_eof, lengths, std::iter::repeat(usize::MAX));
    let pieces = lengths.iter().map(|length| usize::from(*length) + 1).cycle();
    let in_pieces = replies(deprecate_eof, lengths, pieces);
    assert_eq!(whole, in_pieces, "however it is cut");
}

/// The replies, in words, and the fault that ends them.
fn replies(deprecate_eof: bool, mut bytes: &[u8], lengths: impl Iterator<Item = usize>) -> Vec<String> {
    let mut scanner = ReplyScanner::new(deprecate_eof);
    let mut found = Vec::new();
    for length in lengths {
        if bytes.is_empty() {
            break;
        }
        let mut piece = &bytes[..length.min(bytes.len())];
        bytes = &bytes[piece.len()..];
        while !piece.is_empty() {
            match scanner.feed(piece) {
                Ok((used, reply)) => {
                    assert!(used <= piece.len() && (used > 0 || reply.is_some()), "it gets on");
                    piece = &piece[used..];
                    found.extend(reply.map(|reply| format!("{reply:?}")));
                }
                Err(fault) => {
                    found.push(fault.to_owned());
                    return found;
                }
            }
        }
    }
    found
}
