//! Options that take one of a few words: clap lists the words in its help, its errors and the completions.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::fmt::Display;
use std::str::FromStr;

/// What carries packets.
pub(crate) const TRANSPORTS: [&str; 3] = ["auto", "epoll", "io_uring"];
/// How statements go to the server.
pub(crate) const PROTOCOLS: [&str; 2] = ["binary", "text"];
/// Which rows statements are about.
pub(crate) const DISTRIBUTIONS: [&str; 6] = [
    "uniform",
    "special",
    "pareto",
    "zipfian",
    "gaussian",
    "zipfian-scrambled",
];
/// What a transaction sees of others.
pub(crate) const ISOLATION_LEVELS: [&str; 4] =
    ["read-uncommitted", "read-committed", "repeatable-read", "serializable"];
/// How an open loop spreads its transactions.
pub(crate) const ARRIVALS: [&str; 2] = ["poisson", "constant"];
/// Where the terminals of TPC-C stand.
pub(crate) const HOME_WAREHOUSES: [&str; 2] = ["fixed", "random"];
/// Encryption of connections.
pub(crate) const TLS_MODES: [&str; 5] = ["disabled", "preferred", "required", "verify-ca", "verify-identity"];
/// How replicas follow.
pub(crate) const REPLICATION_METHODS: [&str; 4] = ["asynchronous", "semi-synchronous", "group", "galera"];

/// The parser of an option with one of these words.
pub(crate) fn one_of<T>(words: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    listed(words).try_map(|word| word.parse::<T>().map_err(|error| error.to_string()))
}

/// The same as text. The server's own programs spell some of these words otherwise too.
pub(crate) fn listed(words: impl IntoIterator<Item = &'static str>) -> PossibleValuesParser {
    let values = words.into_iter().map(|word| {
        let value = PossibleValue::new(word);
        match word {
            "verify-ca" => value.alias("verify_ca"),
            "verify-identity" => value.alias("verify_identity"),
            "read-uncommitted" => value.aliases(["read_uncommitted", "read uncommitted"]),
            "read-committed" => value.aliases(["read_committed", "read committed"]),
            "repeatable-read" => value.aliases(["repeatable_read", "repeatable read"]),
            _ => value,
        }
    });
    PossibleValuesParser::new(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_server::ReplicationMethod;
    use scaleprof_wire::TlsMode;
    use scaleprof_workload::tpcc::HomeWarehouse;
    use scaleprof_workload::{Arrivals, Distribution, Protocol, TransportChoice};
    use std::collections::BTreeSet;

    /// Each word is one that the type knows by the same name.
    fn are_of<T: FromStr<Err: Display> + Display>(words: &[&str]) {
        let known: BTreeSet<String> = words
            .iter()
            .map(|word| match word.parse::<T>() {
                Ok(value) => value.to_string(),
                Err(problem) => panic!("{word}: {problem}"),
            })
            .collect();
        assert_eq!(known, words.iter().map(|word| (*word).to_owned()).collect());
    }

    #[test]
    fn the_words_of_an_option_are_those_of_its_type() {
        are_of::<TransportChoice>(&TRANSPORTS);
        are_of::<Protocol>(&PROTOCOLS);
        are_of::<Distribution>(&DISTRIBUTIONS);
        are_of::<Arrivals>(&ARRIVALS);
        are_of::<HomeWarehouse>(&HOME_WAREHOUSES);
        are_of::<TlsMode>(&TLS_MODES);
        are_of::<ReplicationMethod>(&REPLICATION_METHODS);
        assert_eq!(Distribution::ALL.len(), DISTRIBUTIONS.len());
        assert_eq!(ReplicationMethod::ALL.len(), REPLICATION_METHODS.len());
    }
}
