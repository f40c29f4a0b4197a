//! What libbpf prints while programs are opened, loaded and attached: kept for the error, never on the terminal.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::PrintLevel;

use super::refusal::{BpfRefusal, KernelFacts};
use crate::error::ProbeError;

/// Listens to libbpf from now on.
pub(super) struct LibbpfLog;

/// The verifier's log can have thousands of lines; the last ones say why.
const MOST_LINES: usize = 400;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl LibbpfLog {
    /// Forgets what was printed before.
    pub(super) fn listen() -> Self {
        fn keep(_: PrintLevel, text: String) {
            let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
            lines.extend(text.lines().map(|line| line.trim_end().to_owned()));
            let excess = lines.len().saturating_sub(MOST_LINES);
            lines.drain(..excess);
        }
        LINES.lock().unwrap_or_else(PoisonError::into_inner).clear();
        libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
        Self
    }

    /// Makes the error of a step that failed, with what was printed about it.
    pub(super) fn failed(&self, doing: &'static str) -> impl FnOnce(libbpf_rs::Error) -> ProbeError + '_ {
        move |error| {
            let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let refusal = BpfRefusal::new(doing, &error, lines, &KernelFacts::of_this_machine());
            ProbeError::BpfRefused(Box::new(refusal))
        }
    }
}
