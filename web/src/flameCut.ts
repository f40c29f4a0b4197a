/** What of the samples is shown: those of a rung, or of a stretch of its time. */

import type { Profile, ProfiledRung, ProfiledMeasurement } from "./flameData.ts";

/** Times of the call paths, state by state. */
export interface Cut {
  /** Such as `512 connections`. */
  name: string;
  /**
   * Time per transaction, or per second, of a state by place of the call path; null for a state without a sample. It is added up when it is
   * first asked for: a graph shows two or three of nine states at first, and the times of one are megabytes.
   */
  own(state: number): Float64Array | null;
  /** Sum of all of it by state. */
  byState: number[];
  /** The samples by place of their call path, for intervals; null for a stretch of time, which is too short for one. */
  rung: ProfiledRung | null;
}

/** Calls back for every sample of a state that belongs to a cut, with its call path and time. */
type EachSample = (state: number, found: (node: number, time: number) => void) => void;

/** The seconds of a rung that count, over their transactions (or over the seconds of a watch). */
export function cutOfRung(profile: Profile, rung: ProfiledRung, name: string): Cut {
  const amount = rung.amounts.reduce((sum, one) => sum + one, 0);
  const { node, cell, weight } = profile.samples;
  const counted = rung.measurements.map((measurement) => ({ measurement, counts: cellsThatCount(profile, measurement) }));
  return made(profile, name, rung, (state, found) => {
    const thinned = rung.thinned[state];
    if (thinned) {
      thinned.sums.node.forEach((path, place) => found(path, thinned.sums.weight[place]! / amount));
      return;
    }
    for (const { measurement, counts } of counted) {
      const end = measurement.starts[state + 1]!;
      for (let at = measurement.starts[state]!; at < end; at++) if (counts[cell[at]!] === 1) found(node[at]!, weight[at]! / amount);
    }
  });
}

/**
 * The cells from `first` to `last` of a rung, counted through its measurements one after the other, over the time that they are
 * long: threads on average. Where not every sample is kept, those that are share out the exact time of each measurement's part.
 */
export function cutOfRange(profile: Profile, rung: ProfiledRung, name: string, first: number, last: number): Cut {
  const { node, cell, weight } = profile.samples;
  const amount = (last - first + 1) * profile.cellSeconds;
  return made(profile, name, null, (state, found) => {
    let before = 0;
    for (const measurement of rung.measurements) {
      const [from, to] = [Math.max(0, first - before), Math.min(measurement.seconds * profile.cellsPerSecond - 1, last - before)];
      before += measurement.seconds * profile.cellsPerSecond;
      if (from > to) continue;
      const chosen: number[] = [];
      let kept = 0;
      for (let at = measurement.starts[state]!; at < measurement.starts[state + 1]!; at++) {
        if (cell[at]! < from || cell[at]! > to) continue;
        chosen.push(at);
        kept += weight[at]!;
      }
      const all = measurement.cells[state]?.weight.subarray(from, to + 1).reduce((sum, one) => sum + one, 0);
      const scale = all === undefined || kept === 0 ? 1 : all / kept;
      for (const at of chosen) found(node[at]!, weight[at]! * scale / amount);
    }
  });
}

function made(profile: Profile, name: string, rung: ProfiledRung | null, each: EachSample): Cut {
  const byState = profile.states.map((_, state) => {
    let sum = 0;
    each(state, (_node, time) => { sum += time; });
    return sum;
  });
  const known = new Map<number, Float64Array>();
  const own = (state: number) => {
    if (!((byState[state] ?? 0) > 0)) return null;
    let times = known.get(state);
    if (times === undefined) {
      const fresh = new Float64Array(profile.calls.count);
      each(state, (node, time) => { fresh[node]! += time; });
      known.set(state, (times = fresh));
    }
    return times;
  };
  return { name, own, byState, rung };
}

/** Whether a cell of a measurement lies in a second that counts. */
function cellsThatCount(profile: Profile, measurement: ProfiledMeasurement): Uint8Array {
  const counts = new Uint8Array(measurement.seconds * profile.cellsPerSecond);
  measurement.countedAt.forEach((place, second) => {
    if (place >= 0) counts.fill(1, second * profile.cellsPerSecond, (second + 1) * profile.cellsPerSecond);
  });
  return counts;
}
