/** The samples behind the flame graph and the heat map, as crates/report/src/html/profile.rs packs them. */

import { inflated } from "./packed.ts";
import type { Stretch } from "./measurementSpread.ts";

/** A call tree: every call path before those within it, siblings in the order in which they are drawn. */
export interface CallTree {
  count: number;
  /** Place of the function's name. */
  functionOf: Int32Array;
  /** Place of the caller; -1 for none. */
  parent: Int32Array;
  /** The place after the last path within. */
  end: Int32Array;
}

/** The samples that are kept, measurement by measurement, in each by state and call path. */
export interface Samples { node: Uint32Array; cell: Uint32Array; weight: Float32Array }

/** Threads' time and samples in each cell of a measurement. */
export interface Cells { weight: Float32Array; count: Uint32Array }

/** A state of a rung of which not every sample is kept: what is exact is told beside the samples. */
export interface Thinned {
  /** Time of each call path in all seconds that count. */
  sums: { node: Uint32Array; weight: Float32Array };
  /** The same by second, by its place among those that count: of heavy paths, and of some light ones that stand for others. */
  seconds: { node: Uint32Array; place: Uint32Array; weight: Float32Array };
}

export interface ProfiledMeasurement {
  measurement: number;
  repeat: number;
  seconds: number;
  /** Place of the measurement's first sample, and of the first one of each state and the end. */
  starts: number[];
  /** Samples of each state that were taken. */
  all: number[];
  /** All samples by cell, for each state of which not all are kept. */
  cells: (Cells | null)[];
  /** Place of each second among those that count in the rung; -1 for a second that does not. */
  countedAt: Int32Array;
}

export interface ProfiledRung {
  /** The run that it is of, on a page that compares two; else null. */
  side: "a" | "b" | null;
  /** Null for a watch. */
  connections: number | null;
  /** Transactions, or seconds of a watch, in each second that counts. */
  amounts: Float64Array;
  /** Which of these are of the same measurement. */
  stretches: Stretch[];
  measurements: ProfiledMeasurement[];
  /** By state; null where all samples are kept. */
  thinned: (Thinned | null)[];
}

export interface Profile {
  per: "transaction" | "second";
  /** The 97.5 % quantiles of Student's t at even steps of 1 over the degrees of freedom, from 0 to 1. */
  quantiles: number[];
  cellSeconds: number;
  cellsPerSecond: number;
  states: string[];
  functions: string[];
  isKernel: Uint8Array;
  calls: CallTree;
  samples: Samples;
  rungs: ProfiledRung[];
}

interface Header {
  per: "transaction" | "second";
  t_quantiles: number[];
  cell_us: number;
  states: string[];
  functions: string[];
  rungs: {
    side?: "a" | "b";
    connections: number | null;
    counted: [number, number, number][];
    measurements: { measurement: number; repeat: number; seconds: number; samples: number[]; all: number[] }[];
    thinned: { state: number; sums: number; seconds: number }[];
  }[];
  columns: { name: string; count: number; bytes: number }[];
}

/** The text in the page; null where nothing was sampled. */
export function packedProfile(): string | null {
  return document.getElementById("profile")?.textContent?.trim() || null;
}

/** Unpacks it; fails where it is damaged. */
export async function unpack(text: string): Promise<Profile> {
  return decode(await inflated(text));
}

function decode(bytes: Uint8Array): Profile {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Header;
  let at = 4 + length;
  const columns: Record<string, Uint32Array> = {};
  for (const { name, count, bytes: width } of header.columns) {
    columns[name] = joined(bytes.subarray(at, at + count * width), count, width);
    at += count * width;
  }
  if (at !== bytes.length) throw new Error("the samples in this page are damaged; make it again with scaleprof");
  const column = (name: string) => columns[name] ?? new Uint32Array(0);
  const thinned = thinnedFrom(column, 1e6 / header.cell_us);
  const rungs: ProfiledRung[] = [];
  let start = 0;
  for (const rung of header.rungs) {
    const measurements = rung.measurements.map((measurement): ProfiledMeasurement => {
      const starts = [start];
      for (const count of measurement.samples) starts.push((start += count));
      const countedAt = new Int32Array(measurement.seconds).fill(-1);
      rung.counted.forEach(([number, second], place) => {
        if (number === measurement.measurement && second < measurement.seconds) countedAt[second] = place;
      });
      return { measurement: measurement.measurement, repeat: measurement.repeat, seconds: measurement.seconds, starts, all: measurement.all, cells: header.states.map(() => null), countedAt };
    });
    const states: (Thinned | null)[] = header.states.map(() => null);
    for (const one of rung.thinned) states[one.state] = thinned(one, measurements);
    rungs.push({
      side: rung.side ?? null, connections: rung.connections, measurements, stretches: stretches(rung.counted.map(([measurement]) => measurement)),
      amounts: Float64Array.from(rung.counted, ([, , amount]) => amount), thinned: states,
    });
  }
  return {
    per: header.per, quantiles: header.t_quantiles, cellSeconds: header.cell_us / 1e6, cellsPerSecond: 1e6 / header.cell_us, states: header.states,
    functions: header.functions, isKernel: Uint8Array.from(header.functions, (name) => (name.endsWith(" [k]") ? 1 : 0)),
    calls: callTree(column("depth"), column("function")),
    samples: { node: absolute(column("node"), rungs), cell: column("cell"), weight: floats(column("weight")) },
    rungs,
  };
}

