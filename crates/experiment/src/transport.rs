//! Which system calls carry the load, said before a run and by `check`.

use scaleprof_probe::CheckItem;
use scaleprof_workload::{TransportChoice, UringUnusable};
use std::io::ErrorKind;

/// What a report says where `auto` fell back to epoll.
pub(crate) fn fallback_warning(why: &UringUnusable) -> String {
    let UringUnusable { step, source } = why;
    let how = match source.kind() {
        ErrorKind::PermissionDenied => format!("; to allow it: {}", fix(why)),
        _ => String::new(),
    };
    format!("the load's client uses epoll, as io_uring does not work here ({step}: {source}){how}")
}

/// Does once what the load's client does with io_uring.
pub fn check_transport() -> CheckItem {
    const TOPIC: &str = "io_uring";
    let fallback = match TransportChoice::Auto.choose() {
        Ok(chosen) => chosen.fallback,
        // `auto` always finds a way.
        Err(error) => return CheckItem::warn(TOPIC, error.to_string(), "use --transport epoll"),
    };
    match fallback {
        None => CheckItem::ok(
            TOPIC,
            "a ring with registered buffers sends and receives; the load's client uses it",
        ),
        Some(why) => {
            let UringUnusable { step, source } = &why;
            CheckItem::warn(
                TOPIC,
                format!("it does not work here ({step}: {source}): the load's client uses epoll"),
                fix(&why),
            )
        }
    }
}

fn fix(why: &UringUnusable) -> &'static str {
    match why.source.kind() {
        ErrorKind::PermissionDenied => {
            "sudo sysctl -w kernel.io_uring_disabled=0 (in a container: also its seccomp profile)"
        }
        _ => {
            "nothing need be done: every figure is measured over epoll too; Debian's Linux 6.1 and 6.12 have all that io_uring needs"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn refused(code: i32) -> UringUnusable {
        UringUnusable {
            step: "registering receive buffers",
            source: io::Error::from_raw_os_error(code),
        }
    }

    #[test]
    fn a_setting_is_blamed_only_for_what_it_forbids() {
        const EPERM: i32 = 1;
        const EINVAL: i32 = 22;
        assert!(fix(&refused(EPERM)).contains("io_uring_disabled"));
        assert!(!fix(&refused(EINVAL)).contains("sudo"));
        let warning = fallback_warning(&refused(EINVAL));
        assert!(
            warning.contains("registering receive buffers: Invalid argument"),
            "{warning}"
        );
    }
}
