/** The data of a comparison, as crates/report/src/diff_page.rs and crates/analysis/src/comparison write them. */

import type { Estimate, Manifest, Missing } from "./data.ts";
import { number } from "./format.ts";
import type { ThreadState } from "./vocabulary.ts";

/** A figure of both runs; null where it was not measured. */
export interface Both { a: number | null; b: number | null }

/** Something that is not the same in both, and how much it spoils the comparison. */
export interface Difference { what: string; a: string | null; b: string | null; effect: "intended" | "confounds" | "incomparable" }

export interface SettingChange { name: string; a: string | null; b: string | null }

export interface StateChange { state: ThreadState; seconds_per_txn: Both; change: Estimate }

/** What of the change of a rung is told, seconds per transaction. */
export interface Unexplained { total: number; uniform: number; listed: number; not_listed: Estimate }

/** One rung in both runs. */
export interface RungChange {
  connections: number;
  /** Measurements in A and in B. */
  measurements: [number, number];
  throughput: Both;
  throughput_ratio: Estimate | null;
  throughput_p: number | null;
  cpu_seconds_per_txn: Both;
  cpu_ratio: Estimate | null;
  p95_ms: Both;
  states: StateChange[];
  code_kinds: { kind: string; seconds_per_txn: Both }[];
  uniform_slowdown: number;
  busy: boolean;
  /** Whether stacks were sampled in A, and in B: call paths are compared where they were in both. */
  stacks: [boolean, boolean];
  unexplained: Unexplained | null;
  notes: string[];
}

export type Course = "new" | "gone" | "scales_worse" | "scales_better" | "slower_everywhere" | "faster_everywhere" | "slower" | "faster";

/** A call path that costs a transaction something else than before. */
export interface PathChange {
  connections: number;
  state: ThreadState | "cpu and spin";
  path: string[];
  course: Course;
  seconds_per_txn: Both;
  change: Estimate;
  share: number;
  beyond_base: Estimate | null;
  p: number | null;
}

export interface Comparison {
  /** Where it is a second, there is one rung, without throughput, and a second stands wherever a transaction is written. */
  per: "transaction" | "second";
  sentence: string;
  servers: [string, string];
  started_at: [string, string];
  differences: Difference[];
  settings: SettingChange[];
  base_rung: number | null;
  rungs: RungChange[];
  paths: PathChange[];
  /** Why the call paths of both cannot be paired, as a sentence but for its end. */
  unpaired: string | null;
  warnings: string[];
}

/** A rung of one run by itself. */
export interface OneRung { connections: number; throughput: Estimate; measurements: number[]; steady: boolean; client_limited: boolean }

export interface Run {
  name: string;
  started_at: string;
  server: Manifest["server"];
  workload: Manifest["workload"];
  machine: Manifest["machine"];
  warnings: string[];
  /** Connections of the rungs at which stacks were sampled. */
  sampled: number[];
  rungs: OneRung[];
  missing: Missing[];
}

export interface Diff {
  scaleprof: string;
  comparison: Comparison;
  /** Whether call paths of both have the same names. */
  paired: boolean;
  /** The rung that the page was asked for. */
  connections: number | null;
  runs: [Run, Run];
}

/** Whether the servers were only watched, so that times are per second. */
export function isWatched({ comparison }: Diff): boolean {
  return comparison.per === "second";
}

/** The unit of columns of times. */
export function costUnit(diff: Diff): string {
  return isWatched(diff) ? "µs/s" : "µs/tx";
}

/** A change of a rung marked so is beyond chance, as in crates/analysis/src/comparison.rs. */
const falseAlarms = 0.05;

/** Whether the throughput of a rung changed beyond chance. */
export function hasChanged(rung: RungChange): boolean {
  return rung.throughput_p !== null && rung.throughput_p <= falseAlarms;
}

/** A run as the page calls it: its letter, and the name of its folder. */
export function called({ runs }: Diff, side: 0 | 1): string {
  return `${"AB"[side]}${runs[side].name ? ` ${runs[side].name}` : ""}`;
}

/** Seconds as microseconds with their sign. */
export function signedMicros(seconds: number): string {
  return `${seconds > 0 ? "+" : ""}${number(seconds * 1e6)}`;
}

/** The rung whose changes are shown at first: what was asked for, else the last with a listed call path, else the last. */
export function firstRung({ comparison: { rungs, paths }, connections }: Diff): number {
  const listed = rungs.findLast((rung) => paths.some((path) => path.connections === rung.connections));
  return connections ?? (listed ?? rungs.at(-1))?.connections ?? 0;
}

/** Reads the data out of the page; throws where they are not there. */
export function readDiff(): Diff {
  const data = JSON.parse(document.getElementById("data")?.textContent ?? "null");
  if (!data?.comparison || !data?.runs) throw new Error(data?.unreadable ?? "this page holds no data");
  return data as Diff;
}
