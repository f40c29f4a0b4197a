/** What of the samples is shown: those of a rung, or of a stretch of its time. */

import type { Profile, ProfiledRung } from "./flameData.ts";

/** Time of every call path in each state, what it calls not included. */
export interface Cut {
  /** Such as `512 connections`. */
  name: string;
  /** Time per transaction, or per second, by state and then by place of the call path; null for a state without a sample. */
  own: (Float64Array | null)[];
  /** Sum of all of it by state. */
  byState: number[];
  /** The samples by place of their call path, for intervals; null for a stretch of time, which is too short for one. */
  rung: ProfiledRung | null;
}

/** The seconds of a rung that count, over their transactions (or over the seconds of a watch). */
export function cutOfRung(profile: Profile, rung: ProfiledRung, name: string): Cut {
  const amount = rung.amounts.reduce((sum, one) => sum + one, 0);
  const { node, cell, weight } = profile.samples;
  const cut = empty(profile, name, rung);
  rung.thinned.forEach((state, at) => {
    if (state === null) return;
    for (let place = 0; place < state.sums.node.length; place++) add(profile, cut, at, state.sums.node[place]!, state.sums.weight[place]! / amount);
  });
  for (const visit of rung.visits) {
    for (let state = 0; state < profile.states.length; state++) {
      if (rung.thinned[state]) continue;
      for (let at = visit.starts[state]!; at < visit.starts[state + 1]!; at++) {
        if (visit.countedAt[Math.floor(cell[at]! / profile.cellsPerSecond)]! >= 0) add(profile, cut, state, node[at]!, weight[at]! / amount);
      }
    }
  }
  return cut;
}

/**
 * The cells from `first` to `last` of a rung, counted through its visits one after the other, over the time that they are
 * long: threads on average. Where not every sample is kept, those that are share out the exact time of each visit's part.
 */
export function cutOfRange(profile: Profile, rung: ProfiledRung, name: string, first: number, last: number): Cut {
  const { node, cell, weight } = profile.samples;
  const amount = (last - first + 1) * profile.cellSeconds;
  const cut = empty(profile, name, null);
  let before = 0;
  for (const visit of rung.visits) {
    const [from, to] = [Math.max(0, first - before), Math.min(visit.seconds * profile.cellsPerSecond - 1, last - before)];
    before += visit.seconds * profile.cellsPerSecond;
    if (from > to) continue;
    for (let state = 0; state < profile.states.length; state++) {
      const chosen: number[] = [];
      let kept = 0;
      for (let at = visit.starts[state]!; at < visit.starts[state + 1]!; at++) {
        if (cell[at]! < from || cell[at]! > to) continue;
        chosen.push(at);
        kept += weight[at]!;
      }
      const all = visit.cells[state]?.weight.subarray(from, to + 1).reduce((sum, one) => sum + one, 0);
      const scale = all === undefined || kept === 0 ? 1 : all / kept;
      for (const at of chosen) add(profile, cut, state, node[at]!, weight[at]! * scale / amount);
    }
  }
  return cut;
}

function empty(profile: Profile, name: string, rung: ProfiledRung | null): Cut {
  return { name, own: profile.states.map(() => null), byState: profile.states.map(() => 0), rung };
}

function add(profile: Profile, cut: Cut, state: number, node: number, time: number): void {
  const times = (cut.own[state] ??= new Float64Array(profile.calls.count));
  times[node]! += time;
  cut.byState[state]! += time;
}
