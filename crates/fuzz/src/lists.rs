//! Texts of lines: lists of functions, counters, statements.

use scaleprof_binary::kernel_symbols::KernelSymbols;
use scaleprof_binary::perf_map::PerfMap;
use scaleprof_profile::perf_stat::PerfStat;
use scaleprof_workload::{Repetition, Script};

/// Addresses that are looked up in a list: the ends of all, and some between.
const ADDRESSES: [u64; 6] = [0, 1, 0x1000, 0xffff_ffff_8100_0000, u64::MAX - 1, u64::MAX];

pub(crate) fn attempt_perf_stat(bytes: &[u8]) {
    let _ = PerfStat::parse(&String::from_utf8_lossy(bytes));
}

pub(crate) fn attempt_kernel_symbols(bytes: &[u8]) {
    let Ok(symbols) = KernelSymbols::from_text(bytes) else {
        return;
    };
    for address in ADDRESSES {
        if let Some((_, offset, _)) = symbols.function(address) {
            assert!(offset <= address);
        }
        let _ = symbols.variable(address);
        let _ = symbols.ends_at(address);
    }
}

pub(crate) fn attempt_perf_map(bytes: &[u8]) {
    let map = PerfMap::parse(&String::from_utf8_lossy(bytes));
    for address in ADDRESSES {
        if let Some((_, offset)) = map.function(address) {
            assert!(offset <= address);
        }
    }
}

pub(crate) fn attempt_sql_script(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for repetition in [Repetition::Loop, Repetition::Once] {
        let _ = Script::parse(&text, repetition);
    }
    if let Ok(statements) = Script::split(&text) {
        assert!(statements.iter().map(|statement| statement.len()).sum::<usize>() <= text.len());
    }
}
