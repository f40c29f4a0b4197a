/** The data of a report, as crates/report/src/html/page.rs and crates/bundle write them. */

import type { LongRun } from "./longRun.ts";
import type { ExperimentVerdict, FindingKind, GrowthShape, LadderVerdict, LoopWord, MeasurementOutcome, Operation, RunState, ShareOf, ThreadState, WorkloadName } from "./vocabulary.ts";
import type { Waits } from "./waitData.ts";

export interface Estimate { value: number; low: number | null; high: number | null }

export interface Latency {
  mean: number | null; p50: number | null; p95: number | null; p99: number | null; p999: number | null; max: number | null;
}

export interface IronLaw {
  cpus: number;
  utilisation: number;
  clock_hz: number | null;
  instructions_per_txn: number | null;
  cycles_per_instruction: number | null;
  cpu_seconds_per_txn: number;
  system_share: number | null;
  residual: number | null;
  residual_sources: string | null;
}

/** Seconds in each state of a thread; null where it could not be told from another. */
export type StateSeconds = Record<ThreadState, number | null>;

export interface Background { name: string; threads: number | null; seconds_per_second: StateSeconds }

export interface Ledger {
  seconds_per_txn: StateSeconds;
  connections_over_throughput: number | null;
  residual: number | null;
  states_residual: number | null;
  cpu_residual: number | null;
  background: Background[];
  uncharged_cpu_share: number | null;
  complete_stacks_share: number | null;
  samples: number | null;
  samples_lost: number | null;
  observed_waits_share: number | null;
}

export interface CallPath { state: ThreadState; path: string[]; seconds_per_txn: Estimate; samples: number }

export interface Lock {
  name: string | null;
  module: string | null;
  seconds_per_txn: Estimate;
  samples: number;
  waiter: string[];
  holder: string[];
  holder_samples: number;
}

export interface Rung {
  connections: number;
  repeat_count: number;
  throughput: Estimate;
  latency_ms: Latency;
  response_ms: Latency | null;
  errors: Record<string, number>;
  steady: boolean;
  unsteady_reason: string | null;
  jitter: number | null;
  long_run: LongRun | null;
  warmup_seconds: number[];
  client_limited: boolean;
  client_limited_reason: string | null;
  littles_law_ratio: number | null;
  effective_concurrency: number | null;
  too_few_at_work: boolean;
  load_threads: { count: number; cpu_share: number; run_queue_share: number } | null;
  client_cpus: number | null;
  noise_cpu_share: number | null;
  steal_share: number | null;
  busy_share: number | null;
  iron_law: IronLaw | null;
  context_switches_per_txn: number | null;
  per_txn: Record<string, number>;
  ledger: Ledger | null;
  paths: CallPath[];
  locks: Lock[];
}

export interface Decomposition {
  from: number;
  to: number;
  throughput: number;
  utilisation: number;
  clock: number | null;
  instructions: number | null;
  cycles_per_instruction: number | null;
  cpu_seconds: number;
  residual: number;
}

export interface Verdict {
  class: LadderVerdict;
  peak_connections: number;
  peak_throughput: Estimate;
  peak_band: [number, number];
  retention: Estimate | null;
  falls_over_at: number | null;
  decay_exponent: Estimate | null;
  decomposition: Decomposition | null;
  sentence: string;
}

export interface Usl { gamma: Estimate; sigma: Estimate; kappa: Estimate; peak_connections: Estimate | null; worst_residual: number }

export interface Finding {
  kind: FindingKind;
  title: string;
  lost_share: Estimate;
  /** What that is a part of: cpu_time, connection_time, transactions, rungs, throughput. */
  share_of: ShareOf;
  rungs: [number, number];
  path: string[];
  evidence: string[];
  try: string[];
  remedy_results: RemedyResult[];
}

/** A setting that a finding advises, tried: servers with it over servers without. */
export interface RemedyResult {
  setting: string;
  value: string;
  connections: number;
  throughput: Estimate | null;
  pairs: number;
  verdict: ExperimentVerdict | null;
  margin: number | null;
  caveat: string | null;
}

/** Threads of a server that was only watched; all times are thread-seconds per second. */
export interface WatchedThreads {
  threads: number | null;
  seconds_per_second: StateSeconds;
  lifetime_per_second: number | null;
  states_residual: number | null;
}

export interface WatchedLock { name: string | null; module: string | null; seconds_per_second: Estimate; samples: number; waiter: string[]; holder: string[]; holder_samples: number }

