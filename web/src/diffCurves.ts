/** Throughput of both runs against connections, and the ratio of the two. */

import { amountAxis, connectionsAxis, connectionsScale, fromZero, pointer } from "./axes.ts";
import { chart, figure, type Chart } from "./chart.ts";
import { called, hasChanged, type Diff, type OneRung } from "./diffData.ts";
import { h, section } from "./element.ts";
import { count, counted, isKnown, number, times } from "./format.ts";
import { endLabels, intervals, path, points, type Shape } from "./marks.ts";
import { choose } from "./selection.ts";
import { table } from "./table.ts";
import type { Ink } from "./theme.ts";
import { interval } from "./verdict.ts";

/** Of A and of B: the run that is new stands out. */
const inks: [(ink: Ink) => string, (ink: Ink) => string] = [(ink) => ink.muted, (ink) => ink.blue];

/** The section with both charts. */
export function curves(diff: Diff): HTMLElement {
  const { runs } = diff;
  const ratio = ratioChart(diff);
  const all = runs.flatMap((run) => run.rungs);
  return section("throughput", "Throughput against connections",
    figure("Transactions per second; bars are 95\u202f% intervals, specks beside them the single measurements", bothCurves(diff), () => asTable(diff),
      h("p", { class: "key" },
        h("span", {}, `┄ ${called(diff, 0)}`), h("span", {}, `━ ${called(diff, 1)}`),
        all.some((rung) => !rung.steady) ? h("span", {}, "△ not steady") : null,
        all.some((rung) => rung.client_limited) ? h("span", {}, "□ limited by the client") : null)),
    ratio === null ? h("p", { class: "notes" }, "No rung has a figure on both sides, so there is no ratio.")
      : h("figure", {}, h("figcaption", {}, "B over A; filled: significant change"), ratio,
        diff.paired && diff.runs.every((run) => run.sampled.length > 0) ? h("p", { class: "key" }, h("span", { class: "screen" }, "Click a rung to see its call paths.")) : null));
}

function bothCurves({ runs }: Diff): Chart {
  const at = [...new Set(runs.flatMap((run) => run.rungs.map((rung) => rung.connections)))].sort((a, b) => a - b);
  const values = runs.map((run) => at.map((connections) => run.rungs.find((rung) => rung.connections === connections)?.throughput.value ?? null));
  const [least, greatest] = [at[0] ?? 1, at.at(-1) ?? 1];
  const top = Math.max(...runs.flatMap((run) => run.rungs.flatMap((rung) => [rung.throughput.high ?? rung.throughput.value, ...rung.measurements])));
  const said = (place: number) => runs.map((run, side) => {
    const rung = run.rungs.find((one) => one.connections === at[place]);
    return `${"AB"[side]} ${rung ? `${number(rung.throughput.value)}/s (${interval(rung.throughput, number)})` : "not measured"}`;
  }).join("; ");
  const label = `Line chart of throughput against connections: ${at.map((connections, place) => `at ${count(connections)} ${said(place)}`).join(". ")}.`;
  return chart("throughput", label, 270, (ink) => ({
    data: [at, ...values],
    options: {
      padding: [8, 22, 0, 0],
      cursor: pointer,
      scales: { x: connectionsScale(least, greatest), y: fromZero(top) },
      axes: [connectionsAxis(ink), amountAxis(ink)],
      series: [{}, ...inks.map((of, side) => ({ stroke: of(ink), width: 2, points: { show: false }, spanGaps: true, ...(side === 0 ? { dash: [6, 4] } : {}) }))],
      hooks: {
        draw: [(u) => {
          runs.forEach((run, side) => {
            const colour = inks[side]!(ink);
            const beside = side === 0 ? 1 / 1.045 : 1.045;
            points(run.rungs.flatMap((rung) => rung.measurements.map((value) => [rung.connections * beside, value, "speck"] as [number, number, Shape])), colour, ink.paper)(u);
            intervals(run.rungs.flatMap(({ connections, throughput: { low, high } }) =>
              isKnown(low) && isKnown(high) ? [[connections, low, high] as [number, number, number]] : []), colour)(u);
            points(run.rungs.map((rung) => [rung.connections, rung.throughput.value, shapeOf(rung, side)]), colour, ink.paper)(u);
          });
          endLabels(inks.map((of, side) => ({ series: side + 1, words: "AB"[side]!, colour: of(ink) })), ink)(u);
        }],
        ready: [(u) => u.over.addEventListener("click", () => choose(at[u.cursor.idx ?? -1] ?? 0))],
      },
    },
    readout: (place) => `${counted(at[place] ?? 0, "connection")}: ${said(place)}`,
  }));
}

