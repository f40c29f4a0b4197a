//! The load on real servers: what it sends, what it counts, and how it ends.

mod hostile;
mod real_servers;
