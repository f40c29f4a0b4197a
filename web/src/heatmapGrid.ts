/** The time of a rung in cells of 20 ms. Cells are counted through the measurements of the rung, one after the other. */

import type { Profile, ProfiledRung, ProfiledMeasurement } from "./flameData.ts";

/** A column of the map: one second of a measurement. */
export interface Column { measurement: ProfiledMeasurement; second: number; counts: boolean }

export interface Grid {
  columns: Column[];
  /** Cells in a column. */
  rows: number;
  /** Threads in the chosen states on average, and samples, by cell. */
  threads: Float64Array;
  samples: Uint32Array;
  /** Samples that the page keeps, by cell. */
  kept: Uint32Array;
}

/** Cells from the first to the last, both included. */
export interface Range { first: number; last: number }

export function gridOf(profile: Profile, rung: ProfiledRung, states: Set<string>): Grid {
  const rows = profile.cellsPerSecond;
  const columns = rung.measurements.flatMap((measurement) => Array.from({ length: measurement.seconds }, (_, second) => ({ measurement, second, counts: measurement.countedAt[second]! >= 0 })));
  const threads = new Float64Array(columns.length * rows);
  const samples = new Uint32Array(columns.length * rows);
  const kept = new Uint32Array(columns.length * rows);
  const { cell, weight } = profile.samples;
  let start = 0;
  for (const measurement of rung.measurements) {
    profile.states.forEach((state, at) => {
      if (!states.has(state)) return;
      const all = measurement.cells[at];
      for (let place = 0; place < (all?.weight.length ?? 0); place++) {
        threads[start + place]! += all!.weight[place]! / profile.cellSeconds;
        samples[start + place]! += all!.count[place]!;
      }
      for (let sample = measurement.starts[at]!; sample < measurement.starts[at + 1]!; sample++) {
        const place = start + cell[sample]!;
        kept[place]! += 1;
        if (all) continue;
        threads[place]! += weight[sample]! / profile.cellSeconds;
        samples[place]! += 1;
      }
    });
    start += measurement.seconds * rows;
  }
  return { columns, rows, threads, samples, kept };
}

/** A range whichever end was chosen first. */
export function rangeOf(one: number, other: number): Range {
  return { first: Math.min(one, other), last: Math.max(one, other) };
}

/** `120-155`; null for anything else and for what is beyond the grid. */
export function readRange(text: string | null, cells: number): Range | null {
  const found = /^(\d+)-(\d+)$/.exec(text ?? "");
  if (!found) return null;
  const range = rangeOf(Number(found[1]), Number(found[2]));
  return range.last < cells ? range : null;
}

export function writeRange(range: Range | null): string {
  return range === null ? "" : `${range.first}-${range.last}`;
}

/** The value that all but one in 200 of those above 0 stay under: what a scale of colours ends at. */
export function highest(grids: Grid[]): number {
  const values = grids.flatMap(({ threads }) => [...threads].filter((value) => value > 0)).sort((a, b) => a - b);
  return values[Math.floor((values.length - 1) * 0.995)] ?? 1;
}
