//! The client: many connections on a few threads.

mod clock;
mod connection;
mod drive;
mod epoll;
mod epoll_wait;
mod limits;
mod pacing;
mod priority;
mod ramp;
mod record;
mod tally;
mod transport;
mod uring;
mod worker;

pub use clock::LoadClock;
pub use drive::{LoadError, LoadObserver, LoadOutcome, LoadPlan, drive};
pub use limits::raise_open_file_limit;
pub use pacing::{Arrivals, LoopKind};
pub use priority::load_threads_can_go_first;
pub use record::SecondRecord;
pub use tally::Tally;
pub use transport::{ChosenTransport, Transport, TransportChoice};
pub use uring::UringUnusable;
