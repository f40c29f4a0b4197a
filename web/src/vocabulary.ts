/** Words that bundles and summaries hold, with what they are called. Made from the crate vocabulary by its test; not edited. */

export const threadStates = ["cpu", "spin", "runq", "lock", "io", "net", "sleep", "other"] as const;
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
};

export const roles = ["connection", "control", "background"] as const;
export type Role = (typeof roles)[number];
export const roleLabels: Record<Role, string> = {
  connection: "connection",
  control: "control",
  background: "background",
};

export const unwindStatuses = ["complete", "no_user_stack", "no_mapping", "no_rule", "unsupported_rule", "unreadable_memory", "too_deep", "no_progress", "not_taken", "frame_pointer", "unknown"] as const;
export type UnwindStatus = (typeof unwindStatuses)[number];
export const unwindStatusLabels: Record<UnwindStatus, string> = {
  complete: "complete",
  no_user_stack: "no_user_stack",
  no_mapping: "no_mapping",
  no_rule: "no_rule",
  unsupported_rule: "unsupported_rule",
  unreadable_memory: "unreadable_memory",
  too_deep: "too_deep",
  no_progress: "no_progress",
  not_taken: "not_taken",
  frame_pointer: "frame_pointer",
  unknown: "unknown",
};

export const wakerKinds = ["same_process", "other_process", "kernel"] as const;
export type WakerKind = (typeof wakerKinds)[number];
export const wakerKindLabels: Record<WakerKind, string> = {
  same_process: "same_process",
  other_process: "other_process",
  kernel: "kernel",
};

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
export const operationLabels: Record<Operation, string> = {
  transaction: "transaction",
  statement: "statement",
};
