/** The head of a comparison: what it comes to, of which two runs, and what spoils it. */

import { called, hasChanged, isWatched, type Diff, type Run } from "./diffData.ts";
import { h, type Child } from "./element.ts";
import { bytes, count, counted, isKnown, moment, number, percent, times } from "./format.ts";
import { known, named, title } from "./subject.ts";
import { interval, thousands } from "./verdict.ts";

/** The sentence as the headline, the two runs, the figures that carry it, and the warnings. */
export function head(diff: Diff): HTMLElement {
  const { comparison } = diff;
  return h("header", { class: "verdict" },
    h("h1", { id: "verdict" }, thousands(comparison.sentence)),
    h("dl", { class: "runs" }, ([0, 1] as const).map((side) => h("div", {}, h("dt", {}, side === 0 ? "A, before" : "B, after"), h("dd", {}, h("strong", {}, diff.runs[side].name || called(diff, side)), ` ${subject(diff.runs[side])}`)))),
    keyFigures(diff),
    comparison.warnings.length > 0 ? h("ul", { class: "warnings diff-warnings", id: "warnings" }, comparison.warnings.map((words) => h("li", {}, words))) : null,
    settingsThatDiffer(diff));
}

/** Server, load and machine of a run. */
function subject({ server, workload, machine, started_at }: Run): string {
  const size = isKnown(workload.tables) ? `, ${counted(workload.tables, "table")}${isKnown(workload.rows) ? ` of ${counted(workload.rows, "row")}` : ""}` : "";
  const cpus = server.cpu_count === null ? isKnown(machine.cpus) ? counted(machine.cpus, "CPU") : "unknown number of CPUs"
    : `${server.cpu_count} of ${isKnown(machine.cpus) ? counted(machine.cpus, "CPU") : "an unknown number of CPUs"}`;
  return [
    named(server), server.build_id ? `build ${server.build_id.slice(0, 12)}` : "",
    workload.name === "watch" ? "" : `${title(workload)}${size}, ${workload.loop_kind ?? "unknown"} loop`,
    `${known(machine.cpu_model) ?? "unknown CPU model"}, ${cpus}${isKnown(machine.memory_bytes) ? `, ${bytes(machine.memory_bytes)}` : ""}`,
    known(machine.kernel) ? `kernel ${machine.kernel}` : "", machine.hypervisor ? `under ${machine.hypervisor}` : "",
    started_at ? moment(started_at) : "",
  ].filter(Boolean).join(" · ");
}

function keyFigures(diff: Diff): Child {
  const { comparison: { rungs, paths }, runs } = diff;
  const entry = (name: string, value: string, note: string) => h("div", {}, h("dt", {}, name), h("dd", {}, value, h("small", {}, note)));
  const peak = (run: Run) => run.rungs.filter((rung) => !rung.client_limited).reduce<Run["rungs"][number] | null>((best, rung) => (best === null || rung.throughput.value > best.throughput.value ? rung : best), null);
  const [before, after] = runs.map(peak);
  const last = rungs.at(-1);
  const distance = (ratio: number) => Math.abs(Math.log(ratio));
  const changed = rungs.filter(hasChanged);
  const most = (changed.length > 0 ? changed : rungs).reduce<(typeof rungs)[number] | null>((found, rung) =>
    rung.throughput_ratio && (!found?.throughput_ratio || distance(rung.throughput_ratio.value) > distance(found.throughput_ratio.value)) ? rung : found, null);
  const sure = paths.filter((path) => path.p !== null);
  // One that changed at several rungs is one; working and spinning are one account.
  const distinct = new Set(sure.map(({ state, path }) => [state.includes("spin") ? "cpu" : state, ...path].join("\n"))).size;
  const comparable = rungs.some((rung) => rung.stacks.every(Boolean));
  const at = new Set(sure.map((path) => path.connections));
  const pathsThatChanged = entry("Call paths that changed", diff.paired && comparable ? count(distinct) : "–", diff.paired
    ? !comparable ? isWatched(diff) ? "no call paths in both" : "no rung has call paths in both"
    : sure.length > 0 ? `significant${isWatched(diff) ? "" : `, at ${[...at].map(count).join(", ")}`}; the largest ${percent(Math.max(...sure.map((path) => Math.abs(path.share))))} of the time` : "none significant"
    : "those of A and B cannot be paired");
  if (isWatched(diff)) return h("dl", { class: "keys" }, pathsThatChanged);
  return h("dl", { class: "keys" },
    before && after ? entry("Peak", `${number(before.throughput.value)} → ${number(after.throughput.value)}/s`, `at ${count(before.connections)} and at ${counted(after.connections, "connection")}`) : null,
    most?.throughput_ratio ? entry("Throughput changed most", times(most.throughput_ratio.value),
      `at ${counted(most.connections, "connection")}; ${isKnown(most.throughput_ratio.low) ? `95\u202f% interval ${interval(most.throughput_ratio, times)}` : "too few measurements for an interval"}${hasChanged(most) ? "" : most.throughput_p === null ? "; not tested" : "; within noise"}`) : null,
    entry("Rungs that changed", rungs.some((rung) => rung.throughput_p !== null) ? `${changed.length} of ${rungs.length}` : "unknown",
      rungs.some((rung) => rung.throughput_p !== null) ? "throughput, significant over all rungs together" : "fewer than two measurements on a side"),
    last?.cpu_ratio ? entry("CPU per transaction", times(last.cpu_ratio.value), `at ${counted(last.connections, "connection")}; ${isKnown(last.cpu_ratio.low) ? interval(last.cpu_ratio, times) : "no interval"}`) : null,
    pathsThatChanged);
}

/** A line for the settings with two values, which are often the very thing that is compared. */
function settingsThatDiffer({ comparison: { settings } }: Diff): Child {
  const both = settings.filter(({ a, b }) => a !== null && b !== null);
  if (settings.length === 0) return null;
  const few = both.length > 0 && both.length <= 4;
  const words = (value: string | null) => (value === "" ? "empty" : (value ?? "").length > 30 ? `${(value ?? "").slice(0, 29)}…` : value ?? "");
  return h("p", { class: "caveat", id: "differ" }, h("a", { href: "#circumstances" }, `${counted(both.length, "setting has", "settings have")} two values`),
    few ? `: ${both.map(({ name, a, b }) => `${name} ${words(a)} → ${words(b)}`).join("; ")}` : "",
    both.length < settings.length ? `; ${count(settings.length - both.length)} only one of them has` : "", ".");
}
