/** The seconds of the rung that the reader chose, every repeat after the other. */

import type uPlot from "uplot";
import { amountAxis, fromZero, pointer } from "./axes.ts";
import { chart, folded, type Chart, type Plot } from "./chart.ts";
import { counterBySecond, groupOf } from "./counterNames.ts";
import type { Report, Seconds, Measurement } from "./data.ts";
import { h, section } from "./element.ts";
import { linkOf, writeLink } from "./flameLink.ts";
import { amount, count, counted, isKnown, milliseconds, number } from "./format.ts";
import { banner, path, shade } from "./marks.ts";
import { reveal } from "./reveal.ts";
import { rungPicker } from "./rungPicker.ts";
import { table } from "./table.ts";
import type { Ink } from "./theme.ts";
import { windowMean } from "./window.ts";
import { measurementOutcomeLabels } from "./vocabulary.ts";

type Values = (number | null)[];

/** A measurement laid on the common axis: its second 0 stands at `start`. */
interface Strip { measurement: Measurement; start: number; end: number }

const gap = 3;

/** The section: a picker, throughput and latency by the second, and two counters of the reader's choice. */
export function series(report: Report): HTMLElement | null {
  const rungs = [...new Set(report.measurements.map((measurement) => measurement.connections))].sort((a, b) => a - b);
  const peak = report.summary.verdict?.peak_connections;
  const first = rungs.find((rung) => rung === peak) ?? rungs[0];
  if (first === undefined) return null;
  let strips: Strip[] = [];
  const heading = h("p", { class: "lead", id: "series-heading", "aria-live": "polite" });
  const rates = secondsChart("seconds-throughput", "Transactions per second", () => strips, (seconds) => seconds.transactions, amount, (u, ink) => {
    for (const { measurement, start, end } of strips) {
      const mean = windowMean(measurement);
      if (isKnown(mean) && measurement.warmup_seconds !== null) path([[start + measurement.warmup_seconds, mean], [end, mean]], ink.vermilion, [], 1.25)(u);
    }
  });
  const tails = secondsChart("seconds-p99", "99th percentile of the service time", () => strips, (seconds) => seconds.p99_ms, milliseconds);
  let chosen = first;
  const link = (step: boolean) => writeLink("seconds", { rung: String(chosen), left: counters.names()[0] ?? "", right: counters.names()[1] ?? "" }, step);
  const counters = counterCharts(report, () => strips, () => link(false));
  const show = (connections: number) => {
    chosen = connections;
    strips = lay(report.measurements.filter((measurement) => measurement.connections === connections));
    heading.textContent = describe(connections, strips, report);
    for (const one of [rates, tails, ...counters.charts]) one.redraw();
    for (const fold of element.querySelectorAll<HTMLDetailsElement>("details.seconds")) {
      fold.open = false;
      while (fold.childElementCount > 1) fold.lastElementChild?.remove();
    }
  };
  const fold = folded("Seconds as a table", () => secondsTable(strips));
  fold.classList.add("seconds");
  const picker = rungPicker(rungs, first, (connections) => {
    show(connections);
    link(true);
  });
  const element = section("seconds", "Every second of every rung",
    picker.element,
    heading,
    h("div", { class: "pair" },
      plain("Transactions per second; shaded is what counts, the line its mean", rates),
      plain("99th percentile of the service time in each second", tails),
      counters.elements),
    report.omitted_counters.length ? h("p", { class: "notes" }, `To keep the page small, the seconds of ${counted(report.omitted_counters.length, "counter")} are in the bundle only.`) : null,
    fold);
  /** What the address says; rungs and counters that are not there leave what was there at first. */
  const restore = () => {
    const values = linkOf("seconds");
    if (values === null) return;
    const wanted = Number(values.get("rung"));
    const rung = rungs.includes(wanted) ? wanted : first;
    counters.choose([values.get("left"), values.get("right")]);
    picker.mark(rung);
    show(rung);
    if (location.hash !== "") reveal(element);
  };
  addEventListener("popstate", restore);
  show(first);
  queueMicrotask(() => location.hash !== "" && restore());
  return element;
}

