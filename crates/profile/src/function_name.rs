//! By which name a function goes, here and in the tools that read what is exported.

use crate::{Frame, KERNEL, SCALEPROF};

/// What stands behind the names of the kernel's functions.
pub const KERNEL_SUFFIX: &str = " [k]";

impl Frame {
    /// Whether it is of the kernel itself or of one of its modules, such as `[ext4]`.
    pub fn is_of_kernel(&self) -> bool {
        is_of_kernel(&self.module)
    }

    /// The name of its function, as [`function_name`] gives it.
    pub fn function_name(&self) -> String {
        function_name(&self.module, self.function.as_deref(), self.address)
    }
}

fn is_of_kernel(module: &str) -> bool {
    module.starts_with('[') && module != "[vdso]" && module != SCALEPROF
}

/// What stands in a call path for a place in `module`: its function without what compilers append to the parts of one, or the
/// module with the address where nothing names it. Names of the kernel's functions end in [`KERNEL_SUFFIX`].
pub fn function_name(module: &str, function: Option<&str>, address: i64) -> String {
    match function {
        Some(function) if is_of_kernel(module) => format!("{}{KERNEL_SUFFIX}", without_clone_suffix(function)),
        Some(function) => without_clone_suffix(function).to_owned(),
        // Of a kernel without names not even the offset in a function is known.
        None if module == KERNEL && address == 0 => KERNEL.to_owned(),
        None => format!("{module}+{address:#x}"),
    }
}

/// Parts that compilers split off or copy belong to the function: `f.part.0`, `f.constprop.1`, `f.isra.0`, `f.cold`,
/// `f.lto_priv.3`.
pub fn without_clone_suffix(function: &str) -> &str {
    let mut name = function;
    loop {
        let shorter = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let shorter = if shorter.len() < name.len() {
            shorter.strip_suffix('.').unwrap_or(name)
        } else {
            name
        };
        let cut = [".part", ".constprop", ".isra", ".cold", ".lto_priv"]
            .iter()
            .find_map(|suffix| shorter.strip_suffix(suffix));
        match cut {
            Some(rest) if !rest.is_empty() => name = rest,
            _ => return name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_function_are_the_function() {
        for (name, function) in [
            ("mtr_commit", "mtr_commit"),
            ("buf_page_get.part.0", "buf_page_get"),
            ("f.isra.0.constprop.12", "f"),
            ("row_search(int).cold", "row_search(int)"),
            ("f.lto_priv.0.cold", "f"),
            ("operator new", "operator new"),
            ("f32", "f32"),
            ("a.7", "a.7"),
            (".cold", ".cold"),
        ] {
            assert_eq!(without_clone_suffix(name), function);
        }
    }

    #[test]
    fn functions_of_the_kernel_are_marked_and_unnamed_places_have_an_address() {
        for (module, function, name) in [
            ("mysqld", Some("main"), "main"),
            ("[kernel]", Some("futex_wait.isra.0"), "futex_wait [k]"),
            ("[ext4]", Some("ext4_sync_file"), "ext4_sync_file [k]"),
            ("[vdso]", Some("__vdso_clock_gettime"), "__vdso_clock_gettime"),
            (SCALEPROF, Some("[incomplete: no_rule]"), "[incomplete: no_rule]"),
            ("libc.so.6", None, "libc.so.6+0x1f"),
        ] {
            assert_eq!(function_name(module, function, 31), name);
        }
    }
}
