/** The measured window of a measurement: its seconds after the warm-up. */

import type { Measurement } from "./data.ts";

/** Whether that second of the measurement counts. */
export function isMeasured(measurement: Measurement, second: number): boolean {
  return measurement.warmup_seconds !== null && second >= measurement.warmup_seconds;
}

/** Mean transactions per second over the window; null where nothing counts. */
export function windowMean(measurement: Measurement): number | null {
  const counted = measurement.seconds.transactions.filter((_, at) => isMeasured(measurement, measurement.seconds.second[at] ?? -1));
  return counted.length ? counted.reduce((sum, value) => sum + value, 0) / counted.length : null;
}