function plain(title: string, body: Chart): HTMLElement {
  return h("figure", {}, h("figcaption", {}, title), body.element);
}

function lay(measurements: Measurement[]): Strip[] {
  let start = 0;
  return [...measurements].sort((a, b) => a.repeat - b.repeat).map((measurement) => {
    const end = start + (measurement.seconds.second.at(-1) ?? 0);
    const strip = { measurement, start, end };
    start = end + gap;
    return strip;
  });
}

function describe(connections: number, strips: Strip[], { summary }: Report): string {
  const rung = summary.rungs.find((one) => one.connections === connections);
  const repeats = strips.map(({ measurement }) => {
    const cut = measurement.warmup_seconds === null ? "not counted" : `${measurement.warmup_seconds}\u202fs of warm-up cut`;
    return `Repeat ${measurement.repeat + 1} (measurement ${measurement.measurement + 1}${measurement.outcome === "complete" ? "" : `, ${measurementOutcomeLabels[measurement.outcome]}`}): ${cut}`;
  });
  const steadiness = rung ? (rung.steady ? "steady" : `not steady${rung.unsteady_reason ? `: ${rung.unsteady_reason}` : ""}`) : "not in the summary";
  return `${counted(connections, "connection")}: ${rung ? `${number(rung.throughput.value)}/s, ` : ""}${steadiness}. ${repeats.join(". ")}.`;
}

/** A chart over the strips. A null between two keeps the line from crossing the gap. */
function secondsChart(
  name: string, title: string, strips: () => Strip[], values: (seconds: Seconds, measurement: Measurement) => Values,
  show: (value: number) => string, extra?: (u: uPlot, ink: Ink) => void,
): Chart {
  return chart(name, `Line chart: ${title} for each second of the chosen rung; the table below holds the figures.`, 190, (ink): Plot | null => {
    const laid = strips();
    const xs: number[] = [];
    const ys: Values = [];
    for (const { measurement, start, end } of laid) {
      measurement.seconds.second.forEach((second, at) => {
        xs.push(start + second);
        ys.push(values(measurement.seconds, measurement)[at] ?? null);
      });
      xs.push(end + gap / 2);
      ys.push(null);
    }
    const known = ys.filter(isKnown);
    if (known.length === 0) return null;
    const last = laid.at(-1)?.end ?? 1;
    return {
      data: [xs, ys],
      options: {
        padding: [8, 8, 0, 0],
        cursor: { ...pointer, sync: { key: "seconds", setSeries: false } },
        scales: { x: { time: false, range: [-1, Math.max(1, last) + 1] }, y: fromZero(Math.max(...known), 1.22) },
        axes: [secondsAxis(ink, laid), amountAxis(ink, show, 60)],
        series: [{}, { stroke: ink.blue, width: 1.5, points: { show: known.length < 3, size: 5 }, spanGaps: false }],
        hooks: {
          drawClear: [(u) => {
            for (const { measurement, start, end } of laid) if (measurement.warmup_seconds !== null) shade(start + measurement.warmup_seconds - 0.5, end + 0.5, ink.shade)(u);
          }],
          draw: [(u) => {
            extra?.(u, ink);
            if (laid.length > 1) for (const { measurement, start, end } of laid) banner(start, end, `repeat ${measurement.repeat + 1}`, ink.muted)(u);
          }],
        },
      },
      readout: (index) => {
        const strip = laid.find(({ start, end }) => (xs[index] ?? -1) >= start && (xs[index] ?? -1) <= end);
        const value = ys[index];
        return strip && isKnown(value) ? `repeat ${strip.measurement.repeat + 1}, second ${(xs[index] ?? 0) - strip.start}: ${show(value)}` : "";
      },
    };
  });
}

function secondsAxis(ink: Ink, strips: Strip[]): uPlot.Axis {
  const marks = new Map<number, string>();
  const total = Math.max(1, strips.at(-1)?.end ?? 1);
  const step = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600].find((one) => total / one <= 12) ?? 900;
  for (const { start, end } of strips) for (let second = 0; start + second <= end; second += step) marks.set(start + second, String(second));
  return { ...amountAxis(ink), size: 24, splits: () => [...marks.keys()], values: (_u, splits) => splits.map((at) => marks.get(at) ?? ""), grid: { show: false }, label: "second of the repeat", labelSize: 16, labelGap: 0 };
}

