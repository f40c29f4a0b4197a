/** Where the connections' time goes: the thread ledger of every rung. */

import { folded } from "./chart.ts";
import type { Background, Ledger, Report, Rung } from "./data.ts";
import { h, s, section } from "./element.ts";
import { count, isKnown, number, percent, signedPercent, unknown } from "./format.ts";
import { heaviest } from "./paths.ts";
import { table, type Cell, type Column } from "./table.ts";
import { threadStateLabels, threadStates, type ThreadState } from "./vocabulary.ts";

/** The states in the order in which they are stacked, with their names for people. */
export const states = threadStates.map((state): [ThreadState, string] => [state, threadStateLabels[state]]);

/** A residual beyond this is not to be relied on. */
const tolerance = 0.02;

type WithLedger = Rung & { ledger: Ledger };

/** Bars by state over the rungs, the heaviest call paths and locks of a rung, and the background threads. */
export function ledger(report: Report): HTMLElement | null {
  const { rungs, verdict } = report.summary;
  if (rungs.length === 0) return null;
  const measured = rungs.filter((rung): rung is WithLedger => Boolean(rung.ledger));
  const title = "Where the connections’ time goes";
  if (measured.length === 0) {
    const found = [...report.manifest.missing, ...report.summary.missing].find(({ figure }) => figure === "ledger");
    return section("ledger", title, h("p", { class: "notes" }, `Not shown: ${found?.reason ?? "the server’s threads were not watched in this run"}.`));
  }
  const used = states.filter(([state]) => measured.some((rung) => (rung.ledger.seconds_per_txn[state] ?? 0) > 0));
  return section("ledger", title,
    h("p", { class: "lead" }, "Every connection is always in one of these states, so the times of a transaction in all of them add up to connections ÷ throughput (N/X). ",
      "The state that grows limits throughput. Growth alone does not identify the cause."),
    h("p", { class: "key", "aria-hidden": "true" }, used.map(([state, name]) => h("span", {}, swatch(state), ` ${name}`))),
    bars(measured, used),
    folded("Figures as a table", () => figures(measured, used)),
    h("ul", { class: "notes" }, residuals(measured)),
    heaviest(report, verdict?.peak_connections ?? null),
    background(measured));
}

function swatch(state: string): SVGElement {
  return s("svg", { viewBox: "0 0 10 10", width: 10, height: 10, class: "bar swatch" }, s("rect", { width: 10, height: 10, class: `state-${state}` }));
}

/** One bar a rung: the shares of N/X; a line where it is whole, which a residual falls short of or goes beyond. */
function bars(rungs: WithLedger[], used: typeof states): HTMLElement {
  const width = 560;
  const whole = width / 1.05;
  const bar = (rung: WithLedger) => {
    const of = rung.ledger.connections_over_throughput;
    if (!isKnown(of) || of <= 0) return unknown;
    let at = 0;
    const parts = used.map(([state]) => {
      const [x, length] = [at, ((rung.ledger.seconds_per_txn[state] ?? 0) / of) * whole];
      at += length;
      return s("rect", { x, y: 2, width: Math.max(0, Math.min(length, width - x)), height: 14, class: `state-${state}`, "data-state": state });
    });
    return s("svg", { viewBox: `0 0 ${width} 18`, preserveAspectRatio: "none", class: "bar stack", "aria-hidden": "true" },
      parts, s("line", { x1: whole, x2: whole, y1: 0, y2: 18, class: "whole" }));
  };
  return table("Share of the connections’ time in each state at every rung", [
    { heading: "connections", cell: (rung) => count(rung.connections) },
    { heading: "N/X", unit: "µs/tx", cell: (rung) => micros(rung.ledger.connections_over_throughput) },
    { heading: "share of N/X by state", unit: "the line is all of it", words: true, cell: bar },
    { heading: "residual", cell: (rung) => residual(rung.ledger.residual) },
  ], rungs);
}

function figures(rungs: WithLedger[], used: typeof states): HTMLElement {
  return table("Time per transaction in each state at every rung", [
    { heading: "connections", cell: (rung) => count(rung.connections) },
    { heading: "N/X", unit: "µs/tx", cell: (rung) => micros(rung.ledger.connections_over_throughput) },
    ...used.map(([state, name]): Column<WithLedger> => ({ heading: name, unit: "µs/tx", cell: (rung) => micros(rung.ledger.seconds_per_txn[state]) })),
    { heading: "residual", cell: (rung) => residual(rung.ledger.residual) },
    { heading: "of lifetime", unit: "residual", cell: (rung) => residual(rung.ledger.states_residual) },
    { heading: "of CPU time", unit: "residual", cell: (rung) => residual(rung.ledger.cpu_residual) },
    { heading: "whole stacks", cell: (rung) => percent(rung.ledger.complete_stacks_share) },
    { heading: "samples", cell: (rung) => count(rung.ledger.samples) },
    { heading: "lost", cell: (rung) => count(rung.ledger.samples_lost) },
  ], rungs);
}

/** A time per transaction in microseconds. */
export function micros(seconds: number | null | undefined): string {
  return isKnown(seconds) ? number(seconds * 1e6) : unknown;
}

function residual(value: number | null): Cell {
  return { text: signedPercent(value), mark: isKnown(value) && Math.abs(value) > tolerance ? "doubtful" : undefined };
}

/** What the three residuals compare, and the worst of each. */
function residuals(rungs: WithLedger[]): HTMLElement[] {
  const kinds: [keyof Ledger & `${string}residual`, string][] = [
    ["residual", "the states against N/X by the client’s count"],
    ["states_residual", "the states against the time that the threads lived"],
    ["cpu_residual", "CPU time of all threads against the scheduler’s account of the server"],
  ];
  return kinds.flatMap(([key, words]) => {
    const worst = rungs.reduce<WithLedger | null>((most, rung) =>
      (isKnown(rung.ledger[key]) && Math.abs(rung.ledger[key]) >= Math.abs(most?.ledger[key] ?? 0) ? rung : most), null);
    return worst === null ? [] : [h("li", {}, `Residual of ${words}: at worst ${signedPercent(worst.ledger[key])}, at ${count(worst.connections)} connections.`)];
  });
}

/** The threads that serve no connection, at the last rung. */
function background(rungs: WithLedger[]): HTMLElement | null {
  const last = rungs.at(-1);
  if (!last || last.ledger.background.length === 0) return null;
  const rows = last.ledger.background;
  const used = states.filter(([state]) => rows.some((row) => (row.seconds_per_second[state] ?? 0) > 0));
  return h("div", {}, h("h3", {}, `Background threads at ${count(last.connections)} connections`),
    h("p", { class: "lead" }, "They are none of the N connections and stand in a ledger of their own; one that is always busy can still hold all the others up."),
    h("div", { id: "background" }, table("Background threads: threads in each state on average", [
      { heading: "thread", words: true, cell: (row) => row.name },
      { heading: "threads", cell: (row) => count(row.threads) },
      ...used.map(([state, name]): Column<Background> => ({ heading: name, unit: "threads", cell: (row) => number(row.seconds_per_second[state]) })),
    ], rows)));
}
