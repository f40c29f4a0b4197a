//! Machines on which it matters that a watch rewrites the kernel's code (docs/adr/0022-attach-or-flag.md).

use crate::check_item::CheckItem;
use crate::machine;

const TOPIC: &str = "kernel code patching";

/// What may come of attaching programs here.
pub(crate) fn patching_item(cpu_model: Option<&str>) -> CheckItem {
    let list = |name: &str| machine::line(&format!("/sys/devices/system/cpu/{name}")).filter(|list| !list.is_empty());
    item(cpu_model, list("isolated").or_else(|| list("nohz_full")))
}

fn item(cpu_model: Option<&str>, isolated: Option<String>) -> CheckItem {
    if cpu_model.is_some_and(|model| model.starts_with("QEMU TCG")) {
        return CheckItem::warn(
            TOPIC,
            "QEMU emulates this CPU; versions before 9.0.2 can crash the machine when programs are attached",
            "run QEMU with -accel kvm, with -accel tcg,thread=single, or in version 9.0.2 or later",
        );
    }
    match isolated.filter(|list| list != "(null)") {
        Some(cpus) => CheckItem::warn(
            TOPIC,
            format!("a watch of a busy server interrupts the isolated CPUs {cpus} too, 50 to 500 times a second"),
            "attach once instead of repeatedly: scaleprof attach --pid PID --wait-budget 100",
        ),
        None => CheckItem::ok(
            TOPIC,
            "no isolated CPUs (isolcpus, nohz_full) that a watch would interrupt",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_item::Status;

    #[test]
    fn isolated_and_emulated_cpus_are_warned_of() {
        assert_eq!(item(Some("AMD EPYC"), None).status, Status::Ok);
        // What Linux prints for an empty nohz_full.
        assert_eq!(item(None, Some("(null)".to_owned())).status, Status::Ok);
        let isolated = item(Some("AMD EPYC"), Some("2-3".to_owned()));
        assert!(
            isolated.status == Status::Warn && isolated.message.contains("2-3"),
            "{isolated:?}"
        );
        assert_eq!(item(Some("QEMU TCG CPU version 2.5+"), None).status, Status::Warn);
    }
}
