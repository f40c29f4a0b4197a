/** What the run was: errors, settings, machine, missing figures, warnings, and the command that repeats it. */

import type { Missing, Report } from "./data.ts";
import { h, section, type Child } from "./element.ts";
import { bytes, count, counted, isKnown } from "./format.ts";
import { imported, known, named, title } from "./subject.ts";
import { table } from "./table.ts";
import { warnings } from "./verdict.ts";

/** Errors of the server by rung, number and statement. */
export function errors({ errors: rows, manifest, summary }: Report): HTMLElement {
  if (rows.length === 0) {
    const known = summary.rungs.flatMap((rung) => Object.entries(rung.errors).map(([number, times]) => ({ rung, number, times })));
    return section("errors", "Errors", known.length
      ? table("Errors by rung and number", [
        { heading: "connections", cell: ({ rung }) => count(rung.connections) },
        { heading: "error", words: true, cell: ({ number }) => number },
        { heading: "times", cell: ({ times }) => count(times) },
      ], known)
      : h("p", {}, imported(manifest.workload) ? "A recording tells nothing of the errors of statements."
        : manifest.state === "complete" ? "The server answered every statement without an error." : "No error of a statement was recorded."));
  }
  const sums = new Map<string, (typeof rows)[number]>();
  for (const row of rows) {
    const key = [row.connections, row.error_code, row.statement, row.retried].join();
    sums.set(key, { ...row, count: row.count + (sums.get(key)?.count ?? 0) });
  }
  const sorted = [...sums.values()].sort((a, b) => a.connections - b.connections || a.error_code - b.error_code);
  return section("errors", "Errors", table("Errors by rung, number and statement", [
    { heading: "connections", cell: (row) => count(row.connections) },
    { heading: "error", words: true, cell: (row) => `${row.error_code}${names[row.error_code] ? ` ${names[row.error_code]}` : ""}` },
    { heading: "statement", words: true, cell: (row) => row.statement },
    { heading: "times", cell: (row) => count(row.count) },
    { heading: "then", words: true, cell: (row) => (row.retried ? "transaction begun again" : "not retried") },
  ], sorted));
}

const names: Record<number, string> = { 1205: "lock wait timeout", 1213: "deadlock", 1040: "too many connections", 2006: "server has gone away", 2013: "lost connection" };

/** The settings that were in force, narrowed as the reader types. */
export function settings({ settings: all }: Report): HTMLElement {
  if (all.length === 0) return section("settings", "Settings in force", h("p", {}, "The settings were not recorded."));
  const found = h("span", { class: "faint", "aria-live": "polite" });
  const list = h("div", {});
  const search = h("input", { type: "search", id: "settings-search", placeholder: "such as innodb_flush", autocomplete: "off", spellcheck: "false" });
  const show = () => {
    const words = search.value.trim().toLowerCase().split(/\s+/);
    const rows = all.filter(([name, value]) => words.every((word) => `${name} ${value}`.toLowerCase().includes(word)));
    found.textContent = ` ${count(rows.length)} of ${counted(all.length, "setting")}`;
    list.replaceChildren(rows.length ? table("Settings of the server", [
      { heading: "name", words: true, cell: ([name]) => name },
      { heading: "value", words: true, cell: ([, value]) => value },
    ], rows) : h("p", {}, "No setting has these words in its name or value."));
  };
  search.addEventListener("input", show);
  show();
  return section("settings", "Settings in force", h("p", { class: "search" }, h("label", { for: "settings-search" }, "Find "), search, found), list);
}

function sharing(withClient: boolean | null): string {
  if (withClient === null) return "";
  return withClient ? ", shared with the client" : ", its own";
}

