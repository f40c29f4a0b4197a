//! pprof's profile.proto, compressed by gzip, as `go tool pprof` and what is built on it read it
//! (github.com/google/pprof/blob/main/proto/profile.proto).

mod read;
mod write;

pub(crate) use read::looks_like_it;
pub use read::read;
pub use write::write;

/// Fields of the message Profile.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const TIME_NANOS: u32 = 9;
    pub(super) const DURATION_NANOS: u32 = 10;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}
