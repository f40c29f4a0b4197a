//! Why libbpf failed.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::PrintLevel;

use crate::error::ProbeError;

/// What libbpf says on the way: kept for the error message instead of being printed.
pub(super) struct Complaints;

const LAST_LINES: usize = 12;

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Complaints {
    /// Begins to keep what is said.
    pub(super) fn listen() -> Self {
        fn keep(_: PrintLevel, text: String) {
            let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
            // The verifier's log can have thousands of lines; the last ones say why.
            if said.len() >= 40 {
                said.remove(0);
            }
            said.push(text.trim_end().to_owned());
        }
        SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
        libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
        Self
    }

    /// Makes the error of a step that failed, with what was said of it.
    pub(super) fn failed(&self, doing: &'static str) -> impl FnOnce(libbpf_rs::Error) -> ProbeError + '_ {
        move |error| ProbeError::Bpf {
            doing,
            why: self.explain(&error),
        }
    }

    fn explain(&self, error: &libbpf_rs::Error) -> String {
        let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        // The verifier's log has thousands of lines; the last ones say why.
        let lines: Vec<&str> = said.iter().flat_map(|text| text.lines()).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        match last.is_empty() {
            true => format!("{error:#}"),
            false => format!("{error:#}\n{last}"),
        }
    }
}
