/** Whether throughput held over a long measurement: a sentence a rung. */

import type { Rung } from "./data.ts";
import { h } from "./element.ts";
import { number, percent, signedPercent } from "./format.ts";

/** How throughput went over a long measurement of a rung, of several the one in which it held least, after its warm-up. */
export interface LongRun {
  seconds: number;
  /** Largest difference between the halves of any window of `jitter_window_seconds`, as a part of its mean. */
  jitter: number;
  jitter_window_seconds: number;
  /** As a part of the mean in an hour; negative where throughput declines. */
  change_per_hour: { value: number; low: number | null; high: number | null };
  levels: { from_second: number; seconds: number; throughput: number }[];
}

/** What TPC-C lets pass in two hours. */
const ALLOWED = 0.02;
const OF_SECONDS = 7200;
const MOST_LEVELS = 8;

/** Seconds in words: 2 h 5 min, 7 min 20 s, 40 s. */
export function duration(seconds: number): string {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  const parts: [number, string][] = hours ? [[hours, "h"], [minutes, "min"]] : [[minutes, "min"], [rest, "s"]];
  return parts.filter(([value]) => value > 0).map(([value, unit]) => `${value} ${unit}`).join(" ") || "0 s";
}

/** One rung in words. */
export function longRunSentence(connections: number, measurements: number, run: LongRun): string {
  const { change_per_hour: change, levels } = run;
  const interval = change.low === null || change.high === null ? "" : ` (${signedPercent(change.low)} to ${signedPercent(change.high)})`;
  const window = run.jitter_window_seconds < run.seconds ? `any ${duration(run.jitter_window_seconds)}` : "it";
  const verdict = run.jitter_window_seconds < OF_SECONDS ? "TPC-C’s rule is of two hours" : run.jitter < ALLOWED ? "TPC-C lets 2 % pass" : "more than the 2 % that TPC-C lets pass";
  const told = levels.slice(0, MOST_LEVELS).map((level) => `${number(level.throughput)}/s from ${duration(level.from_second)}`);
  if (levels.length > MOST_LEVELS) told.push(`${levels.length - MOST_LEVELS} more`);
  return `${duration(run.seconds)} at ${connections} connections${measurements > 1 ? `, the least even of ${measurements} measurements` : ""}: throughput changes by ${signedPercent(change.value)}${interval} an hour; `
    + `halves of ${window} differ by up to ${percent(run.jitter)} (${verdict})${levels.length > 1 ? `; its levels: ${told.join(", ")}` : ""}.`;
}

/** The sentences of all rungs that had a long measurement; null where none had. */
export function longRuns(rungs: Rung[]): HTMLElement | null {
  const long = rungs.flatMap((rung) => (rung.long_run ? [longRunSentence(rung.connections, rung.repeat_count, rung.long_run)] : []));
  return long.length ? h("ul", { class: "long-runs" }, ...long.map((sentence) => h("li", {}, sentence))) : null;
}
