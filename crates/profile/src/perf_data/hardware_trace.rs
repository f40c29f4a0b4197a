//! What a processor wrote of each branch or access, which perf keeps beside the samples and makes samples of when it is asked to.

/// Who wrote a trace (auxtrace_type of tools/perf/util/auxtrace.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HardwareTrace {
    IntelPt,
    IntelBts,
    CoreSight,
    ArmSpe,
    Other,
}

impl HardwareTrace {
    /// By the number in a record AUXTRACE_INFO.
    pub(super) fn of(number: u32) -> HardwareTrace {
        match number {
            1 => HardwareTrace::IntelPt,
            2 => HardwareTrace::IntelBts,
            3 => HardwareTrace::CoreSight,
            4 => HardwareTrace::ArmSpe,
            _ => HardwareTrace::Other,
        }
    }

    /// That it is there, and how it is read.
    pub(super) fn in_words(self) -> String {
        let (name, options) = match self {
            // An instruction each 100 microseconds, with its callers.
            HardwareTrace::IntelPt => ("Intel PT", "i100usg"),
            HardwareTrace::CoreSight => ("Arm CoreSight", "i100usg"),
            HardwareTrace::IntelBts => ("Intel BTS", "i1000i"),
            HardwareTrace::ArmSpe => ("Arm SPE", "i1000i"),
            HardwareTrace::Other => ("a tracing unit", "i1000i"),
        };
        format!(
            "a trace of {name}, which only perf can decode: import the output of perf script --itrace={options} > \
             trace.txt"
        )
    }
}
