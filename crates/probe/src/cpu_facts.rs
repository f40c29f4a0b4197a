//! Pure readers of the texts that describe a machine: `/proc/cpuinfo`, `/proc/meminfo`, `/etc/os-release`.

/// What `/proc/cpuinfo` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuInfo {
    /// Model of the first CPU.
    pub model: Option<String>,
    /// Number of sockets, where the kernel tells.
    pub sockets: Option<usize>,
    /// Number of cores (two CPUs of one core share its units), where the kernel tells.
    pub cores: Option<usize>,
    /// The CPU says that it is a virtual one (x86 only).
    pub hypervisor_flag: bool,
}

/// Reads `/proc/cpuinfo`. Its keys differ between architectures; what is not there stays `None`.
pub fn parse_cpuinfo(text: &str) -> CpuInfo {
    let mut info = CpuInfo::default();
    let mut sockets = std::collections::BTreeSet::new();
    let mut cores = std::collections::BTreeSet::new();
    let mut socket = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key.trim() {
            // x86 says "model name", others "cpu model", "cpu" or "Model".
            "model name" | "cpu model" | "cpu" | "Model" if info.model.is_none() && !value.is_empty() => {
                info.model = Some(value.to_owned());
            }
            "physical id" => {
                socket = Some(value);
                sockets.insert(value);
            }
            "core id" => {
                cores.insert((socket, value));
            }
            "flags" => info.hypervisor_flag |= value.split(' ').any(|flag| flag == "hypervisor"),
            _ => {}
        }
    }
    info.sockets = Some(sockets.len()).filter(|n| *n > 0);
    info.cores = Some(cores.len()).filter(|n| *n > 0);
    info
}

/// A value of `/proc/meminfo` in bytes (the file says kB and means KiB).
pub fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// A value of `/etc/os-release` without its quotes (man 5 os-release).
pub fn os_release(text: &str, key: &str) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?
        .trim();
    let bare = [('"', '"'), ('\'', '\'')]
        .iter()
        .find_map(|(open, close)| value.strip_prefix(*open)?.strip_suffix(*close))
        .unwrap_or(value);
    Some(bare.to_owned())
}

/// The choice that stands in brackets, as in `always [madvise] never`.
pub fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

/// Major and minor number of a kernel release such as `6.1.0-28-amd64`.
pub fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cores_of_two_sockets_are_not_taken_for_one() {
        let cpu = |socket: u32, core: u32| {
            format!(
                "processor\t: 0\nmodel name\t: A CPU\nphysical id\t: {socket}\ncore id\t\t: {core}\nflags\t\t: fpu hypervisor\n\n"
            )
        };
        let text = [cpu(0, 0), cpu(0, 0), cpu(0, 1), cpu(1, 0)].concat();
        let info = parse_cpuinfo(&text);
        assert_eq!(info.model.as_deref(), Some("A CPU"));
        assert_eq!(
            (info.sockets, info.cores, info.hypervisor_flag),
            (Some(2), Some(3), true)
        );
    }

    #[test]
    fn what_a_file_does_not_say_is_none() {
        assert_eq!(parse_cpuinfo("processor\t: 0\nBogoMIPS\t: 50.00\n"), CpuInfo::default());
        assert_eq!(meminfo_bytes("MemTotal:  24 kB\n", "MemTotal"), Some(24576));
        assert_eq!(meminfo_bytes("MemTotal:  24 kB\n", "Mem"), None);
    }

    #[test]
    fn quotes_are_taken_off_values() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n";
        assert_eq!(os_release(text, "PRETTY_NAME").as_deref(), Some("Debian GNU/Linux 12"));
        assert_eq!(os_release(text, "ID").as_deref(), Some("debian"));
        assert_eq!(os_release(text, "NAME"), None);
    }

    #[test]
    fn choices_and_releases_are_read() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(kernel_version("6.18.44-vendor"), Some((6, 18)));
        assert_eq!(kernel_version("5.15"), Some((5, 15)));
        assert_eq!(kernel_version("x"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let text = String::from_utf8_lossy(&bytes);
            let _ = parse_cpuinfo(&text);
            let _ = (meminfo_bytes(&text, ""), os_release(&text, ""), chosen(&text), kernel_version(&text));
        }

        #[test]
        fn any_quotes_are_read_without_panic(value in "[\"'a=\\[\\]]{0,8}") {
            let _ = (os_release(&format!("K={value}"), "K"), chosen(&value));
        }
    }
}