/** Server, load and machine in pairs of name and value. */
export function machine({ manifest: { server, workload, machine: host, ladder, scaleprof } }: Report): HTMLElement {
  const pairs = (title: string, entries: [string, Child][]) => h("div", {}, h("h3", {}, title), h("dl", { class: "facts" },
    entries.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
  return section("machine", "Server, load and machine", h("div", { class: "triple" },
    pairs("Server", [
      ["Product", named(server)],
      ["Binary", server.binary],
      ["Build-id", server.build_id ? h("code", {}, server.build_id) : null],
      ["CPUs", server.cpu_count === null ? imported(workload) ? "unknown" : "unknown: its process cannot be seen from here"
        : `${count(server.cpu_count)}${server.cpus ? ` (${server.cpus})` : ""}${sharing(server.shares_cpus_with_client)}`],
    ]),
    pairs("Load", [
      ["Workload", title(workload)],
      ["Data", isKnown(workload.tables) ? `${counted(workload.tables, "table")}${isKnown(workload.rows) ? ` of ${counted(workload.rows, "row")}` : ""}` : null],
      ["Distribution", known(workload.distribution)],
      ["Protocol", known(workload.protocol)],
      ["Isolation", workload.isolation ?? (imported(workload) ? "unknown" : "the server’s default")],
      ["Loop", imported(workload) || workload.loop_kind === null ? null : workload.loop_kind + (isKnown(ladder.rate) ? `, ${count(ladder.rate)} tx/s offered` : "")],
      ["Seed", imported(workload) ? null : String(workload.seed)],
      ["Idle connections", ladder.idle_connections ? count(ladder.idle_connections) : null],
      ["Rungs", `${ladder.connections.map(count).join(", ")}${ladder.refined.length ? `; added: ${ladder.refined.map(count).join(", ")}` : ""}`],
      ["Each", ladder.seconds ? `${counted(ladder.repeats, "repeat")} of ${ladder.seconds}\u202fs` : counted(ladder.repeats, "repeat")],
      ...workload.options.map(([name, value]): [string, string] => [name, value]),
    ]),
    pairs("Machine", [
      ["CPU", host.cpu_model],
      ["CPUs", `${count(host.cpus)} online, ${isKnown(host.numa_nodes) ? counted(host.numa_nodes, "NUMA node") : "unknown number of NUMA nodes"}`],
      ["Memory", bytes(host.memory_bytes)],
      ["Kernel", [known(host.kernel), known(host.architecture)].filter(Boolean).join(" ") || "unknown"],
      ["Distribution", host.distribution],
      ["Hypervisor", host.hypervisor ?? (imported(workload) ? "unknown" : "none seen")],
      ["Governor", host.governor],
      ["Clock source", host.clock_source],
      ["Huge pages", host.transparent_huge_pages],
      ["scaleprof", scaleprof],
    ])));
}

/** What could not be measured and what to keep in mind. */
export function caveats(report: Report): HTMLElement {
  const missing = new Map<string, Missing>([...report.manifest.missing, ...report.summary.missing].map((one) => [one.figure, one]));
  const told = warnings(report);
  return section("caveats", "Warnings and missing figures",
    told.length ? h("ul", { class: "warnings" }, told.map((words) => h("li", {}, words))) : h("p", {}, "No warnings."),
    missing.size ? table("Figures that could not be measured", [
      { heading: "not measured", words: true, cell: (one) => h("code", {}, one.figure) },
      { heading: "reason", words: true, cell: (one) => one.reason },
    ], [...missing.values()]) : h("p", {}, "No figure is missing."));
}

/** The command, quoted for a shell, with a button that copies it. */
export function repeat({ manifest }: Report): HTMLElement {
  const command = manifest.command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
  const code = h("code", { id: "command" }, command);
  const button = h("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command);
      button.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(code);
      button.textContent = "Selected";
    }
  });
  return section("repeat", "How to repeat it",
    command ? h("pre", { tabindex: "0" }, code) : h("p", {}, "The command was not recorded."), command ? button : null,
    h("p", { class: "lead" }, `Written by scaleprof ${manifest.scaleprof}. Paths and passwords are omitted. This page is one file and makes no network requests.`));
}
