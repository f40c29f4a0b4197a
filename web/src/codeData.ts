/** The machine code of the hot functions with its costs, as crates/report/src/html/code.rs packs it. Times are CPU microseconds. */

import { packedJson } from "./packed.ts";

/** Time of a transaction, half of its 95 % interval, the part in waiting loops, time in the kernel from there, samples. */
export type FunctionCost = [value: number, half: number | null, waiting: number, kernel: number, samples: number];

/** Rung, time of a transaction, half of its interval, time in the kernel, samples. */
export type InstructionCost = [rung: number, value: number, half: number | null, kernel: number, samples: number];

export type Row = [
  address: number, text: string, file: number, line: number, inlined: number, marks: number, target: number | null, data: number | null,
  costs: InstructionCost[],
];

export interface Region { omitted: number; rows: Row[] }

export interface CodeFunction {
  name: string;
  module: string;
  build_id: string | null;
  instructions: number;
  costs: FunctionCost[];
  regions: Region[];
}

export interface Code {
  /** What times are divided by: a second for a server that was only watched. */
  per: "transaction" | "second";
  /** Connections (null for a watch) and all CPU time of a transaction. */
  rungs: [number | null, number][];
  base: number | null;
  rung: number;
  covered: number;
  omitted: number;
  functions: CodeFunction[];
  strings: string[];
}

/** Marks of a row. */
export const marks = { spin: 1, target: 2, locked: 4, reads: 8, writes: 16, branches: 32 } as const;

/** Unpacked once for all who show it; null where the page holds none. */
let unpacked: Promise<Code> | null = null;
export function code(): Promise<Code> | null {
  unpacked ??= packedJson<Code>("code");
  return unpacked;
}

/** A word by its number; 0 is none. */
export function word(of: Code, number: number): string {
  return of.strings[number - 1] ?? "";
}
