/** Throughput against connections. */

import { amountAxis, connectionsAxis, connectionsScale, fromZero, pointer } from "./axes.ts";
import { chart, figure } from "./chart.ts";
import type { Report, Rung, Usl } from "./data.ts";
import { h, section } from "./element.ts";
import { count, counted, isKnown, number, percent } from "./format.ts";
import { banner, intervals, path, points, shade, upright, type Shape } from "./marks.ts";
import { choose } from "./selection.ts";
import { table } from "./table.ts";
import { interval } from "./verdict.ts";
import { windowMean } from "./window.ts";

/** The chart with the peak band, the fall-over and the rungs that are not to be relied on. */
export function throughput(report: Report): HTMLElement | null {
  const { rungs, verdict, usl, usl_unavailable } = report.summary;
  if (rungs.length === 0) return null;
  const at = rungs.map((rung) => rung.connections);
  const [least, greatest] = [at[0] ?? 1, at.at(-1) ?? 1];
  const values = rungs.map((rung) => rung.throughput.value);
  const repeats = report.measurements.flatMap((measurement) => {
    const mean = windowMean(measurement);
    return isKnown(mean) ? [[measurement.connections * 1.045, mean, "speck"] as [number, number, Shape]] : [];
  });
  const top = Math.max(...rungs.map((rung) => rung.throughput.high ?? rung.throughput.value), ...repeats.map(([, value]) => value));
  const first = (values[0] ?? 0) / least;

  const drawn = chart("throughput", describe(report), 270, (ink) => ({
    data: [at, values],
    options: {
      padding: [8, 12, 0, 0],
      cursor: pointer,
      scales: { x: connectionsScale(least, greatest), y: fromZero(top) },
      axes: [connectionsAxis(ink), amountAxis(ink)],
      series: [{}, { stroke: ink.blue, width: 2, points: { show: false } }],
      hooks: {
        drawClear: verdict ? [(u) => {
          const [from, to] = verdict.peak_band;
          shade(from / 1.06, to * 1.06, ink.shade)(u);
          banner(from / 1.06, to * 1.06, "peak band", ink.muted)(u);
        }] : [],
        draw: [(u) => {
          if (rungs.length > 1) path(along(least, Math.min(greatest, (top * 1.2) / first), (n) => first * n), ink.muted, [1, 4])(u);
          if (usl) path(uslCurve(usl, least, greatest), ink.green, [6, 4], 1.5)(u);
          if (verdict?.falls_over_at) upright(verdict.falls_over_at, "falls over", ink.vermilion, "right", 1)(u);
          points(repeats, ink.muted, ink.paper)(u);
          intervals(rungs.flatMap(({ connections, throughput: { low, high } }) =>
            isKnown(low) && isKnown(high) ? [[connections, low, high] as [number, number, number]] : []), ink.blue)(u);
          points(rungs.map((rung) => [rung.connections, rung.throughput.value, shapeOf(rung)]), ink.blue, ink.paper)(u);
        }],
        ready: [(u) => u.over.addEventListener("click", () => {
          const rung = rungs[u.cursor.idx ?? -1];
          if (rung) choose(rung.connections);
        })],
      },
    },
    readout: (index) => {
      const rung = rungs[index];
      return rung ? `${counted(rung.connections, "connection")}: ${number(rung.throughput.value)}/s (${interval(rung.throughput, number)})${remarks(rung)}` : "";
    },
  }));

  return section("throughput", "Throughput against connections",
    figure("Transactions per second; bars are 95\u202f% intervals, specks beside them the single repeats", drawn, () => asTable(rungs),
      h("p", { class: "key" },
        rungs.some((rung) => !rung.steady) ? h("span", {}, "△ not steady") : null,
        rungs.some((rung) => rung.client_limited) ? h("span", {}, "□ limited by the client") : null,
        rungs.length > 1 ? h("span", {}, "┈ linear scaling from the first rung") : null,
        usl ? h("span", {}, `╌ Universal Scalability Law, worst residual ${percent(usl.worst_residual)}`) : null,
        !usl && usl_unavailable ? h("span", {}, `The Universal Scalability Law is not drawn: ${usl_unavailable}.`) : null,
        h("span", { class: "screen" }, "Click a rung to see its seconds below."))));
}

function shapeOf(rung: Rung): Shape {
  return rung.client_limited ? "square" : rung.steady ? "dot" : "triangle";
}

function remarks(rung: Rung): string {
  return (rung.steady ? "" : `; not steady${rung.unsteady_reason ? `: ${rung.unsteady_reason}` : ""}`)
    + (rung.client_limited ? `; client-limited${rung.client_limited_reason ? `: ${rung.client_limited_reason}` : ""}` : "");
}

function uslCurve({ gamma, sigma, kappa }: Usl, least: number, greatest: number): [number, number][] {
  return along(least, greatest, (n) => (gamma.value * n) / (1 + sigma.value * (n - 1) + kappa.value * n * (n - 1)));
}

/** Points of a law, evenly along the axis of the connections, which is logarithmic. */
function along(least: number, greatest: number, law: (connections: number) => number): [number, number][] {
  return Array.from({ length: 121 }, (_, step) => {
    const n = least * (greatest / least) ** (step / 120);
    return [n, law(n)];
  });
}

function describe({ summary: { rungs, verdict } }: Report): string {
  const ends = rungs.length > 1 ? ` from ${count(rungs[0]?.connections)} to ${count(rungs.at(-1)?.connections)} connections` : "";
  return `Line chart of transactions per second at ${counted(rungs.length, "rung")}${ends}. ${verdict?.sentence ?? ""}`;
}

function asTable(rungs: Rung[]): HTMLElement {
  return table("Throughput of each rung", [
    { heading: "connections", cell: (rung) => count(rung.connections) },
    { heading: "throughput", unit: "tx/s", cell: (rung) => number(rung.throughput.value) },
    { heading: "low", unit: "tx/s", cell: (rung) => number(rung.throughput.low) },
    { heading: "high", unit: "tx/s", cell: (rung) => number(rung.throughput.high) },
    { heading: "remarks", words: true, cell: (rung) => remarks(rung).slice(2) },
  ], rungs);
}
