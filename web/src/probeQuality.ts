/** How much of what the server's threads did was seen: what was lost, what has no name, and how well the accounts close. */

import type { Report, Rung, RungQuality } from "./data.ts";
import { h } from "./element.ts";
import { count, isKnown, number, percent, signedPercent, type Figure } from "./format.ts";
import { table, type Cell, type Column } from "./table.ts";

interface Row { rung: Rung | null; quality: RungQuality | null; report: Report }

interface Check {
  heading: string;
  unit: string;
  show: (value: number) => string;
  doubtful?: (value: number) => boolean;
  /** The figure, or why there is none. */
  of: (row: Row) => Figure | string;
}

const tolerance = 0.02;
const isLarge = (value: number) => Math.abs(value) > tolerance;

/** A figure that the analysis gives with its reason. */
function given(name: string): Check["of"] {
  return ({ quality }) => {
    const found = quality?.figures.find((figure) => figure.name === name);
    return found?.value ?? found?.reason ?? "this rung has no complete measurement";
  };
}

/** A figure of the ledger, or of a watch. */
function ofLedger(run: (rung: Rung) => Figure, watch: (report: Report) => Figure, otherwise: string): Check["of"] {
  return ({ rung, report }) => {
    const value = rung ? run(rung) : report.summary.watch ? watch(report) : null;
    if (isKnown(value)) return value;
    if (rung?.ledger || report.summary.watch) return otherwise;
    return [...report.manifest.missing, ...report.summary.missing].find(({ figure }) => figure === "ledger")?.reason ?? "the server’s threads were not watched in this run";
  };
}

const noAccount = "the scheduler’s account of the server could not be read over the same seconds";

const checks: Check[] = [
  { heading: "ledger", unit: "residual", show: signedPercent, doubtful: isLarge, of: ofLedger((rung) => rung.ledger?.residual, () => null, "no load of ours: nobody counted transactions") },
  { heading: "of lifetime", unit: "residual", show: signedPercent, doubtful: isLarge, of: ofLedger((rung) => rung.ledger?.states_residual, ({ summary }) => summary.watch?.connections.states_residual, "how long the threads lived was not measured") },
  { heading: "of CPU time", unit: "residual", show: signedPercent, doubtful: isLarge, of: ofLedger((rung) => rung.ledger?.cpu_residual, ({ summary }) => summary.watch?.cpu_residual, noAccount) },
  { heading: "not its own", unit: "of CPU time", show: (value) => percent(value), doubtful: (value) => value > tolerance, of: ofLedger((rung) => rung.ledger?.uncharged_cpu_share, ({ summary }) => summary.watch?.uncharged_cpu_share, noAccount) },
  { heading: "samples", unit: "on a CPU", show: count, of: given("samples_on_cpu") },
  { heading: "samples", unit: "waiting", show: count, of: given("samples_waiting") },
  { heading: "ring full", unit: "stacks lost", show: count, doubtful: (value) => value > 0, of: given("lost_to_full_ring") },
  { heading: "no slot", unit: "switches", show: count, doubtful: (value) => value > 0, of: given("lost_without_slot") },
  { heading: "no match", unit: "records", show: count, of: given("unmatched") },
  { heading: "lost", unit: "in all", show: count, of: given("samples_lost") },
  { heading: "whole stacks", unit: "of walks", show: (value) => percent(value), doubtful: (value) => value < 0.99, of: given("complete_stacks_share") },
  { heading: "without name", unit: "of CPU time", show: (value) => percent(value), doubtful: (value) => value > 0.1, of: given("unnamed_share") },
  { heading: "waits seen", unit: "of the time", show: (value) => percent(value), of: given("observed_waits_share") },
  { heading: "the probe", unit: "CPUs", show: number, of: given("reader_cpus") },
];

/** The table and, below it, what was not measured and why; nothing where there is no rung and no watch. */
export function probeQuality(report: Report): HTMLElement | null {
  const { rungs, watch } = report.summary;
  const of = (connections: number | null) => report.quality.find((one) => one.connections === connections) ?? null;
  const rows: Row[] = watch ? [{ rung: null, quality: of(null), report }] : rungs.map((rung) => ({ rung, quality: of(rung.connections), report }));
  if (rows.length === 0) return null;
  const isMeasured = (check: Check) => rows.some((row) => typeof check.of(row) === "number");
  const columns: Column<Row>[] = [
    { heading: watch ? "threads of" : "connec\u00adtions", cell: ({ rung }) => (rung ? count(rung.connections) : "the server") },
    ...checks.filter(isMeasured).map((check): Column<Row> => ({
      heading: check.heading, unit: check.unit,
      cell: (row): Cell => {
        const value = check.of(row);
        if (typeof value === "string" || !isKnown(value)) return { text: "–", mark: "faint", title: typeof value === "string" ? `Not measured: ${value}` : undefined };
        const doubtful = check.doubtful?.(value) ?? false;
        return { text: (doubtful ? "! " : "") + check.show(value), mark: doubtful ? "doubtful" : undefined };
      },
    })),
  ];
  const shown = columns.length > 1;
  return h("div", { id: "probe-quality" }, h("h3", {}, "What was seen of the server’s threads"),
    shown ? h("p", { class: "lead" }, "The ledger’s residual compares the states of the threads with N/X, that of lifetime with the time that they lived, that of CPU time with the scheduler’s account. ",
      "Time that was not the threads’ own went to interrupts or to the host of a virtual machine. Samples and losses are of whole measurements and of all threads; a record without a match is the end of a wait whose beginning was not seen. ",
      "Where threads switch so often that seeing it all would cost too much, what they wait for is seen for part of the time and concluded for the rest; time on CPU and in run queues is exact always. ",
      "The probe is the thread that reads what the kernel’s programs send; what these take themselves is in the server’s own CPU time.") : null,
    shown ? table("What was seen of the server’s threads at every rung", columns, rows) : null,
    reasons(rows));
}

/** Why figures are missing, those with one reason together. */
function reasons(rows: Row[]): HTMLElement | null {
  const found = new Map<string, Set<string>>();
  for (const check of checks) {
    for (const row of rows) {
      const reason = check.of(row);
      if (typeof reason === "string") found.set(reason, (found.get(reason) ?? new Set()).add(`${check.heading} (${check.unit})`));
    }
  }
  if (found.size === 0) return null;
  return h("ul", { class: "notes" }, [...found].map(([reason, names]) => h("li", {}, `Not measured: ${[...names].join(", ")}: ${reason}.`)));
}
