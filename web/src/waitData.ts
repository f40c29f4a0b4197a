/** Who waits for whom, as crates/report/src/html/waits.rs writes it. All figures are mean numbers of threads. */

import type { Estimate } from "./data.ts";
import type { ThreadState, WakerKind } from "./vocabulary.ts";

export interface Rest { count: number; threads: number }

/** Functions by their numbers: the path outermost first, the few that say what it is about innermost first. */
export interface Place { path: number[]; label: number[] }

export interface LockName {
  /** Whether it is known for what was waited. */
  is_seen: boolean;
  /** Null for a lock on the heap. */
  name: string | null;
  module: string | null;
  operations: string[];
  waited_for_in: number[];
}

/** Threads whose holder is known, of whom only the waker is, and neither. */
export type Known = [number, number, number];

export interface Waiter { place: Place; on_cpu: boolean; threads: Estimate; samples: number }
export interface WaitsFor extends LockName { lock: number | null; share: number }
export interface Holder { place: Place | null; state: ThreadState | null; threads: number; samples: number; waits_for: WaitsFor[] }
export interface Waker { kind: WakerKind; place: Place | null; threads: number; samples: number }

export interface WaitedLock extends LockName {
  waiting: Estimate;
  on_cpu: number;
  samples: number;
  attribution: Known;
  waiters: Waiter[];
  omitted_waiters: Rest;
  holders: Holder[];
  omitted_holders: Rest;
  wakers: Waker[];
  omitted_wakers: Rest;
}

export interface WaitRung {
  /** Null for a watch. */
  connections: number | null;
  measurements: number;
  seconds: number;
  waiting: Estimate;
  attribution: Known;
  holders_by: "per_wait" | "most_frequent_path" | "unknown";
  locks: WaitedLock[];
  omitted: Rest;
}

export interface Waits { functions: string[]; rungs: WaitRung[] }
