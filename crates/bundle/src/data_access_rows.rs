//! The rows of the table that keeps who touches the variables in the cache lines of hot instructions, so that these lines can be
//! judged where the server's binary is not.

use scaleprof_vocabulary::AccessKind;

/// One instruction that touches a variable, or a part of one (table `data_accesses`). Where nobody is known to touch it, one row
/// without an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataAccessRow {
    /// File name of the executable or library, as in `frames`.
    pub module: String,
    /// Its build-id in hexadecimal.
    pub build_id: Option<String>,
    /// Where the two lines of 64 bytes begin, a multiple of 128, that this row is kept for. A variable over several of them has its
    /// rows for each.
    pub line_pair_address: i64,
    /// The variable with its member or element, such as `srv_stats.n_rows_read[2]`: names of the binary only.
    pub variable: String,
    /// Where it begins, in the file's addresses.
    pub variable_address: i64,
    /// Bytes of it.
    pub variable_size: i64,
    /// Whether it is a lock, or a part of one.
    pub is_lock: bool,
    /// The function that touches it.
    pub function: Option<String>,
    /// Calls of that function in the code.
    pub call_sites: Option<i32>,
    /// Whether it does so only while the server starts or stops, or a setting is changed, or once to give a first value.
    pub rarely_run: bool,
    /// The instruction that does, in the file's addresses.
    pub instruction: Option<i64>,
    /// Where the sampling timer sees a thread that waited for it: the instruction behind it,
    pub sampled_at: Option<i64>,
    /// and where that one is a branch, the instruction behind the branch.
    pub sampled_after: Option<i64>,
    /// `read`, `write`, `update` (both as one instruction), or `passed_to_call` where only the
    /// address is handed on.
    pub access: Option<AccessKind>,
    /// Whether it takes the cache line for itself meanwhile.
    pub locked: bool,
    /// Whether it lies within a loop of its function.
    pub in_loop: bool,
    /// Whether it lies within a loop that waits for another thread.
    pub in_spin_loop: bool,
    /// The function that the address is handed to, where that is known.
    pub callee: Option<String>,
}
