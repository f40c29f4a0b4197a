//! What the running kernel offers to BPF programs: asked, not guessed from its version.

use libbpf_rs::ReferencesType as _;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{FuncProto, Ptr, Struct, Typedef};

use crate::plain::Lack;

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

    /// What cannot be measured on this kernel, of what newer ones offer.
    pub(crate) fn missing(self) -> Vec<Lack> {
        let figure = |is_there: bool, what: &str, why: &str| {
            (!is_there).then(|| Lack {
                what: what.to_owned(),
                why: why.to_owned(),
                command: None,
            })
        };
        let missing = [
            figure(
                self.contention,
                "locks of the kernel by address, and the time in its spin locks",
                "this kernel reports no contention of its locks; Linux 5.19 and later do",
            ),
            figure(
                self.previous_state,
                "the exact state of a thread that is woken while it leaves its CPU",
                "this kernel's sched_switch does not report the state; Linux 5.18 and later do",
            ),
            figure(
                self.run_delay,
                "the scheduler's own account of run queues",
                "this kernel has no CONFIG_SCHED_INFO; the time is taken at each wake-up instead, and the programs never pause",
            ),
        ];
        missing.into_iter().flatten().collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_does_not_offer_is_named_with_the_kernel_that_does() {
        let all = KernelFeatures {
            previous_state: true,
            contention: true,
            run_delay: true,
        };
        assert_eq!(all.missing(), []);
        let of_5_15 = KernelFeatures {
            previous_state: false,
            contention: false,
            ..all
        };
        let missing = of_5_15.missing();
        assert_eq!(missing.len(), 2);
        assert!(missing[0].what.contains("locks of the kernel") && missing[0].why.contains("5.19"));
        assert!(missing[1].why.contains("5.18"));
    }
}
