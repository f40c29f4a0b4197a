/** What of the samples is shown: those of a rung, or of a stretch of its time. */

import type { Profile, ProfiledRung, ProfiledVisit } from "./flameData.ts";

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
  return gather(profile, rung, name, amount, rung, (visit) => {
    const perSecond = profile.cellsPerSecond;
    return (cell) => (visit.countedAt[Math.floor(cell / perSecond)] ?? -1) >= 0;
  });
}

/**
 * The cells from `first` to `last` of a rung, counted through its visits one after the other, over the time that they are
 * long: threads on average.
 */
export function cutOfRange(profile: Profile, rung: ProfiledRung, name: string, first: number, last: number): Cut {
  let start = 0;
  const starts = new Map<ProfiledVisit, number>();
  for (const visit of rung.visits) {
    starts.set(visit, start);
    start += visit.seconds * profile.cellsPerSecond;
  }
  return gather(profile, rung, name, (last - first + 1) * profile.cellSeconds, null, (visit) => {
    const before = starts.get(visit) ?? 0;
    return (cell) => cell + before >= first && cell + before <= last;
  });
}

function gather(
  profile: Profile, rung: ProfiledRung, name: string, amount: number, withIntervals: ProfiledRung | null,
  chosen: (visit: ProfiledVisit) => (cell: number) => boolean,
): Cut {
  const { node, cell, weight } = profile.samples;
  const own: (Float64Array | null)[] = profile.states.map(() => null);
  const byState = profile.states.map(() => 0);
  for (const visit of rung.visits) {
    const isChosen = chosen(visit);
    for (let state = 0; state < own.length; state++) {
      const [from, to] = [visit.starts[state]!, visit.starts[state + 1]!];
      if (from === to) continue;
      const times = (own[state] ??= new Float64Array(profile.calls.count));
      let sum = 0;
      for (let at = from; at < to; at++) {
        if (!isChosen(cell[at]!)) continue;
        const time = weight[at]! / amount;
        times[node[at]!]! += time;
        sum += time;
      }
      byState[state]! += sum;
    }
  }
  return { name, own, byState, rung: withIntervals };
}
