/** The figures of a comparison rung by rung: throughput and CPU, kinds of code, and what of the change is told. */

import type { Estimate } from "./data.ts";
import { costUnit, hasChanged, isWatched, signedMicros, type Diff, type RungChange } from "./diffData.ts";
import { h, section } from "./element.ts";
import { count, isKnown, number, times, unknown } from "./format.ts";
import { micros } from "./ledger.ts";
import { table, type Column } from "./table.ts";

/** One row a rung that both runs have. */
export function figures(diff: Diff): HTMLElement | null {
  const { rungs } = diff.comparison;
  if (isWatched(diff)) {
    const notes = rungs.flatMap((rung) => rung.notes);
    return notes.length === 0 ? null : section("figures", "What to keep in mind", h("ul", { class: "notes" }, notes.map((note) => h("li", {}, `${note}.`))));
  }
  const notes = [...new Set(rungs.flatMap((rung) => rung.notes))].map((note) =>
    h("li", {}, `At ${rungs.filter((rung) => rung.notes.includes(note)).map((rung) => count(rung.connections)).join(", ")} connections: ${note}.`));
  return section("figures", "Figures of every rung that both have",
    table("Throughput, CPU time and latency of both runs at every rung that both have", [
      { heading: "connections", cell: (rung) => count(rung.connections) },
      { heading: "measurements", unit: "A, B", cell: (rung) => rung.measurements.join(", ") },
      { heading: "A", unit: "tx/s", cell: (rung) => number(rung.throughput.a) },
      { heading: "B", unit: "tx/s", cell: (rung) => number(rung.throughput.b) },
      { heading: "B over A", unit: "95\u202f% interval", cell: (rung) => ratio(rung.throughput_ratio) },
      { heading: "CPU, A", unit: "µs/tx", cell: (rung) => micros(rung.cpu_seconds_per_txn.a) },
      { heading: "CPU, B", unit: "µs/tx", cell: (rung) => micros(rung.cpu_seconds_per_txn.b) },
      { heading: "B over A", unit: "95\u202f% interval", cell: (rung) => ratio(rung.cpu_ratio) },
      { heading: "p95, A", unit: "ms", cell: (rung) => number(rung.p95_ms.a) },
      { heading: "p95, B", unit: "ms", cell: (rung) => number(rung.p95_ms.b) },
      { heading: "", words: true, cell: (rung) => (hasChanged(rung) ? { text: "changed", mark: "doubtful" } : "") },
    ], rungs),
    h("p", { class: "notes" }, "Marked rungs have a significant change of throughput, at 5\u202f% over all rungs together (Holm correction). The intervals come from the scatter of the measurements."),
    notes.length > 0 ? h("ul", { class: "notes" }, notes) : null);
}

function ratio(estimate: Estimate | null): string {
  if (estimate === null) return unknown;
  const { value, low, high } = estimate;
  return `${times(value)} (${isKnown(low) && isKnown(high) ? `${low.toFixed(2)} – ${high.toFixed(2)}` : "no interval"})`;
}

/** The same time by kind of code; nothing where call paths are compared. */
export function kindsOfCode(diff: Diff): HTMLElement | null {
  const { rungs } = diff.comparison;
  const kinds = [...new Set(rungs.flatMap((rung) => rung.code_kinds.map((one) => one.kind)))];
  if (kinds.length === 0) return null;
  return section("kinds", "Time by kind of code",
    h("p", { class: "lead" }, `${diff.comparison.unpaired}, so call paths cannot be paired. This is the same time by kind of code, A → B.`),
    table(`Time of a ${diff.comparison.per} by kind of code${isWatched(diff) ? "" : " at every rung"}, A to B`, [
      { heading: "kind of code", words: true, cell: (kind) => kind },
      ...rungs.map((rung): Column<string> => ({ heading: isWatched(diff) ? "time" : `at ${count(rung.connections)}`, unit: costUnit(diff), cell: (kind) => {
        const found = rung.code_kinds.find((one) => one.kind === kind)?.seconds_per_txn;
        return found ? `${micros(found.a)} → ${micros(found.b)}` : unknown;
      } })),
    ], kinds));
}

/** What the listed call paths leave of the change of each rung at which they are compared; nothing where there is none. */
export function told(diff: Diff): HTMLElement | null {
  const { per, rungs } = diff.comparison;
  const unit = costUnit(diff);
  const known = rungs.flatMap((rung): [RungChange, NonNullable<RungChange["unexplained"]>][] => (rung.unexplained ? [[rung, rung.unexplained]] : []));
  if (known.length === 0) return null;
  return section("told", "Explained change",
    h("p", { class: "lead" }, `The change of the time per ${per} from A to B${isWatched(diff) ? "" : " (of CPU time where the CPUs are busy)"}, in three parts: the uniform slowdown, the listed call paths, and the unexplained rest.`),
    table(`Explained change${isWatched(diff) ? "" : " at every rung"}, microseconds per ${per}`, [
      ...(isWatched(diff) ? [] : [{ heading: "connections", cell: ([rung]: [RungChange, unknown]) => count(rung.connections) }]),
      { heading: "in all", unit, cell: ([, one]) => signedMicros(one.total) },
      { heading: "uniform slowdown", unit, cell: ([, one]) => signedMicros(one.uniform) },
      { heading: "paths listed", unit, cell: ([, one]) => signedMicros(one.listed) },
      { heading: "unexplained", unit, cell: ([, one]) => signedMicros(one.not_listed.value) },
      { heading: "95\u202f% interval", unit, cell: ([, { not_listed: { low, high } }]) => (isKnown(low) && isKnown(high) ? `${signedMicros(low)} to ${signedMicros(high)}` : unknown) },
    ], known));
}
