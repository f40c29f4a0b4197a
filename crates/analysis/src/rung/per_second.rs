//! A server that was only watched, as a rung.

use super::RungResult;
use crate::instruction_costs::InstructionCosts;
use crate::intervals::Measured;
use crate::latency::Histogram;
use crate::lock_costs::LockCosts;
use crate::path_costs::PathCosts;
use scaleprof_bundle::{Ledger, RungSummary};
use std::collections::BTreeMap;

impl RungResult {
    /// One connection that ran one transaction in every second: all figures per transaction are per second.
    pub(crate) fn per_second(ledger: Ledger, costs: PathCosts) -> RungResult {
        let throughput = Measured {
            value: 1.0,
            error: None,
        };
        let summary = RungSummary {
            connections: 1,
            repeat_count: 1,
            throughput: throughput.estimate(),
            latency_ms: Histogram::of([]).latency_ms(),
            response_ms: None,
            errors: BTreeMap::new(),
            steady: true,
            unsteady_reason: None,
            jitter: None,
            finished_seconds: None,
            warmup_seconds: Vec::new(),
            client_limited: false,
            client_limited_reason: None,
            littles_law_ratio: None,
            effective_concurrency: None,
            too_few_at_work: false,
            load_threads: None,
            client_cpus: None,
            noise_cpu_share: None,
            steal_share: None,
            busy_share: None,
            iron_law: None,
            context_switches_per_txn: None,
            per_txn: BTreeMap::new(),
            statements: Vec::new(),
            transactions: Vec::new(),
            long_run: None,
            tpcc: None,
            replicas: Vec::new(),
            neighbours: Vec::new(),
            ledger: Some(ledger),
            paths: Vec::new(),
            locks: Vec::new(),
        };
        RungResult {
            summary,
            throughput,
            measurements: Vec::new(),
            missing: Vec::new(),
            warnings: Vec::new(),
            costs,
            lock_costs: LockCosts::default(),
            instructions: InstructionCosts::default(),
            courses: Vec::new(),
            too_short_to_settle: false,
            transactions: 0.0,
        }
    }
}
