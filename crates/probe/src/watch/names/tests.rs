use std::ffi::{CString, c_void};
use std::process::Command;

use super::*;
use crate::watch::code::ProcessCode;

fn library(path: &Path, function: &str) {
    let source = path.with_extension("c");
    std::fs::write(&source, format!("int {function}(int x) {{ return x + 1; }}")).expect("written");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([path, &source])
        .status();
    assert!(built.expect("cc runs").success());
}

/// A library of this very process, until it is dropped.
struct Loaded(*mut c_void);

impl Loaded {
    fn load(path: &Path) -> Self {
        let path = CString::new(path.to_str().expect("text")).expect("text");
        // SAFETY: it has one function and runs nothing when it is loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Self(handle)
    }

    fn address(&self, function: &str) -> u64 {
        let function = CString::new(function).expect("text");
        // SAFETY: the handle is open.
        let address = unsafe { libc::dlsym(self.0, function.as_ptr()) };
        assert!(!address.is_null());
        address as u64
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: nobody holds anything of it.
        unsafe { libc::dlclose(self.0) };
    }
}

/// A plugin that is installed anew has the old one's path.
#[test]
fn a_file_that_was_replaced_and_loaded_again_has_its_own_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plugin.so");
    let mut names = ProcessNames::new(SymbolSearch::nowhere());
    for function in ["first", "later"] {
        let new = folder.path().join("new.so");
        library(&new, function);
        std::fs::rename(&new, &path).expect("installed");
        let loaded = Loaded::load(&path);
        names.follow(ProcessCode::of(std::process::id()).expect("readable").map());
        let frames = names.frames(loaded.address(function), false);
        let named: Vec<_> = frames
            .iter()
            .map(|frame| (&*frame.module, frame.function.as_deref()))
            .collect();
        assert_eq!(named, [("plugin.so", Some(function))]);
    }
}
