//! The client: many connections on a few threads.

mod clock;
mod connection;
mod drive;
mod epoll;
mod epoll_wait;
mod limits;
mod pacing;
mod ramp;
mod record;
mod scheduling;
mod tally;
mod thread_times;
mod transport;
mod uring;
mod worker;

pub use clock::LoadClock;
pub use drive::{LoadError, LoadObserver, LoadOutcome, LoadPlan, drive};
pub use limits::raise_open_file_limit;
pub use pacing::{Arrivals, LoopKind};
pub use record::SecondRecord;
pub use scheduling::LoadScheduling;
pub use tally::Tally;
pub use thread_times::ThreadTimes;
pub use transport::{ChosenTransport, Transport, TransportChoice};
pub use uring::UringUnusable;
