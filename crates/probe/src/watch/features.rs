//! What the running kernel offers to BPF programs: asked, not guessed from its version.

use libbpf_rs::ReferencesType as _;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{FuncProto, Ptr, Struct, Typedef};

/// What the programs are fitted to before they are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelFeatures {
    /// `sched_switch` tells the state that the thread left with, as its fourth argument (Linux 5.18).
    pub previous_state: bool,
    /// It tells of its own locks: `contention_begin` (Linux 5.19).
    pub contention: bool,
    /// The scheduler keeps how long each thread was queued (CONFIG_SCHED_INFO).
    pub run_delay: bool,
}

impl KernelFeatures {
    pub(crate) fn ask() -> Result<Self, libbpf_rs::Error> {
        let btf = Btf::from_vmlinux()?;
        Ok(Self {
            previous_state: arguments_of_switch(&btf) >= 4,
            contention: btf.type_by_name::<Typedef<'_>>("btf_trace_contention_begin").is_some(),
            run_delay: has_member(&btf, "sched_info", "run_delay"),
        })
    }
}

fn has_member(btf: &Btf<'_>, structure: &str, member: &str) -> bool {
    btf.type_by_name::<Struct<'_>>(structure)
        .is_some_and(|structure| structure.iter().any(|one| one.name.is_some_and(|name| name == member)))
}

/// Arguments of the tracepoint `sched_switch`; the kernel describes its handlers by a typedef whose first parameter is the
/// handler's own data.
fn arguments_of_switch(btf: &Btf<'_>) -> usize {
    let handler = btf
        .type_by_name::<Typedef<'_>>("btf_trace_sched_switch")
        .and_then(|name| Ptr::try_from(name.referenced_type()).ok())
        .and_then(|pointer| FuncProto::try_from(pointer.referenced_type()).ok());
    handler.map_or(0, |handler| handler.iter().count().saturating_sub(1))
}
