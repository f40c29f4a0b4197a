/** Words that bundles and summaries hold, with what they are called. Made from the crate vocabulary by its test; not edited. */

export const threadStates = ["cpu", "spin", "runq", "lock", "io", "net", "sleep", "other", "idle"] as const;
export type ThreadState = (typeof threadStates)[number];
export const threadStateLabels: Record<ThreadState, string> = {
  cpu: "on a CPU",
  spin: "spinning",
  runq: "waiting for a CPU",
  lock: "waiting for a lock",
  io: "waiting for a disk",
  net: "waiting for the client",
  sleep: "asleep",
  other: "blocked otherwise",
  idle: "waiting for work",
};

export const roles = ["connection", "control", "background"] as const;
export type Role = (typeof roles)[number];

export const unwindStatuses = ["complete", "no_user_stack", "no_mapping", "no_rule", "unsupported_rule", "unreadable_memory", "too_deep", "no_progress", "not_taken", "frame_pointer", "unknown"] as const;
export type UnwindStatus = (typeof unwindStatuses)[number];

export const wakerKinds = ["same_process", "other_process", "kernel"] as const;
export type WakerKind = (typeof wakerKinds)[number];

export const measurementOutcomes = ["complete", "failed", "server_died", "interrupted"] as const;
export type MeasurementOutcome = (typeof measurementOutcomes)[number];
export const measurementOutcomeLabels: Record<MeasurementOutcome, string> = {
  complete: "complete",
  failed: "a statement failed",
  server_died: "the server died",
  interrupted: "it was interrupted",
};

export const operations = ["transaction", "statement"] as const;
export type Operation = (typeof operations)[number];

export const findingKinds = ["spin_waiting", "row_lock_waits", "lock_convoy", "kernel_spinlock", "scheduler_overhead", "allocator_contention", "page_faults", "log_stall", "disk_bound", "blocked", "retries", "cache_line_sharing", "cost_growth", "slower_everywhere", "client_limited", "not_warmed_up", "drifting"] as const;
export type FindingKind = (typeof findingKinds)[number];

export const shareOfs = ["cpu_time", "connection_time", "transactions", "rungs", "throughput"] as const;
export type ShareOf = (typeof shareOfs)[number];
export const shareOfLabels: Record<ShareOf, string> = {
  cpu_time: "a transaction’s CPU time",
  connection_time: "the connections’ time",
  transactions: "the transactions",
  rungs: "the rungs",
  throughput: "the throughput",
};

export const growthShapes = ["constant", "linear", "worse"] as const;
export type GrowthShape = (typeof growthShapes)[number];
export const growthShapeLabels: Record<GrowthShape, string> = {
  constant: "the same at every rung",
  linear: "in proportion to the connections",
  worse: "faster than the connections",
};

export const runStates = ["running", "complete", "interrupted", "failed"] as const;
export type RunState = (typeof runStates)[number];

export const ladderVerdicts = ["scales", "declines", "falls_over", "inconclusive"] as const;
export type LadderVerdict = (typeof ladderVerdicts)[number];

export const experimentVerdicts = ["faster", "slower", "no_difference", "inconclusive"] as const;
export type ExperimentVerdict = (typeof experimentVerdicts)[number];
export const experimentVerdictLabels: Record<ExperimentVerdict, string> = {
  faster: "faster",
  slower: "slower",
  no_difference: "no difference",
  inconclusive: "inconclusive",
};

export const workloadNames = ["oltp_read_write", "oltp_read_only", "oltp_write_only", "oltp_point_select", "oltp_update_index", "oltp_update_non_index", "oltp_insert", "oltp_delete", "select_random_points", "select_random_ranges", "tpcc", "script", "watch", "imported"] as const;
export type WorkloadName = (typeof workloadNames)[number];
export const workloadNameLabels: Record<WorkloadName, string> = {
  oltp_read_write: "oltp_read_write",
  oltp_read_only: "oltp_read_only",
  oltp_write_only: "oltp_write_only",
  oltp_point_select: "oltp_point_select",
  oltp_update_index: "oltp_update_index",
  oltp_update_non_index: "oltp_update_non_index",
  oltp_insert: "oltp_insert",
  oltp_delete: "oltp_delete",
  select_random_points: "select_random_points",
  select_random_ranges: "select_random_ranges",
  tpcc: "tpcc",
  script: "statements of the user",
  watch: "external load",
  imported: "imported load",
};

export const loopWords = ["closed", "open"] as const;
export type LoopWord = (typeof loopWords)[number];
