//! CPU time and network bytes of the whole machine.

/// CPU time of all CPUs together since boot, in clock ticks (10 ms), from the first line of `/proc/stat`
/// (man 5 proc_stat). Idle and iowait may fall a little between two reads: the kernel says that iowait is not reliable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineTimes {
    /// User mode, niced included; the time of guests is in it.
    pub user: u64,
    /// Kernel mode outside of interrupts.
    pub system: u64,
    /// Idle, nothing to wait for.
    pub idle: u64,
    /// Idle while a task waits for the disk.
    pub iowait: u64,
    /// Hardware and software interrupts.
    pub irq: u64,
    /// Time the hypervisor gave to others while this machine wanted to run.
    pub steal: u64,
}

/// Reads the first line of `/proc/stat`.
pub fn parse_proc_stat(text: &str) -> Option<MachineTimes> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let at = |index: usize| ticks.get(index).copied();
    Some(MachineTimes {
        user: at(0)?.wrapping_add(at(1)?),
        system: at(2)?,
        idle: at(3)?,
        iowait: at(4)?,
        irq: at(5)?.wrapping_add(at(6)?),
        steal: at(7)?,
    })
}

/// Bytes that went over the network since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetworkBytes {
    /// Bytes received.
    pub received: u64,
    /// Bytes transmitted.
    pub transmitted: u64,
}

/// One line of `/proc/net/dev` (man 5 proc_pid_net).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name, such as `eth0`.
    pub name: &'a str,
    /// Its bytes since it came up.
    pub bytes: NetworkBytes,
}

/// Reads `/proc/net/dev`; lines of another form (the two of the heading) are passed over.
pub fn parse_net_dev(text: &str) -> Vec<Interface<'_>> {
    text.lines()
        .filter_map(|line| {
            // The name may hold colons itself (an alias), the figures may follow the last one without a blank.
            let (name, figures) = line.rsplit_once(':')?;
            let fields: Vec<u64> = figures.split_ascii_whitespace().map_while(|f| f.parse().ok()).collect();
            let bytes = NetworkBytes {
                received: *fields.first()?,
                transmitted: *fields.get(8)?,
            };
            Some(Interface {
                name: name.trim(),
                bytes,
            })
        })
        .collect()
}

/// Adds up the interfaces. Bytes over a bridge, a bond or a tunnel go over a device of the hardware too, so only
/// devices with hardware (`has_device`) count if there is one, else all but the loopback. The loopback never counts: its
/// bytes would stand in both sums, and none of them leaves the machine. `None` when there is nothing else.
pub fn network_bytes(interfaces: &[Interface<'_>], has_device: impl Fn(&str) -> bool) -> Option<NetworkBytes> {
    let outside: Vec<_> = interfaces.iter().filter(|i| i.name != "lo").collect();
    let hardware: Vec<_> = outside.iter().copied().filter(|i| has_device(i.name)).collect();
    let chosen = if hardware.is_empty() { outside } else { hardware };
    let sum = chosen.iter().fold(NetworkBytes::default(), |sum, i| NetworkBytes {
        received: sum.received.wrapping_add(i.bytes.received),
        transmitted: sum.transmitted.wrapping_add(i.bytes.transmitted),
    });
    (!chosen.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn niced_time_is_user_time_and_soft_interrupts_are_interrupts() {
        let text = "cpu  100 1 8 24 3 4 328 774 9 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        let times = MachineTimes {
            user: 101,
            system: 8,
            idle: 24,
            iowait: 3,
            irq: 332,
            steal: 774,
        };
        assert_eq!(parse_proc_stat(text), Some(times));
        assert_eq!(parse_proc_stat("cpu  100 1 8 24\n"), None);
    }

    const NET_DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1000 1 0 0 0 0 0 0 1000 1 0 0 0 0 0 0
  eth0:70 1 0 0 0 0 0 0 80 1 0 0 0 0 0 0
 bond0: 70 1 0 0 0 0 0 0 80 1 0 0 0 0 0 0
";

    #[test]
    fn no_byte_is_counted_twice() {
        let all = parse_net_dev(NET_DEV);
        assert_eq!(all.len(), 3);
        assert_eq!(
            network_bytes(&all, |n| n == "eth0"),
            Some(NetworkBytes {
                received: 70,
                transmitted: 80
            })
        );
        assert_eq!(network_bytes(&all[..1], |_| false), None);
        assert_eq!(
            network_bytes(&all[..2], |_| false),
            Some(NetworkBytes {
                received: 70,
                transmitted: 80
            })
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let text = String::from_utf8_lossy(&bytes);
            let _ = parse_proc_stat(&text);
            let _ = network_bytes(&parse_net_dev(&text), |name| name.len() > 3);
        }

        #[test]
        fn any_figures_are_summed_without_panic(figures in proptest::collection::vec(any::<u64>(), 10)) {
            let fields: Vec<String> = figures.iter().map(u64::to_string).collect();
            let times = parse_proc_stat(&format!("cpu  {}", fields.join(" "))).expect("ten fields");
            prop_assert_eq!(times.idle, figures[3]);
        }
    }
}
