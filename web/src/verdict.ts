/** The head of the report: what it comes to, on what, and whether the run was complete. */

import type { Estimate, Report } from "./data.ts";
import { h, type Child } from "./element.ts";
import { between, bytes, count, counted, isKnown, moment, number, percent, times } from "./format.ts";
import { judgedRungs } from "./judgedRungs.ts";
import { imported, known, named, title } from "./subject.ts";

/** The verdict as the headline, the figures that carry it, and what it holds for. */
export function verdict(report: Report): HTMLElement {
  const { summary } = report;
  const sentence = summary.verdict?.sentence ?? watched(report)
    ?? (summary.rungs.length ? "The run has no verdict." : "No rung was measured yet, so there is no verdict.");
  return h("header", { class: "verdict" },
    incomplete(report),
    h("h1", { id: "verdict" }, thousands(sentence)),
    [...(summary.replay_rates ?? []).map((one) => one.sentence), summary.combined_throughput ?? ""].map((said) =>
      said && h("p", { class: "beside" }, thousands(said))),
    h("p", { class: "subject" }, subject(report)),
    keyFigures(report),
    caveat(report));
}

/** What to know before believing the figures, in a line. */
function caveat(report: Report): Child {
  const found = warnings(report).length;
  const { durability } = report.summary;
  if (found === 0 && !durability) return null;
  return h("p", { class: "caveat" },
    found > 0 ? [h("a", { href: "#caveats" }, counted(found, "warning")), " to read before believing the figures. "] : null,
    durability ? `${durability}.` : "");
}

/** What there is to say of a server that was only watched. */
function watched({ manifest, summary: { watch } }: Report): string | undefined {
  if (!watch) return undefined;
  const cpus = watch.cpus_by_scheduler ?? watch.cpus_by_states;
  const used = isKnown(cpus) ? `it used ${number(cpus)} CPUs` : "how many CPUs it used was not recorded";
  const from = imported(manifest.workload);
  return from === undefined
    ? `The server was watched for ${number(watch.seconds)} s without a load of ours: ${used}. Watching alone gives no verdict.`
    : `A recording of ${manifest.server.binary ?? "a server"} ${isKnown(watch.cpus_by_states) ? `over ${number(watch.seconds)} s` : "of unknown length"} (${from}): ${used}. A recording without throughput gives no verdict.`;
}

/** Keeps the groups of a number on one line. */
export function thousands(sentence: string): string {
  return sentence.replace(/(\d) (?=\d{3}\b)/g, "$1\u202f").replace(/(\d) %/g, "$1\u202f%").replace(/(\d)x\b/g, "$1\u00d7");
}

/** Warnings of the run and of the analysis, each once. */
export function warnings(report: Report): string[] {
  return [...new Set([...report.manifest.warnings, ...report.summary.warnings])];
}

function incomplete({ manifest, summary, partial_measurements }: Report): Child {
  if (manifest.state === "complete") return null;
  const words = {
    running: "This run had not ended when the report was made",
    interrupted: "This run was interrupted",
    failed: "This run failed",
  }[manifest.state];
  const asked = new Set([...manifest.ladder.connections, ...manifest.ladder.refined]).size;
  const lost = partial_measurements.length ? ` ${counted(partial_measurements.length, "measurement was", "measurements were")} cut short and omitted.` : "";
  return h("div", { class: "incomplete", role: "alert" }, h("strong", {}, words), manifest.problem ? `: ${manifest.problem}.` : ".",
    ` It shows ${summary.rungs.length} of ${counted(asked, "rung")}.${lost}`);
}

