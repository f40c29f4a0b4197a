/** The measured window of a visit: its seconds after the warm-up. */

import type { Visit } from "./data.ts";

/** Whether that second of the visit counts. */
export function isMeasured(visit: Visit, second: number): boolean {
  return visit.warmup_seconds !== null && second >= visit.warmup_seconds;
}

/** Mean transactions per second over the window; null where nothing counts. */
export function windowMean(visit: Visit): number | null {
  const counted = visit.seconds.transactions.filter((_, at) => isMeasured(visit, visit.seconds.second[at] ?? -1));
  return counted.length ? counted.reduce((sum, value) => sum + value, 0) / counted.length : null;
}
