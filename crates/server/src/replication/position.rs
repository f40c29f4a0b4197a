//! How far a server is: how many transactions it has, by its own account.

use super::ReplicationMethod;
use crate::capabilities::Capabilities;
use crate::error::Error;
use crate::product::Product;
use scaleprof_wire::Client;

/// Asks one server how far it is.
///
/// Transactions are those of the binary log, or of the write sets of Galera: such as change something. Positions of the source and of
/// its replicas can be subtracted from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    statement: &'static str,
}

impl Position {
    /// For the server that the others follow, or for one of those.
    pub(crate) fn new(method: ReplicationMethod, capabilities: &Capabilities, is_source: bool) -> Self {
        let statement = match (method, capabilities.product(), is_source) {
            (ReplicationMethod::Galera, ..) => {
                "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_last_committed'"
            }
            (_, Product::MariaDb, true) => "SELECT @@GLOBAL.gtid_binlog_pos",
            (_, Product::MariaDb, false) => "SELECT @@GLOBAL.gtid_slave_pos",
            _ => "SELECT @@GLOBAL.gtid_executed",
        };
        Position { statement }
    }

    /// Transactions that the server has.
    ///
    /// # Errors
    /// The connection broke, or the answer is none that is known.
    pub fn read(&self, client: &mut Client) -> Result<u64, Error> {
        const DOING: &str = "ask how far a server of a replication is";
        let text = client.query_value(self.statement).map_err(Error::wire(DOING))?;
        transactions(text.as_deref().unwrap_or_default()).ok_or_else(|| Error::Unreadable {
            doing: DOING,
            answer: text.unwrap_or_default(),
        })
    }
}

/// Transactions of a position, in any of its notations: a count; MariaDB's `domain-server-sequence,...`, of which the sequence counts
/// from 1 in every domain; MySQL's `uuid:1-5:7,uuid:tag:3-9`, ranges with both ends.
fn transactions(text: &str) -> Option<u64> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(of_one_source)
        .try_fold(0_u64, |sum, part| sum.checked_add(part?))
}

fn of_one_source(part: &str) -> Option<u64> {
    if let Ok(count) = part.parse() {
        return Some(count);
    }
    if !part.contains(':') {
        let mut numbers = part.split('-');
        let (_domain, _server, sequence) = (numbers.next()?, numbers.next()?, numbers.next()?);
        return numbers.next().is_none().then(|| sequence.parse().ok())?;
    }
    let mut all = 0_u64;
    for piece in part.split(':').skip(1).map(str::trim) {
        if !piece.starts_with(|first: char| first.is_ascii_digit()) {
            continue; // a tag, which begins with a letter or an underscore
        }
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        all = all.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn positions_of_all_products_are_counted() {
        assert_eq!(transactions(""), Some(0));
        assert_eq!(transactions("1234"), Some(1234));
        assert_eq!(transactions("0-1-1234"), Some(1234));
        assert_eq!(transactions("0-1-1234,7-2-6"), Some(1240));
        assert_eq!(transactions("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:11-18"), Some(13));
        assert_eq!(
            transactions("3e11fa47-71ca-11e1-9e33-c80aa9429562:7,\naaaaaaaa-71ca-11e1-9e33-c80aa9429562:1-3"),
            Some(4)
        );
        assert_eq!(
            transactions("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:a_tag:1-2:9"),
            Some(8)
        );
    }

    #[test]
    fn what_is_no_position_is_not_taken_for_one() {
        for text in ["x", "0-1", "0-1-2-3", "a:5-3", "a:0-18446744073709551615", "-1"] {
            assert_eq!(transactions(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-f:,\\- \n]{0,60}") {
            let _ = transactions(&text);
        }

        #[test]
        fn ranges_are_counted_with_both_ends(ranges in proptest::collection::vec((1_u64..1000, 0_u64..1000), 1..6)) {
            let words: Vec<String> = ranges.iter().map(|(first, more)| format!("{first}-{}", first + more)).collect();
            let all: u64 = ranges.iter().map(|(_, more)| more + 1).sum();
            prop_assert_eq!(transactions(&format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{}", words.join(":"))), Some(all));
        }
    }
}