/** A's points are rings, so that the two can be told apart without colours. */
function shapeOf(rung: OneRung, side: number): Shape {
  return rung.client_limited ? "square" : !rung.steady ? "triangle" : side === 0 ? "ring" : "dot";
}

/** The ratios of the common rungs with their intervals; null where there is none. */
function ratioChart({ comparison: { rungs }, runs }: Diff): HTMLElement | null {
  const known = rungs.flatMap((rung) => (rung.throughput_ratio ? [{ rung, ratio: rung.throughput_ratio }] : []));
  if (known.length === 0) return null;
  const all = runs.flatMap((run) => run.rungs.map((rung) => rung.connections));
  const limits = known.flatMap(({ ratio }) => [ratio.low ?? ratio.value, ratio.high ?? ratio.value]);
  const [low, high] = [Math.min(0.95, ...limits), Math.max(1.05, ...limits)];
  const room = (high - low) * 0.08;
  const said = (place: number) => {
    const { rung, ratio } = known[place]!;
    return `${counted(rung.connections, "connection")}: ${times(ratio.value)} (${isKnown(ratio.low) ? interval(ratio, times) : "no interval"})${hasChanged(rung) ? ", changed" : rung.throughput_p === null ? ", not tested" : ", within chance"}`;
  };
  const drawn = chart("ratio", `Chart of the ratio of throughput, B over A, with intervals: ${known.map((_, place) => said(place)).join(". ")}.`, 150, (ink) => ({
    data: [known.map(({ rung }) => rung.connections), known.map(({ ratio }) => ratio.value)],
    options: {
      padding: [8, 22, 0, 0],
      cursor: pointer,
      scales: { x: connectionsScale(Math.min(...all), Math.max(...all)), y: { range: [low - room, high + room] } },
      axes: [connectionsAxis(ink), amountAxis(ink, times)],
      series: [{}, { stroke: ink.blue, width: 0, points: { show: false } }],
      hooks: {
        draw: [(u) => {
          path([[Math.min(...all) / 2, 1], [Math.max(...all) * 2, 1]], ink.muted, [4, 3])(u);
          intervals(known.flatMap(({ rung, ratio }) => (isKnown(ratio.low) && isKnown(ratio.high) ? [[rung.connections, ratio.low, ratio.high] as [number, number, number]] : [])), ink.blue)(u);
          points(known.map(({ rung, ratio }) => [rung.connections, ratio.value, hasChanged(rung) ? "dot" : "ring"]), ink.blue, ink.paper)(u);
        }],
        ready: [(u) => u.over.addEventListener("click", () => choose(known[u.cursor.idx ?? -1]?.rung.connections ?? 0))],
      },
    },
    readout: (place) => (known[place] ? said(place) : ""),
  }));
  return drawn.element;
}

function asTable({ runs }: Diff): HTMLElement {
  const rows = runs.flatMap((run, side) => run.rungs.map((rung) => ({ side: "AB"[side]!, rung }))).sort((x, y) => x.rung.connections - y.rung.connections);
  return table("Throughput of both runs at every rung", [
    { heading: "connections", cell: ({ rung }) => count(rung.connections) },
    { heading: "run", words: true, cell: ({ side }) => side },
    { heading: "throughput", unit: "tx/s", cell: ({ rung }) => number(rung.throughput.value) },
    { heading: "95\u202f% interval", unit: "tx/s", cell: ({ rung }) => interval(rung.throughput, number) },
    { heading: "measurements", cell: ({ rung }) => count(rung.measurements.length) },
    { heading: "remarks", words: true, cell: ({ rung }) => ({ text: [rung.steady ? "" : "not steady", rung.client_limited ? "client-limited" : ""].filter(Boolean).join(", "), mark: "doubtful" }) },
  ], rows);
}
