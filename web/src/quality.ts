/** How far the figures can be trusted: what should be 1 or 0, and is it. */

import type { Report, Rung, Measurement } from "./data.ts";
import { h, section } from "./element.ts";
import { bytes, count, isKnown, milliseconds, number, percent, signedPercent, type Figure } from "./format.ts";
import { longRuns } from "./longRun.ts";
import { probeQuality } from "./probeQuality.ts";
import { table, type Cell, type Column } from "./table.ts";

interface Check {
  heading: string;
  unit: string;
  of: (rung: Rung, measurements: Measurement[]) => Figure;
  show: (value: number) => string;
  /** Whether the figure is a reason for doubt. */
  doubtful?: (value: number, rung: Rung) => boolean;
}

const worst = (measurements: Measurement[], of: (measurement: Measurement) => number | null): number | null => {
  const known = measurements.map(of).filter(isKnown);
  return known.length ? Math.max(...known) : null;
};

const checks: Check[] = [
  { heading: "offered", unit: "tx/s", of: (_rung, measurements) => worst(measurements, (measurement) => measurement.offered_rate), show: number },
  { heading: "Little’s law", unit: "X·R/N", of: (rung) => rung.littles_law_ratio, show: (value) => value.toFixed(3), doubtful: (value) => Math.abs(value - 1) > 0.02 },
  { heading: "at work", unit: "connections", of: (rung) => rung.effective_concurrency, show: number, doubtful: (_value, rung) => rung.too_few_at_work ?? false },
  { heading: "iron law", unit: "residual", of: (rung) => rung.iron_law?.residual, show: signedPercent, doubtful: (value) => Math.abs(value) > 0.02 },
  { heading: "jitter", unit: "between halves", of: (rung) => rung.jitter, show: (value) => percent(value), doubtful: (value) => value > 0.02 },
  { heading: "warm-up", unit: "s, longest", of: (rung) => (rung.warmup_seconds.length ? Math.max(...rung.warmup_seconds) : null), show: count },
  { heading: "steal", unit: "of machine", of: (rung) => rung.steal_share, show: (value) => percent(value), doubtful: (value) => value > 0.02 },
  { heading: "other programs", unit: "of machine", of: (rung) => rung.noise_cpu_share, show: (value) => percent(value), doubtful: (value) => value > 0.05 },
  { heading: "client", unit: "CPUs", of: (rung) => rung.client_cpus, show: number },
  { heading: "load threads", unit: "on a CPU", of: (rung) => rung.load_threads?.cpu_share ?? null, show: (value) => percent(value), doubtful: (value) => value > 0.7 },
  { heading: "load threads", unit: "waiting for a CPU", of: (rung) => rung.load_threads?.run_queue_share ?? null, show: (value) => percent(value), doubtful: (_value, rung) => rung.too_few_at_work ?? false },
  { heading: "client lag", unit: "µs, p99", of: (_rung, measurements) => worst(measurements, (measurement) => measurement.client_lag_p99_us), show: number },
  { heading: "client memory", unit: "resident", of: (_rung, measurements) => worst(measurements, (measurement) => measurement.client_resident_bytes), show: bytes },
  { heading: "connecting", unit: "longest", of: (_rung, measurements) => worst(measurements, (measurement) => measurement.connect_seconds * 1000), show: milliseconds },
];

/** The panel: one row a rung, doubtful figures marked in words and colour. */
export function quality(report: Report): HTMLElement | null {
  const { rungs } = report.summary;
  if (rungs.length === 0) return report.summary.watch ? section("quality", "How good the data are", probeQuality(report)) : null;
  const measurementsOf = (rung: Rung) => report.measurements.filter((measurement) => measurement.connections === rung.connections);
  const rows = rungs.map((rung) => ({ rung, measurements: measurementsOf(rung) }));
  const shown = checks.filter((check) => rows.some(({ rung, measurements }) => isKnown(check.of(rung, measurements))));
  const columns: Column<(typeof rows)[number]>[] = [
    { heading: "connec\u00adtions", cell: ({ rung }) => count(rung.connections) },
    ...shown.map((check): Column<(typeof rows)[number]> => ({
      heading: check.heading, unit: check.unit,
      cell: ({ rung, measurements }): Cell => {
        const value = check.of(rung, measurements);
        if (!isKnown(value)) return { text: "–", mark: "faint" };
        const doubtful = check.doubtful?.(value, rung) ?? false;
        return { text: (doubtful ? "! " : "") + check.show(value), mark: doubtful ? "doubtful" : undefined };
      },
    })),
    {
      heading: "remarks", words: true, cell: ({ rung }) => [
        rung.steady ? "" : `Not steady${rung.unsteady_reason ? `: ${rung.unsteady_reason}` : ""}.`,
        rung.client_limited ? `Client-limited${rung.client_limited_reason ? `: ${rung.client_limited_reason}` : ""}.` : "",
      ].filter(Boolean).join(" "),
    },
  ];
  const compared = rungs.find((rung) => rung.iron_law?.residual_sources)?.iron_law?.residual_sources;
  return section("quality", "How good the data are",
    h("p", { class: "lead" }, "Little’s law should give 1: every connection was always inside a transaction. ",
      compared ? `The residual of the iron law compares ${compared}. ` : "", "A figure that gives reason for doubt is marked with “!”."),
    table("Data quality of every rung", columns, rows),
    longRuns(rungs),
    probeQuality(report));
}
