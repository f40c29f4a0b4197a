//! Words for a bundle: on one line, and without the folders that would say whose machine it was.

/// Folders of the kernel: they are the same everywhere and say what to look at.
const KERNEL: [&str; 4] = ["/proc/sys/", "/sys/kernel/", "/sys/devices/", "/sys/bus/"];
/// Folders in which each entry is named for a user.
const HOMES: [&str; 2] = ["home", "Users"];

/// The text on one line, with only the last part of every path: `.../my.cnf` for `/home/anna/my.cnf`. Folders of the kernel stay; those of
/// cgroups do not, as they are named for users and containers. A folder with a space in its name ends at the space.
pub fn without_folders(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | ']' | ',' | ';' | '<' | '>' | '|');
    // In the middle of a word a slash divides, as in 300/s, and in an address it comes after the host.
    let begins_after = |c: char| !(c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '*' | '~'));
    // On a terminal, the fix of an error is a line of its own.
    let text = text.replace("\nfix: ", "; ");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_address = before == ':' && rest.starts_with("//") && !rest.starts_with("///");
        let is_path = (rest.starts_with('/') && !is_address) || rest.starts_with("~/");
        let end = rest.find(ends).unwrap_or(rest.len());
        let path = &rest[..end];
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let has_folders = parts.len() > 1;
        let is_home = matches!(parts.as_slice(), [homes, _] if HOMES.contains(homes));
        let is_device = matches!(parts.as_slice(), ["dev", _]);
        let is_kernels =
            is_device || (KERNEL.iter().any(|folder| path.starts_with(folder)) && !path.contains("/cgroup"));
        if is_path && begins_after(before) && has_folders && !last.is_empty() && !is_kernels {
            out.push_str("...");
            if !is_home {
                out.push('/');
                out.push_str(last);
            }
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
            (
                "the disk is full\nfix: free space in /a/b",
                "the disk is full; free space in .../b",
            ),
            ("/home/anna/x,/home/anna/y", ".../x,.../y"),
            ("a>/home/anna/x|/home/anna/y", "a>.../x|.../y"),
            ("unix:///home/anna/s.sock", "unix:.../s.sock"),
            ("in //home/anna/x", "in .../x"),
            ("in /home/anna", "in ..."),
            ("/dev/sda is full, /dev/shm/anna/x too", "/dev/sda is full, .../x too"),
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
