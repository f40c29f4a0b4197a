//! Why two runs cannot be compared, and the way out.

use super::Difference;

/// Why two runs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// One of them only watched a server, so it has no transactions, and the other has.
    OneWatched,
    /// A rung was asked for, of servers that were only watched.
    NoMeasurements,
    /// A transaction is not the same in both.
    Unlike(Vec<Difference>),
    /// A run has no finished measurement, or its bundle lacks them.
    NothingMeasured {
        /// Whether A is so.
        a: bool,
        /// Whether B is so.
        b: bool,
    },
    /// They have no rung in common.
    NoCommonRung {
        /// Rungs of A.
        a: Vec<u32>,
        /// Rungs of B.
        b: Vec<u32>,
    },
    /// The rung that was asked for is not one of both.
    NoSuchRung {
        /// What was asked for.
        wanted: u32,
        /// Rungs of both.
        common: Vec<u32>,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |rungs: &[u32]| rungs.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Refusal::OneWatched => f.write_str(
                "one of them only watched a server, so its times are per second, and those of the other are per transaction: measure both \
                 with `scaleprof run`, or say what load was recorded (scaleprof import --connections N --throughput TPS)",
            ),
            Refusal::NoMeasurements => f.write_str(
                "servers that were only watched have no rungs to choose from: leave out --rung and --base-rung",
            ),
            Refusal::Unlike(differences) => {
                f.write_str("the runs are not alike, so a transaction (or what a second of them held) is not the same in both:")?;
                for one in differences {
                    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
                    write!(f, " {} ({} and {});", one.what, known(&one.a), known(&one.b))?;
                }
                f.write_str(" --any-workload compares them all the same")
            }
            Refusal::NothingMeasured { a, b } => {
                let who = match (a, b) {
                    (true, true) => "neither bundle has",
                    (true, false) => "the first bundle does not have",
                    _ => "the second bundle does not have",
                };
                write!(
                    f,
                    "{who} a rung that was measured to its end (the table `measurements` is empty or missing): copy the bundle again from \
                     where it was measured, or measure again"
                )
            }
            Refusal::NoCommonRung { a, b } => write!(
                f,
                "the runs have no number of connections in common ({} and {}): measure one with the other's --connections",
                list(a),
                list(b)
            ),
            Refusal::NoSuchRung { wanted, common } => {
                write!(
                    f,
                    "{wanted} connections were not measured in both runs; {} were",
                    list(common)
                )
            }
        }
    }
}

impl std::error::Error for Refusal {}
