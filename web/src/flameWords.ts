/** What is said of a frame: its time, what became of it, and its part of the whole. */

import { isKnown, milliseconds, number, percent, signedPercent, times, unknown, type Figure } from "./format.ts";

/** What a time is counted by: a transaction of the load, or a second of the clock. */
export type Unit = "transaction" | "second";

/** A time with its unit: 12.3 µs, or 0.53 threads. */
export function time(seconds: Figure, unit: Unit): string {
  if (!isKnown(seconds)) return unknown;
  if (unit === "second") return `${number(seconds)} ${seconds === 1 ? "thread" : "threads"}`;
  return milliseconds(seconds * 1e3);
}

/** What a time is per. */
export function per(unit: Unit): string {
  return unit === "transaction" ? "a transaction" : "on average";
}

/** From one time to another: ×3.1, +12 %, gone, new. */
export function change(base: number, shown: number): string {
  if (base === 0) return shown === 0 ? unknown : "new";
  if (shown === 0) return "gone";
  const ratio = shown / base;
  return ratio >= 1.995 || ratio <= 0.5 ? times(ratio) : signedPercent(ratio - 1);
}

export interface FrameFigures {
  name: string;
  shown: number;
  base: number | null;
  /** Time at the shown rung in the frame itself, not in what it calls; null where the graph does not tell. */
  itself: number | null;
  allShown: number;
  allBase: number;
  /** Half of the 95 % interval of the change; null where there are too few seconds. */
  doubt: number | null;
}

/** Lines for a person: the name first. */
export function lines(figures: FrameFigures, unit: Unit, shownName: string, baseName: string | null): string[] {
  const { name, shown, base, itself, allShown, allBase, doubt } = figures;
  const own = itself !== null && itself > shown * 1e-6 && itself < shown * 0.9995 ? `, itself ${time(itself, unit)}` : "";
  const found = [name, `${time(shown, unit)} ${per(unit)} at ${shownName}: ${percent(allShown > 0 ? shown / allShown : null)} of the whole${own}`];
  if (base !== null && baseName !== null) {
    found.push(`${time(base, unit)} at ${baseName}: ${percent(allBase > 0 ? base / allBase : null)} of the whole`);
    const difference = shown - base;
    const sign = difference > 0 ? "+" : difference < 0 ? "−" : "";
    const within = doubt === null ? "" : ` ±${time(doubt, unit)}${Math.abs(difference) <= doubt ? ", within chance" : ""}`;
    found.push(`${change(base, shown)} (${sign}${time(Math.abs(difference), unit)}${within})`);
  }
  return found;
}
