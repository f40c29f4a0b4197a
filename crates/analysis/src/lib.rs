//! What a run means: pure functions from the tables of a bundle to a verdict.
//!
//! [`summarise`] does it all; the modules hold one idea each and can be used alone.

pub mod annotate;
mod backlog;
mod base_rung;
mod beside;
mod block_ratio;
mod by_path;
pub mod cache_lines;
pub mod call_paths;
pub mod changepoints;
mod compared;
pub mod comparison;
pub mod condition;
mod course;
pub mod data_quality;
pub mod decomposition;
mod durability;
mod effective_concurrency;
pub mod export;
mod figure;
mod findings;
pub mod flame;
mod grouped;
mod growth_shape;
pub mod guards;
pub mod hot_code;
pub mod hot_functions;
pub mod instruction_costs;
pub mod intervals;
pub mod iron_law;
pub mod latency;
pub mod ledger;
mod load_threads;
mod lock_costs;
pub mod long_run;
pub mod machine_code;
mod machine_shares;
mod measured_rungs;
mod measured_seconds;
mod measurement_rows;
mod measurement_spread;
pub mod named_code;
pub mod numbers;
mod pacing;
mod path_costs;
mod path_set;
mod paths;
pub mod peak;
mod per;
pub mod refine;
mod rung;
pub mod rung_instructions;
mod sampled;
mod saturation;
mod scaling_profile;
mod stack_links;
mod standard_error;
pub mod steadiness;
pub mod student;
mod summarise;
mod thread_time;
pub mod totals;
mod tpcc;
pub mod trials;
mod unsteady;
pub mod usl;
mod usl_fit;
pub mod verdict;
pub mod wait_graph;
pub mod waiting_instructions;
pub mod warmup;
mod watch;

pub use per::Per;
pub use summarise::{summarise, unfinished};

#[cfg(test)]
mod made_up_sample;
#[cfg(test)]
#[allow(missing_docs)]
mod simulated;
#[cfg(test)]
#[allow(missing_docs)]
mod simulated_loop;
