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
                "one run has times per second, the other per transaction\nfix: measure both with scaleprof run, or import with \
                 --connections and --throughput",
            ),
            Refusal::NoMeasurements => f.write_str(
                "bundles of attach have no rungs\nfix: omit --rung and --base-rung",
            ),
            Refusal::Unlike(differences) => {
                f.write_str("the loads of the runs differ, so their figures are not comparable:")?;
                for (number, one) in differences.iter().enumerate() {
                    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
                    let separator = if number == 0 { "" } else { ";" };
                    write!(f, "{separator} {} ({} and {})", one.what, known(&one.a), known(&one.b))?;
                }
                f.write_str("\nfix: compare runs of one workload, or use --any-workload to compare different ones")
            }
            Refusal::NothingMeasured { a, b } => {
                let who = match (a, b) {
                    (true, true) => "neither bundle has",
                    (true, false) => "the first bundle does not have",
                    _ => "the second bundle does not have",
                };
                write!(
                    f,
                    "{who} a complete rung (the table `measurements` is empty or missing)\nfix: copy the whole bundle again from the machine \
                     that measured it, or measure again"
                )
            }
            Refusal::NoCommonRung { a, b } => write!(
                f,
                "the runs have no common rung ({} and {})\nfix: measure one with the --connections of the other",
                list(a),
                list(b)
            ),
            Refusal::NoSuchRung { wanted, common } => {
                write!(
                    f,
                    "{wanted} connections is not a common rung; both runs have {}",
                    list(common)
                )
            }
        }
    }
}

impl std::error::Error for Refusal {}
