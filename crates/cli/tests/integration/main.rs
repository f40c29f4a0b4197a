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
mod once;
mod other_users;
mod output;
mod password;
mod pgo;
mod pressure;
mod privacy;

mod refusals;
mod secrets;
mod spinloops;
mod stage;
mod sudden_ends;
mod tls;
mod tpcc;
mod truth;
mod unfinished;
mod watch;
mod whole_run;