interface CounterCharts {
  charts: Chart[];
  elements: HTMLElement[];
  /** The counters that are drawn, chart by chart. */
  names(): string[];
  /** Draws these; null, or one that is not there, stands for the one of the beginning. */
  choose(names: (string | null)[]): void;
}

/** `changed` is called when the reader chose another counter. */
function counterCharts(report: Report, strips: () => Strip[], changed: () => void): CounterCharts {
  const names = [...new Set(report.measurements.flatMap((measurement) => Object.keys(measurement.counters)))].sort((a, b) => groupOf(a).localeCompare(groupOf(b)) || a.localeCompare(b));
  const preferred = [/^server\.cpu_user/, /^server\.voluntary_switches/];
  const charts: Chart[] = [];
  const usual = names.length === 0 ? [] : preferred.map((wanted, place) => names.find((name) => wanted.test(name)) ?? names[Math.min(place, names.length - 1)] ?? "");
  const chosen = [...usual];
  const selects: HTMLSelectElement[] = [];
  const units: HTMLElement[] = [];
  const take = (place: number, name: string) => {
    chosen[place] = selects[place]!.value = name;
    const { title, unit } = counterBySecond(name);
    units[place]!.textContent = unit;
    charts[place]!.redraw(`Line chart: ${title}, ${unit}, for each second of the chosen rung.`);
  };
  const elements = usual.map((first, place) => {
    const drawn = secondsChart(`seconds-counter-${place + 1}`, "the chosen counter", strips, (_seconds, measurement) => measurement.counters[chosen[place]!] ?? [], (value) => counterBySecond(chosen[place]!).show(value));
    const unit = h("span", {}, counterBySecond(first).unit);
    const options = [...new Set(names.map(groupOf))].map((group) => h("optgroup", { label: group },
      names.filter((name) => groupOf(name) === group).map((name) => h("option", { value: name, selected: name === first }, `${group}: ${counterBySecond(name).title}`))));
    const select = h("select", { id: `counter-${place + 1}`, "aria-label": `Counter of chart ${place + 1}` }, options);
    select.addEventListener("change", () => {
      take(place, select.value);
      changed();
    });
    charts.push(drawn);
    selects.push(select);
    units.push(unit);
    return h("figure", {}, h("figcaption", {}, select, " ", unit), drawn.element);
  });
  return {
    charts, elements,
    names: () => chosen.map((name, place) => (name === usual[place] ? "" : name)),
    choose: (wanted) => usual.forEach((first, place) => take(place, names.includes(wanted[place] ?? "") ? wanted[place]! : first)),
  };
}

function secondsTable(strips: Strip[]): HTMLElement {
  const rows = strips.flatMap(({ measurement }) => measurement.seconds.second.map((second, at) => ({ measurement, second, at })));
  const ms = (key: "p50_ms" | "p95_ms" | "p99_ms" | "max_ms") => (row: (typeof rows)[number]) => number(row.measurement.seconds[key][row.at]);
  return table("Seconds of the chosen rung", [
    { heading: "repeat", cell: (row) => count(row.measurement.repeat + 1) },
    { heading: "second", cell: (row) => count(row.second) },
    { heading: "counts", words: true, cell: (row) => (row.measurement.warmup_seconds !== null && row.second >= row.measurement.warmup_seconds ? "yes" : "no") },
    { heading: "transactions", unit: "per s", cell: (row) => number(row.measurement.seconds.transactions[row.at]) },
    { heading: "queries", unit: "per s", cell: (row) => number(row.measurement.seconds.queries[row.at]) },
    { heading: "errors", unit: "per s", cell: (row) => number(row.measurement.seconds.errors[row.at]) },
    { heading: "p50", unit: "ms", cell: ms("p50_ms") },
    { heading: "p95", unit: "ms", cell: ms("p95_ms") },
    { heading: "p99", unit: "ms", cell: ms("p99_ms") },
    { heading: "max", unit: "ms", cell: ms("max_ms") },
  ], rows);
}
