/** Lost threads: what the connections of every rung come to at the best rung's efficiency, and where the others are. */

import { folded } from "./chart.ts";
import type { Estimate, LostPath, LostThreads, Report, Rung, ScalingProfile } from "./data.ts";
import { h, s, section } from "./element.ts";
import { count, counted, isKnown, number, percent } from "./format.ts";
import { states } from "./ledger.ts";
import { innermost, unfolding } from "./paths.ts";
import { table, type Column } from "./table.ts";
import { growthShapeLabels } from "./vocabulary.ts";

/** A speedup stack for every rung, the paths that lose most at the last one, and what one thread is always in. */
export function lostThreads({ summary }: Report): HTMLElement | null {
  const profile = summary.scaling;
  const last = profile?.rungs.at(-1);
  if (!profile || !last) return null;
  // Waiting for a CPU is no cause while all are busy: it stands behind the causes.
  const ordered = [...states].sort(([a], [b]) => Number(a === "runq") - Number(b === "runq"));
  const used = ordered.filter(([state]) => profile.rungs.some((rung) => Math.abs(rung.lost_threads[state]?.value ?? 0) > 0.005 * rung.connections));
  if (used.length === 0) return null;
  return section("lost", "Lost threads",
    h("p", { class: "lead" }, `Effective: connections that this throughput needs at the efficiency of ${counted(profile.base_connections, "connection")}. `,
      "Lost: throughput × extra time per transaction, by state."),
    h("p", { class: "key", "aria-hidden": "true" }, h("span", {}, swatch("effective"), " effective"), used.map(([state, name]) => h("span", {}, swatch(state), ` ${name}`))),
    stacks(profile, used),
    last.cpus_busy ? h("p", { class: "notes" }, allBusy(last, summary.rungs)) : null,
    folded("Figures as a table", () => figures(profile, used)),
    paths(profile),
    saturated(profile));
}

/** What waiting for a CPU means while all are busy, and whose CPUs that is said of. */
function allBusy(last: LostThreads, rungs: Rung[]): string {
  const rung = rungs.find((one) => one.connections === last.connections);
  const waiting = last.lost_threads.runq?.value ?? 0;
  const figures = [
    isKnown(rung?.busy_share) ? `${percent(rung.busy_share)} in use, all processes together` : "",
    rung?.iron_law ? `the server used ${percent(rung.iron_law.utilisation)} of its CPUs` : "",
  ].filter(Boolean).join("; ");
  const lost = waiting > 0 ? `${number(waiting)} of ${count(last.connections)} threads wait for a CPU: ` : "Waiting for a CPU is ";
  return `${lost}not a cause, because all CPUs are busy at ${count(last.connections)} connections${figures ? ` (${figures})` : ""}.`;
}

function swatch(state: string): SVGElement {
  return s("svg", { viewBox: "0 0 10 10", width: 10, height: 10, class: "bar swatch" }, s("rect", { width: 10, height: 10, class: `state-${state}` }));
}

/**
 * One bar a rung: effective threads, then those lost by state; a line where they are all of its connections. What was saved has no length
 * and is in the table only: the bar goes beyond the line by as much.
 */
function stacks(profile: ScalingProfile, used: typeof states): HTMLElement {
  const width = 560;
  const lengthsOf = (rung: LostThreads) => [["effective", rung.effective_threads], ...used.map(([state]): [string, number] => [state, Math.max(0, rung.lost_threads[state]?.value ?? 0)])] as [string, number][];
  const beyond = Math.max(1, ...profile.rungs.map((rung) => lengthsOf(rung).reduce((sum, [, length]) => sum + length, 0) / rung.connections));
  const all = width / beyond;
  const bar = (rung: LostThreads) => {
    let at = 0;
    const parts = lengthsOf(rung).map(([state, length]) => {
      const x = at;
      at += (length / rung.connections) * all;
      return s("rect", { x, y: 2, width: at - x, height: 14, class: `state-${state}`, "data-state": state });
    });
    return s("svg", { viewBox: `0 0 ${width} 18`, preserveAspectRatio: "none", class: "bar stack", "aria-hidden": "true" }, parts, s("line", { x1: all, x2: all, y1: 0, y2: 18, class: "whole" }));
  };
  return table("Effective and lost threads of every rung", [
    { heading: "connections", cell: (rung) => count(rung.connections) },
    { heading: "effective", unit: "threads", cell: (rung) => number(rung.effective_threads) },
    { heading: "share of the connections", unit: "the line is all of them", words: true, cell: bar },
  ], profile.rungs);
}

function figures(profile: ScalingProfile, used: typeof states): HTMLElement {
  return table("Threads lost in each state at every rung, with the 95 % interval", [
    { heading: "connections", cell: (rung) => count(rung.connections) },
    { heading: "effective", unit: "threads", cell: (rung) => number(rung.effective_threads) },
    ...used.map(([state, name]): Column<LostThreads> => ({ heading: name, unit: "threads lost", cell: (rung) => between(rung.lost_threads[state]) })),
  ], profile.rungs);
}

/** A figure with its interval. */
function between(figure: Estimate | undefined): string {
  if (!figure) return "–";
  const { value, low, high } = figure;
  return isKnown(low) && isKnown(high) ? `${number(value)} (${number(low)} – ${number(high)})` : number(value);
}

function paths(profile: ScalingProfile): HTMLElement | null {
  if (profile.paths.length === 0) return null;
  const last = profile.rungs.length - 1;
  return h("div", { id: "lost-paths" }, h("h3", {}, `Call paths with the largest loss at ${count(profile.rungs[last]?.connections ?? null)} connections`),
    h("p", { class: "lead" }, "No time is counted twice. Excluded: waits for the client, and run-queue time where no CPU is free."),
    table("Call paths in which threads are lost", [
      { heading: "state", words: true, cell: (path) => path.state },
      { heading: "lost", unit: "threads", cell: (path) => between(path.lost_threads[last]) },
      { heading: "grows", words: true, cell: (path) => (path.shape ? growthShapeLabels[path.shape] : "unknown") },
      { heading: "call path", unit: "innermost function first", words: true, cell: (path) => unfolding(path.path, innermost(path.path, !["cpu", "spin"].includes(path.state))) },
    ] satisfies Column<LostPath>[], profile.paths));
}

function saturated(profile: ScalingProfile): HTMLElement | null {
  if (profile.saturated.length === 0) return null;
  return h("ul", { class: "notes" }, profile.saturated.map((one) =>
    h("li", {}, `${(one.active_threads.at(-1) ?? 1).toFixed(2)} threads on average are in `, h("code", {}, one.path.at(-1) ?? ""),
      ` (${one.path.join(" › ")}) at ${count(profile.rungs.at(-1)?.connections ?? null)} connections, as at lower rungs. If it admits one thread, throughput cannot exceed ${number(one.cap)}/s.`)));
}
