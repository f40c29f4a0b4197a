//! Private servers: how they start, run, end and what they leave.

mod accounts;
mod full_disk;
mod real_servers;
mod replication;