export interface Watch {
  seconds: number;
  connections: WatchedThreads;
  others: WatchedThreads;
  background: Background[];
  cpus_by_states: number | null;
  cpus_by_scheduler: number | null;
  cpu_residual: number | null;
  uncharged_cpu_share: number | null;
  complete_stacks_share: number | null;
  samples: number | null;
  samples_lost: number | null;
  observed_waits_share: number | null;
  locks: WatchedLock[];
}

export interface Missing { figure: string; reason: string }

/** The scaling profile: see docs/summary.md. */
export interface LostThreads { connections: number; effective_threads: number; cpus_busy: boolean; lost_threads: Partial<Record<ThreadState, Estimate>>; residual: number }
export interface LostPath { state: ThreadState; path: string[]; lost_threads: Estimate[]; shape: GrowthShape | null }
export interface SaturatedPath { path: string[]; active_threads: number[]; cap: number }
export interface ScalingProfile { base_connections: number; rungs: LostThreads[]; paths: LostPath[]; saturated: SaturatedPath[] }

export interface Summary {
  rungs: Rung[];
  verdict: Verdict | null;
  usl: Usl | null;
  usl_unavailable: string | null;
  /** What a crash may lose of what was committed. */
  durability: string | null;
  /** Why no causes were looked for. */
  findings_unavailable: string | null;
  /** How fast its replicas can follow. */
  replay_rates: { sentence: string }[];
  /** What it and its neighbours came to. */
  combined_throughput: string | null;
  /** Only of a server that was watched without a load of ours. */
  watch: Watch | null;
  scaling: ScalingProfile | null;
  findings: Finding[];
  /** What the findings explain of what a transaction takes more, an entry an account; see docs/summary.md. */
  explained: { account: string; sentence: string }[];
  /** Which rungs are compared with which, and why. */
  base_rungs: string | null;
  missing: Missing[];
  warnings: string[];
}

export interface Manifest {
  scaleprof: string;
  started_at: string;
  ended_at: string | null;
  state: RunState;
  problem: string | null;
  command: string[];
  server: {
    product: string; version: string; build_id: string | null; binary: string | null;
    cpus: string | null; cpu_count: number | null; shares_cpus_with_client: boolean | null;
  };
  workload: {
    name: WorkloadName; imported_as: string | null; tables: number | null; rows: number | null; distribution: string; protocol: string;
    isolation: string | null; seed: number; loop_kind: LoopWord | null; options: [string, string][];
  };
  machine: {
    cpu_model: string; cpus: number | null; numa_nodes: number | null; memory_bytes: number | null; kernel: string; architecture: string;
    distribution: string | null; hypervisor: string | null; governor: string | null; clock_source: string | null;
    transparent_huge_pages: string | null;
  };
  ladder: { connections: number[]; refined: number[]; seconds: number; repeats: number; idle_connections: number; rate: number | null };
  missing: Missing[];
  warnings: string[];
}

/** Columns of the per-second table of one measurement: rates per second, latencies in milliseconds. */
export interface Seconds {
  second: number[];
  transactions: number[];
  queries: number[];
  errors: number[];
  retries: number[];
  p50_ms: (number | null)[];
  p95_ms: (number | null)[];
  p99_ms: (number | null)[];
  max_ms: (number | null)[];
}

export interface Measurement {
  measurement: number;
  connections: number;
  idle_connections: number;
  repeat: number;
  offered_rate: number | null;
  connect_seconds: number;
  outcome: MeasurementOutcome;
  client_lag_p99_us: number | null;
  client_threads: number;
  client_resident_bytes: number | null;
  warmup_seconds: number | null;
  seconds: Seconds;
  counters: Record<string, (number | null)[]>;
}

export interface ErrorCount { connections: number; repeat: number; error_code: number; statement: string; count: number; retried: boolean }

export interface Statement { connections: number; operation: Operation; label: string; count: number; p50: number; p95: number; p99: number; max: number }

export interface QualityFigure { name: string; value: number | null; reason: string | null }

/** How much of what the threads did was seen; connections are null for a watch. */
export interface RungQuality { connections: number | null; figures: QualityFigure[] }

export interface Report {
  manifest: Manifest;
  summary: Summary;
  partial_measurements: number[];
  measurements: Measurement[];
  omitted_counters: string[];
  errors: ErrorCount[];
  settings: [string, string][];
  statements: Statement[];
  /** Null where no thread was seen to wait for a lock. */
  waits: Waits | null;
  quality: RungQuality[];
}

/** Reads the data out of the page; throws where they are not there. */
export function readReport(): Report {
  const data = JSON.parse(document.getElementById("data")?.textContent ?? "null");
  if (!data?.manifest || !data?.summary) throw new Error(data?.unreadable ?? "this page holds no data");
  return data as Report;
}