function subject({ manifest, summary }: Report): string {
  const { server, workload, machine, ladder } = manifest;
  const size = isKnown(workload.tables) ? `, ${counted(workload.tables, "table")}${isKnown(workload.rows) ? ` of ${counted(workload.rows, "row")}` : ""}` : "";
  const cpus = server.cpu_count === null ? imported(workload) ? isKnown(machine.cpus) ? counted(machine.cpus, "CPU") : "unknown number of CPUs" : "the client's machine"
    : server.cpu_count === machine.cpus ? `all ${counted(server.cpu_count, "CPU")}` : `${server.cpu_count} of ${isKnown(machine.cpus) ? counted(machine.cpus, "CPU") : "an unknown number of CPUs"}`;
  const loop = workload.options.some(([name, value]) => name === "repetition" && value === "once") ? "once on every connection" : imported(workload) ? "recorded" : `${workload.loop_kind} loop`;
  return [
    named(server),
    summary.watch ? imported(workload) ? "recorded" : "watched" : `${title(workload)}${size}, ${loop}`,
    `${known(machine.cpu_model) ?? "unknown CPU model"}, ${cpus}${server.shares_cpus_with_client ? " shared with the client" : ""}${isKnown(machine.memory_bytes) ? `, ${bytes(machine.memory_bytes)}` : ""}`,
    machine.hypervisor ? `under ${machine.hypervisor}` : "",
    summary.watch || !ladder.seconds ? "" : `${ladder.repeats} × ${ladder.seconds}\u202fs a rung`,
    moment(manifest.started_at) + (manifest.ended_at ? `, ${between(manifest.started_at, manifest.ended_at)}` : ""),
  ].filter(Boolean).join(" · ");
}

/** A figure with its interval: 13 300 (13 030–13 570). */
export function interval(estimate: Estimate, show: (value: number) => string): string {
  return isKnown(estimate.low) && isKnown(estimate.high) ? `${show(estimate.low)} – ${show(estimate.high)}` : "no interval";
}

const two = (value: number) => value.toFixed(2).replace("-", "−");

function keyFigures({ summary }: Report): Child {
  const found = summary.verdict;
  if (!found) return null;
  const entry = (name: string, value: string, note: string) => h("div", {}, h("dt", {}, name), h("dd", {}, value, h("small", {}, note)));
  const [lowest, highest] = found.peak_band;
  const law = (connections: number) => summary.rungs.find((rung) => rung.connections === connections)?.iron_law;
  const judged = judgedRungs(summary);
  const final = judged.at(-1);
  const mayFall = judged.some(({ connections, throughput: { value, low } }) => connections > found.peak_connections && (low ?? value) < 0.95 * found.peak_throughput.value);
  const [peak, last] = [law(found.peak_connections), final?.iron_law];
  return h("dl", { class: "keys" },
    entry("Peak", `${number(found.peak_throughput.value)}/s`, `at ${counted(found.peak_connections, "connection")}${isKnown(found.peak_throughput.low) ? `; 95\u202f% interval ${interval(found.peak_throughput, number)}` : "; too few repeats for an interval"}`),
    entry("Peak band", lowest === highest ? count(lowest) : `${count(lowest)} – ${count(highest)}`, "connections with at least 95\u202f% of the peak"),
    found.retention ? entry("Retained", percent(found.retention.value), `at the last rung${final === summary.rungs.at(-1) ? "" : " that counts"}, ${counted(final?.connections ?? 0, "connection")}; ${interval(found.retention, percent)}`) : null,
    entry("Falls over", found.falls_over_at ? `at ${count(found.falls_over_at)}` : judged.length < 3 ? "not known" : mayFall ? "not shown" : "no", judged.length < 3 ? "fewer than three rungs are too few to tell" : found.falls_over_at ? (isKnown(found.retention?.high) ? "connections: first rung surely over 5\u202f% below the peak" : "connections: first rung over 25\u202f% below the peak; too few repeats to be sure") : mayFall ? "it may: a rung past the peak is, or may be, over 5\u202f% below it, and not surely" : "no rung past the peak is over 5\u202f% below it"),
    peak && last && peak !== last
      ? entry("CPU per transaction", times(last.cpu_seconds_per_txn / peak.cpu_seconds_per_txn), `${number(peak.cpu_seconds_per_txn * 1e6)} → ${number(last.cpu_seconds_per_txn * 1e6)}\u202fµs from the peak to the last rung`)
      : null,
    found.decay_exponent ? entry("Decay", two(found.decay_exponent.value), `exponent b of X ~ N⁻ᵇ past the peak; ${interval(found.decay_exponent, two)}`) : null);
}
