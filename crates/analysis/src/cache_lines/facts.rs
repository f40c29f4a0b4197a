//! What the machine code says, as plain rows.

use scaleprof_vocabulary::AccessKind;

/// A function that touches places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFunction {
    /// Its name.
    pub name: String,
    /// Whether it runs only while the server starts or stops, or while somebody changes a setting, as far as that can be told.
    pub is_start_or_stop: bool,
    /// Calls of it in the code.
    pub calls: u32,
}

/// A variable, or a part of one, that threads share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Such as `srv_stats.n_rows_read[2]`.
    pub name: String,
    /// In the file's addresses.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Whether more of the program than these places says that it is a lock, or a part of one.
    pub is_known_lock: bool,
    /// Who touches it; nobody, as far as known, where it is empty.
    pub accesses: Vec<PlaceAccess>,
}

/// An instruction that touches a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceAccess {
    /// Its function: a place in the list of functions that comes along.
    pub function: usize,
    /// What it does.
    pub kind: AccessKind,
    /// Whether it takes the line for itself meanwhile.
    pub locked: bool,
    /// Whether it lies within a loop.
    pub in_loop: bool,
    /// Whether it lies within a loop that waits for another thread.
    pub in_spin_loop: bool,
    /// Whether more of the program than these places says that it happens only at the start, the stop or once.
    pub is_rarely_run: bool,
    /// Where it is in the file.
    pub instruction: u64,
    /// Where the sampling timer sees a thread that waited for it: one instruction later, mostly.
    pub sampled_at: [u64; 2],
    /// The function that gets the address, where that is what it does and it is known.
    pub callee: Option<String>,
}
