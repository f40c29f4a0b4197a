//! The rows of the table that keeps the jumps which the processor remembered whenever a sample was taken.

/// A jump from one place of the code to another in one measurement (table `branches`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BranchRow {
    /// The measurement.
    pub measurement: i32,
    /// File name of the executable or library with the instruction that jumps, as in `frames`.
    pub from_module: String,
    /// Its build-id in hexadecimal.
    pub from_build_id: Option<String>,
    /// The function that the machine runs there: what was built into it is not told apart.
    pub from_function: Option<String>,
    /// Where the instruction is, in the file's addresses; in the kernel the offset from the start of the function.
    pub from_address: i64,
    /// The same of where it leads.
    pub to_module: String,
    /// Build-id of that file.
    pub to_build_id: Option<String>,
    /// The function there.
    pub to_function: Option<String>,
    /// The instruction there.
    pub to_address: i64,
    /// How often it was taken, of the jumps that were recorded.
    pub taken: i64,
    /// How often of these the processor told whether it had predicted it.
    pub with_prediction: i64,
    /// How often of these it had not; none where it is known of none.
    pub mispredicted: Option<i64>,
    /// How often the processor told the cycles since the jump before it.
    pub with_cycles: i64,
    /// The sum of these cycles; none where they are known of none.
    pub cycles: Option<i64>,
}
