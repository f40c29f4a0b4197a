//! Words for a bundle, without the folders that would say whose machine it was.

/// Folders of the kernel: they are the same everywhere and say what to look at.
const KERNEL: [&str; 5] = ["/proc/sys/", "/sys/kernel/", "/sys/devices/", "/sys/bus/", "/dev/"];

/// The text with only the last part of every path: `.../my.cnf` for `/home/anna/my.cnf`. Folders of the kernel stay; those of
/// cgroups do not, as they are named for users and containers.
pub fn without_folders(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | ']' | ',' | ';' | '<' | '>');
    let begins_after = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | '[' | '=' | ':');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_path = (rest.starts_with('/') && !rest.starts_with("//")) || rest.starts_with("~/");
        let end = rest.find(ends).unwrap_or(rest.len());
        let path = &rest[..end];
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let has_folders = path.trim_end_matches('/').matches('/').count() > 1 || path.starts_with('~');
        let is_kernels = KERNEL.iter().any(|folder| path.starts_with(folder)) && !path.contains("/cgroup");
        if is_path && begins_after(before) && has_folders && !last.is_empty() && !is_kernels {
            out.push_str(".../");
            out.push_str(last);
            before = last.chars().next_back().unwrap_or(' ');
            rest = &rest[end..];
        } else {
            out.push(first);
            before = first;
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_left_out_and_all_else_stays() {
        for (text, shown) in [
            ("cannot read /home/anna/x.cnf, sorry", "cannot read .../x.cnf, sorry"),
            ("--output=/home/anna/run/", "--output=.../run"),
            ("(~/secret/place)", "(.../place)"),
            ("~/x", ".../x"),
            (
                "13 300/s at 64, N/X, storage/innobase/ut.cc",
                "13 300/s at 64, N/X, storage/innobase/ut.cc",
            ),
            ("a / b // c", "a / b // c"),
            ("operator/(int)", "operator/(int)"),
            ("/tmp", "/tmp"),
            ("https://example.org/a/b", "https://example.org/a/b"),
            (
                "/proc/sys/kernel/perf_event_paranoid is 4",
                "/proc/sys/kernel/perf_event_paranoid is 4",
            ),
            ("/sys/fs/cgroup/user.slice/user-1000.slice/cpu.max is", ".../cpu.max is"),
            ("über /a/ß é", "über .../ß é"),
        ] {
            assert_eq!(without_folders(text), shown);
        }
    }
}