/** Numbers of which first all lowest bytes stand, then those above. */
function joined(bytes: Uint8Array, count: number, width: number): Uint32Array {
  const values = new Uint32Array(count);
  // Most columns have one to three bytes, and these loops run before the page's first graph is seen.
  if (width === 1) values.set(bytes);
  else if (width === 2) for (let row = 0; row < count; row++) values[row] = bytes[row]! | (bytes[row + count]! << 8);
  else if (width === 3) for (let row = 0; row < count; row++) values[row] = bytes[row]! | (bytes[row + count]! << 8) | (bytes[row + 2 * count]! << 16);
  else for (let at = 0; at < bytes.length; at++) values[at % count]! |= bytes[at]! << (8 * Math.floor(at / count));
  return values;
}

/** Cuts the columns of thinned states, which stand one after the other. */
function thinnedFrom(column: (name: string) => Uint32Array, cellsPerSecond: number): (one: Header["rungs"][number]["thinned"][number], measurements: ProfiledMeasurement[]) => Thinned {
  const [sumNode, sumWeight] = [column("sum_node"), floats(column("sum_weight"))];
  const [secondNode, secondPlace, secondWeight] = [column("second_node"), column("second_place"), floats(column("second_weight"))];
  const [cellWeight, cellCount] = [floats(column("cell_weight")), column("cell_count")];
  let [sum, second, cell] = [0, 0, 0];
  return (one, measurements) => {
    for (const measurement of measurements) {
      const end = cell + measurement.seconds * cellsPerSecond;
      measurement.cells[one.state] = { weight: cellWeight.subarray(cell, end), count: cellCount.subarray(cell, end) };
      cell = end;
    }
    const [sums, seconds] = [sum + one.sums, second + one.seconds];
    const found: Thinned = {
      sums: { node: added(sumNode.subarray(sum, sums)), weight: sumWeight.subarray(sum, sums) },
      seconds: { node: added(secondNode.subarray(second, seconds)), place: secondPlace.subarray(second, seconds), weight: secondWeight.subarray(second, seconds) },
    };
    [sum, second] = [sums, seconds];
    return found;
  };
}

function callTree(depth: Uint32Array, functions: Uint32Array): CallTree {
  const count = depth.length;
  const parent = new Int32Array(count);
  const end = new Int32Array(count);
  const open: number[] = [];
  for (let node = 0; node < count; node++) {
    while (open.length > depth[node]!) end[open.pop()!] = node;
    parent[node] = open.at(-1) ?? -1;
    open.push(node);
  }
  for (const node of open) end[node] = count;
  return { count, functionOf: Int32Array.from(functions), parent, end };
}

/** Steps within a state of a measurement into places. */
function absolute(steps: Uint32Array, rungs: ProfiledRung[]): Uint32Array {
  for (const { starts } of rungs.flatMap((rung) => rung.measurements)) {
    for (let state = 0; state + 1 < starts.length; state++) added(steps.subarray(starts[state], starts[state + 1]));
  }
  return steps;
}

/** Each step with all before it. */
function added(steps: Uint32Array): Uint32Array {
  for (let at = 1; at < steps.length; at++) steps[at]! += steps[at - 1]!;
  return steps;
}

/** Samples of some rungs: those that are kept, and all that were taken. */
export function samplesOf(rungs: ProfiledRung[]): { kept: number; all: number } {
  const measurements = rungs.flatMap((rung) => rung.measurements);
  return {
    kept: measurements.reduce((sum, { starts }) => sum + starts.at(-1)! - starts[0]!, 0),
    all: measurements.reduce((sum, { all }) => sum + all.reduce((one, other) => one + other, 0), 0),
  };
}

/** The upper three bytes of 32-bit floats. */
function floats(values: Uint32Array): Float32Array {
  for (let at = 0; at < values.length; at++) values[at]! <<= 8;
  return new Float32Array(values.buffer, values.byteOffset, values.length);
}

/** Those of a measurement stand together. */
function stretches(measurements: number[]): Stretch[] {
  const found: Stretch[] = [];
  measurements.forEach((measurement, place) => {
    const last = found.at(-1);
    if (last && measurements[place - 1] === measurement) last.end = place + 1;
    else found.push({ start: place, end: place + 1 });
  });
  return found;
}
