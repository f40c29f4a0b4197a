//! pprof's profile.proto, compressed by gzip, as `go tool pprof` and what is built on it read it
//! (github.com/google/pprof/blob/main/proto/profile.proto).

mod write;

pub use write::write;
