/** The factors of the iron law over the ladder, as small multiples. */

import { amountAxis, connectionsAxis, connectionsScale, fromZero, pointer } from "./axes.ts";
import { chart, figure } from "./chart.ts";
import type { Report, Rung } from "./data.ts";
import { decomposition } from "./decomposition.ts";
import { h, section } from "./element.ts";
import { count, counted, isKnown, number, percent, si, times, type Figure } from "./format.ts";
import { nameInside, points, upright } from "./marks.ts";
import { table } from "./table.ts";

interface Factor {
  name: string;
  title: string;
  unit: string;
  /** What the figure of a rung is. */
  of: (rung: Rung) => Figure;
  show: (value: number) => string;
  /** Summary's name of the figure, to find the reason when it is missing. */
  figure: string;
  /** The top of the scale where it is a natural one. */
  top?: number;
  /** A part of it, drawn below. */
  part?: { words: string; of: (rung: Rung) => Figure };
}

const factors: Factor[] = [
  {
    name: "utilisation", title: "CPUs used by the server", unit: "share of its CPUs", figure: "iron_law.utilisation",
    of: (rung) => rung.iron_law?.utilisation, show: (value) => percent(value, 0), top: 1,
  },
  {
    name: "cpu", title: "CPU time", unit: "µs per transaction", figure: "iron_law.cpu_seconds_per_txn",
    of: (rung) => scaled(rung.iron_law?.cpu_seconds_per_txn, 1e6), show: number,
    part: { words: "kernel", of: (rung) => scaled(rung.iron_law?.cpu_seconds_per_txn, (rung.iron_law?.system_share ?? NaN) * 1e6) },
  },
  {
    name: "switches", title: "Context switches", unit: "per transaction", figure: "context_switches_per_txn",
    of: (rung) => rung.context_switches_per_txn, show: number,
  },
  {
    name: "instructions", title: "Instructions", unit: "per transaction", figure: "iron_law.instructions_per_txn",
    of: (rung) => rung.iron_law?.instructions_per_txn, show: (value) => si(value),
  },
  {
    name: "cpi", title: "Cycles per instruction", unit: "cycles", figure: "iron_law.cycles_per_instruction",
    of: (rung) => rung.iron_law?.cycles_per_instruction, show: number,
  },
  {
    name: "clock", title: "Clock of a busy CPU", unit: "GHz", figure: "iron_law.clock_hz",
    of: (rung) => scaled(rung.iron_law?.clock_hz, 1e-9), show: number,
  },
];

function scaled(value: Figure, by: number): number | null {
  return isKnown(value) && Number.isFinite(by) ? value * by : null;
}

/** The factors that were measured, and what they make of the change between the peak and another rung. */
export function ironLaw(report: Report): HTMLElement | null {
  const { rungs } = report.summary;
  if (rungs.length === 0) return null;
  const measured = factors.filter((factor) => rungs.some((rung) => isKnown(factor.of(rung))));
  const others = factors.filter((factor) => !measured.includes(factor));
  return section("iron-law", "Why: the iron law of throughput",
    h("p", { class: "lead" }, "Throughput = CPUs × share used × clock ÷ (instructions per transaction × cycles per instruction). ",
      "A lost transaction is an idle CPU, a slower clock, more work per transaction or slower instructions; there is no fifth way."),
    measured.length ? h("div", { class: "multiples" }, measured.map((factor) => multiple(factor, report))) : null,
    others.length ? h("ul", { class: "notes" }, others.map((factor) => h("li", {}, `${factor.title}: ${reason(factor, report)}`))) : null,
    decomposition(report));
}

function reason(factor: Factor, { summary, manifest }: Report): string {
  const found = [...summary.missing, ...manifest.missing].find(({ figure: named }) =>
    named === factor.figure || named.endsWith(`.${factor.figure}`) || factor.figure.startsWith(`${named}.`));
  return found?.reason ?? "not measured in this run";
}

function multiple(factor: Factor, { summary: { rungs, verdict } }: Report): HTMLElement {
  const at = rungs.map((rung) => rung.connections);
  const values = rungs.map((rung) => factor.of(rung) ?? null);
  const known = rungs.filter((rung) => isKnown(factor.of(rung)));
  const parts = rungs.map((rung) => scaled(factor.part?.of(rung), 1));
  const hasPart = factor.part !== undefined && parts.some(isKnown);
  const peak = verdict?.peak_connections;
  const [from, to] = [known.find((rung) => rung.connections === peak) ?? known[0], known.at(-1)];
  const change = from && to && from !== to
    ? `${times((factor.of(to) ?? NaN) / (factor.of(from) ?? NaN))} from ${count(from.connections)} to ${count(to.connections)} connections` : "";
  const words = known.length ? `${factor.show(factor.of(known[0]!)!)} at ${counted(known[0]!.connections, "connection")}, ${factor.show(factor.of(to!)!)} at ${count(to!.connections)}` : "";
  const greatest = factor.top ?? Math.max(...values.filter(isKnown));
  const drawn = chart(`factor-${factor.name}`, `Line chart of ${factor.title}, ${factor.unit}: ${words}. ${change}`, 184, (ink) => ({
    data: hasPart ? [at, values, parts] : [at, values],
    options: {
      padding: [8, 10, 0, 0],
      cursor: { ...pointer, sync: { key: "ladder", setSeries: false } },
      scales: { x: connectionsScale(at[0] ?? 1, at.at(-1) ?? 1), y: fromZero(greatest) },
      axes: [connectionsAxis(ink), amountAxis(ink, factor.show)],
      series: [{}, { stroke: ink.blue, width: 1.75, points: { show: false } }, ...(hasPart ? [{ stroke: ink.muted, width: 1.25, dash: [4, 3], points: { show: false } }] : [])],
      hooks: {
        draw: [(u) => {
          if (peak !== undefined && rungs.length > 1) upright(peak, "", ink.rule)(u);
          points(known.map((rung) => [rung.connections, factor.of(rung) ?? 0, "dot"]), ink.blue, ink.paper)(u);
          if (hasPart && factor.part) nameInside(2, factor.part.words, ink.muted)(u);
        }],
      },
    },
    readout: (index) => {
      const rung = rungs[index];
      return rung ? `${count(rung.connections)}: ${isKnown(values[index]) ? factor.show(values[index]) : "not known"}${hasPart && isKnown(parts[index]) ? `, ${factor.part?.words} ${factor.show(parts[index])}` : ""}` : "";
    },
  }));
  return figure([h("b", {}, factor.title), `, ${factor.unit}`, change ? h("span", { class: "change" }, change) : null], drawn,
    () => table(factor.title, [
      { heading: "connections", cell: (rung: Rung) => count(rung.connections) },
      { heading: factor.title, unit: factor.unit, cell: (rung: Rung) => { const value = factor.of(rung); return isKnown(value) ? factor.show(value) : "–"; } },
    ], rungs));
}
