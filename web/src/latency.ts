/** Percentiles of latency against connections, on log axes. */

import { connectionsAxis, connectionsScale, logAxis, pointer } from "./axes.ts";
import { chart, figure } from "./chart.ts";
import type { Latency, Report, Rung, Statement } from "./data.ts";
import { h, section } from "./element.ts";
import { count, counted, isKnown, milliseconds, number } from "./format.ts";
import { endLabels } from "./marks.ts";
import { table } from "./table.ts";
import type { Ink } from "./theme.ts";

interface Line { key: keyof Latency; words: string; colour: keyof Ink; width: number; dash?: number[] }

const lines: Line[] = [
  { key: "p50", words: "p50", colour: "green", width: 2.25 },
  { key: "p95", words: "p95", colour: "blue", width: 1.75 },
  { key: "p99", words: "p99", colour: "purple", width: 1.75 },
  { key: "p999", words: "p99.9", colour: "vermilion", width: 1.5, dash: [6, 3] },
  { key: "max", words: "max", colour: "muted", width: 1.25, dash: [2, 3] },
];

/** Service time, and in the open loop response time beside it. */
export function latency(report: Report): HTMLElement | null {
  const { rungs } = report.summary;
  const has = (of: (rung: Rung) => Latency | null) => rungs.some((rung) => lines.some(({ key }) => isKnown(of(rung)?.[key])));
  const service = (rung: Rung) => rung.latency_ms;
  const response = (rung: Rung) => rung.response_ms;
  if (!has(service) && !has(response)) return null;
  const all = rungs.flatMap((rung) => [service(rung), response(rung)]).flatMap((one) => (one ? lines.map(({ key }) => one[key]) : [])).filter((value) => isKnown(value) && value > 0) as number[];
  const range: [number, number] = [Math.min(...all) / 1.4, Math.max(...all) * 1.4];
  const both = has(response);
  return section("latency", "Latency against connections",
    h("div", { class: both ? "pair" : "" },
      percentiles("service", "Service time of a transaction, first send to last reply", rungs, service, range),
      both ? percentiles("response", "Response time of a transaction, from the moment it was due", rungs, response, range) : null),
    statements(report.statements));
}

function percentiles(
  name: string, title: string, rungs: Rung[], of: (rung: Rung) => Latency | null, range: [number, number],
): HTMLElement {
  const at = rungs.map((rung) => rung.connections);
  const shown = lines.filter(({ key }) => rungs.some((rung) => isKnown(of(rung)?.[key])));
  const value = (rung: Rung, key: keyof Latency) => { const found = of(rung)?.[key]; return isKnown(found) && found > 0 ? found : null; };
  const last = rungs.at(-1);
  const words = shown.map(({ key, words: named }) => `${named} ${milliseconds(last ? of(last)?.[key] : null)}`).join(", ");
  const drawn = chart(`latency-${name}`, `Line chart of ${title.toLowerCase()} on log axes. At ${counted(last?.connections ?? 0, "connection")}: ${words}.`, 320, (ink) => ({
    data: [at, ...shown.map(({ key }) => rungs.map((rung) => value(rung, key)))] as [number[], ...(number | null)[][]],
    options: {
      padding: [8, 52, 0, 0],
      cursor: { ...pointer, sync: { key: "ladder", setSeries: false } },
      scales: { x: connectionsScale(at[0] ?? 1, at.at(-1) ?? 1), y: { distr: 3, log: 10, range } },
      axes: [connectionsAxis(ink), logAxis(ink, milliseconds)],
      series: [{}, ...shown.map(({ colour, width, dash }) => ({
        stroke: ink[colour], width, ...(dash ? { dash } : {}), points: { show: true, size: 5, fill: ink[colour], stroke: ink[colour], width: 0 },
      }))],
      hooks: { draw: [endLabels(shown.map(({ words: named, colour }, place) => ({ series: place + 1, words: named, colour: ink[colour] })), ink)] },
    },
    readout: (index) => {
      const rung = rungs[index];
      return rung ? `${counted(rung.connections, "connection")}: ${shown.map(({ key, words: named }) => `${named} ${milliseconds(of(rung)?.[key])}`).join(" · ")}` : "";
    },
  }));
  return figure(title, drawn, () => table(title, [
    { heading: "connections", cell: (rung: Rung) => count(rung.connections) },
    { heading: "mean", unit: "ms", cell: (rung: Rung) => number(of(rung)?.mean) },
    ...shown.map(({ key, words: named }) => ({ heading: named, unit: "ms", cell: (rung: Rung) => number(of(rung)?.[key]) })),
  ], rungs));
}

function statements(rows: Statement[]): HTMLElement | null {
  if (rows.length === 0) return null;
  const kinds = rows.some((row) => row.operation === "transaction");
  const [heading, title] = kinds ? ["Each kind of transaction", "Service time of each kind of transaction"] : ["Each statement of the script", "Service time of each statement"];
  return h("div", {}, h("h3", {}, heading), table(title, [
    { heading: "connections", cell: (row) => count(row.connections) },
    { heading: kinds ? "transaction" : "statement", words: true, cell: (row) => row.label },
    { heading: "answered", cell: (row) => count(row.count) },
    { heading: "p50", unit: "ms", cell: (row) => number(row.p50) },
    { heading: "p95", unit: "ms", cell: (row) => number(row.p95) },
    { heading: "p99", unit: "ms", cell: (row) => number(row.p99) },
    { heading: "max", unit: "ms", cell: (row) => number(row.max) },
  ], rows));
}
