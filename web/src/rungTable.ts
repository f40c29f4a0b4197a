/** All figures of all rungs. */

import { folded } from "./chart.ts";
import type { Latency, Report, Rung } from "./data.ts";
import { h, section } from "./element.ts";
import { counterByTransaction, groupOf } from "./counterNames.ts";
import { judgedRungs } from "./judgedRungs.ts";
import { count, counted, isKnown, number, percent, si, times, type Figure } from "./format.ts";
import { table, type Column } from "./table.ts";

/** One row a rung; columns that no rung has are left out, they stand under missing figures. */
export function rungTable(report: Report): HTMLElement | null {
  const { rungs, verdict } = report.summary;
  if (rungs.length === 0) return null;
  const figure = (heading: string, unit: string, of: (rung: Rung) => Figure, show: (value: number) => string = number): Column<Rung> | null =>
    rungs.some((rung) => isKnown(of(rung)))
      ? { heading, unit, cell: (rung) => { const value = of(rung); return isKnown(value) ? show(value) : { text: "–", mark: "faint" }; } } : null;
  const ms = (name: string, key: keyof Latency) => figure(name, "ms", (rung) => rung.latency_ms[key]);
  const due = (name: string, key: keyof Latency) => figure(`response ${name}`, "ms", (rung) => rung.response_ms?.[key]);
  const columns: (Column<Rung> | null)[] = [
    { heading: "connec\u00adtions", cell: (rung) => count(rung.connections) },
    { heading: "repeats", cell: (rung) => count(rung.repeat_count) },
    figure("through\u00adput", "tx/s", (rung) => rung.throughput.value),
    figure("low", "tx/s", (rung) => rung.throughput.low),
    figure("high", "tx/s", (rung) => rung.throughput.high),
    ms("mean", "mean"), ms("p50", "p50"), ms("p95", "p95"), ms("p99", "p99"), ms("p99.9", "p999"), ms("max", "max"),
    due("p50", "p50"), due("p99", "p99"), due("max", "max"),
    figure("server’s CPU", "of its CPUs", (rung) => rung.iron_law?.utilisation, (value) => percent(value)),
    figure("CPU time", "µs/tx", (rung) => (rung.iron_law ? rung.iron_law.cpu_seconds_per_txn * 1e6 : null)),
    figure("kernel", "of CPU time", (rung) => rung.iron_law?.system_share, (value) => percent(value)),
    figure("instruc\u00adtions", "per tx", (rung) => rung.iron_law?.instructions_per_txn, (value) => si(value)),
    figure("CPI", "cycles", (rung) => rung.iron_law?.cycles_per_instruction),
    figure("clock", "GHz", (rung) => (isKnown(rung.iron_law?.clock_hz) ? rung.iron_law.clock_hz / 1e9 : null)),
    figure("switches", "per tx", (rung) => rung.context_switches_per_txn),
    {
      heading: "remarks", words: true, cell: (rung) => ({
        text: [
          rung.connections === verdict?.peak_connections ? "peak" : "",
          rung.connections === verdict?.falls_over_at ? "falls over" : "",
          rung.steady ? "" : "not steady",
          rung.client_limited ? "client-limited" : "",
        ].filter(Boolean).join(", "),
        mark: rung.steady && !rung.client_limited ? undefined : "doubtful",
      }),
    },
  ];
  return section("figures", "All figures",
    table("All figures of every rung", columns.filter((column) => column !== null), rungs, (rung) => (rung.connections === verdict?.peak_connections ? "peak" : null)),
    perTransaction(report));
}

/** The other counters per transaction; the many of the server's status are folded away. */
function perTransaction({ summary }: Report): HTMLElement | null {
  const names = [...new Set(summary.rungs.flatMap((rung) => Object.keys(rung.per_txn)))]
    .sort((a, b) => groupOf(a).localeCompare(groupOf(b)) || a.localeCompare(b));
  if (names.length === 0) return null;
  const ours = names.filter((name) => !name.startsWith("status."));
  const status = names.filter((name) => name.startsWith("status.") && summary.rungs.some((rung) => rung.per_txn[name]));
  return h("div", {}, h("h3", {}, "Counters per transaction"),
    ours.length ? counterTable("Counters per transaction at every rung", ours, summary) : null,
    status.length ? folded(`${counted(status.length, "counter")} of the server’s status`, () => counterTable("Status of the server per transaction at every rung", status, summary)) : null);
}

/** One row a counter, the change from the peak to the last rung at its end. */
function counterTable(caption: string, names: string[], summary: Report["summary"]): HTMLElement {
  const { rungs, verdict } = summary;
  const [peak, last] = [rungs.find((rung) => rung.connections === verdict?.peak_connections), judgedRungs(summary).at(-1)];
  const change = (name: string) => {
    const [from, to] = [peak?.per_txn[name], last?.per_txn[name]];
    return isKnown(from) && isKnown(to) && from !== 0 && peak !== last ? to / from : null;
  };
  return table(caption, [
    { heading: "counter", words: true, cell: (name) => [h("span", { class: "nowrap" }, counterByTransaction(name).title), h("span", { class: "faint" }, ` ${groupOf(name).toLowerCase()}`)] },
    { heading: "unit", words: true, cell: (name) => counterByTransaction(name).unit },
    ...rungs.map((rung): Column<string> => ({
      heading: count(rung.connections),
      cell: (name) => { const value = rung.per_txn[name]; return isKnown(value) ? counterByTransaction(name).show(value) : { text: "–", mark: "faint" }; },
    })),
    { heading: "last / peak", cell: (name) => ({ text: times(change(name)), mark: Math.abs(Math.log(change(name) ?? 1)) > 0.0953 ? "doubtful" : undefined }) },
  ], names);
}
