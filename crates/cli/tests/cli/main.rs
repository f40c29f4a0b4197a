//! The command line from outside: what it prints, how it ends, what it leaves.

mod annotate;
mod attach;
mod beside;
mod branches;
mod builds;
mod builds_fetched;
mod cachelines;
mod check;
mod debuginfod;
mod diff;
mod exchange;
mod experiment;
mod export;
mod full_disk;
mod help;
mod import;
mod import_doubts;
#[path = "../../../builds/tests/made_up/mod.rs"]
mod made_up;
mod once;
mod output;
mod password;
mod pgo;
#[allow(missing_docs, dead_code)]
#[path = "../../../analysis/tests/planted/mod.rs"]
mod planted;
mod privacy;
mod refusals;
mod secrets;
#[path = "../../../server/tests/servers/mod.rs"]
mod servers;
mod spinloops;
mod stage;
mod sudden_ends;
mod tls;
mod tpcc;
mod unfinished;
mod watch;
mod whole_run;
