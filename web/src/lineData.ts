/** The judged cache lines of the hot code, as crates/report/src/html/lines.rs packs them. Times are CPU microseconds. */

import { packedJson } from "./packed.ts";

export type LineKind = "false_sharing" | "lock_shares_line" | "independent_writers" | "true_sharing" | "longer_lines_only";
export type PlaceRole = "read_mostly" | "written" | "lock" | "address_passed" | "unused";

export interface LinePlace {
  name: string;
  /** Bytes from the line's start; negative where it begins before it. */
  offset: number;
  size: number;
  role: PlaceRole;
  readers: number;
  writers: number;
  address_passed_by: number;
  rare_writers: number;
}

export interface LineToucher {
  place: number;
  function: string;
  writes: boolean;
  locked: boolean;
  in_spin_loop: boolean;
  instructions: number;
  address: number | null;
  costs: number[];
  samples: number;
}

export interface Line {
  module: string;
  address: number;
  bytes: number;
  kind: LineKind;
  /** Whether the run shows that it costs anything, which `scaleprof cachelines` asks too. */
  costs_something: boolean;
  sentence: string;
  advice: string[];
  evidence: [holds: boolean | null, words: string][];
  variables: LinePlace[];
  /** Time of a transaction and half of its 95 % interval, by rung. */
  costs: ([number, number | null] | null)[];
  samples: number;
  touchers: LineToucher[];
  more_touchers: number;
}

/** An instruction that got dearer where the rest of its function did not; times at the two rungs that findings compare. */
export interface WaitingInstruction {
  module: string;
  address: number;
  function: string;
  source: string | null;
  /** Place of the line that it touches among those that are shown. */
  line: number | null;
  costs: [number, number];
  rest: [number, number];
}

export interface Lines {
  per: "transaction" | "second";
  /** Connections (null for a watch) and all CPU time of a transaction. */
  rungs: [number | null, number][];
  omitted: number;
  lines: Line[];
  waiting: WaitingInstruction[];
}

/** Null where the bundle did not keep who touches what. */
export function lines(): Promise<Lines> | null {
  return packedJson<Lines>("lines");
}
