/** The cache-line view: lines in which code takes something from other code, what lies in them, who touches it and what it costs. */

import { rungName, unitFor, withInterval, type CostUnit } from "./codeCosts.ts";
import { code } from "./codeData.ts";
import { table, type Column } from "./table.ts";
import type { Report } from "./data.ts";
import { h, s, section } from "./element.ts";
import { linkOf, writeLink } from "./flameLink.ts";
import { count, counted, percent } from "./format.ts";
import { lines as linesOfThePage, type Line, type LineKind, type Lines, type LineToucher } from "./lineData.ts";
import { roleNames, signed, strip } from "./lineStrip.ts";
import { filledFrom } from "./packed.ts";
import { reveal } from "./reveal.ts";

const id = "cache-lines";
const title = "Cache lines of the hot code";

const kinds: Record<LineKind, string> = {
  false_sharing: "false sharing", lock_shares_line: "a lock beside data", independent_writers: "written together", true_sharing: "true sharing",
  longer_lines_only: "predicted for lines of 128 bytes",
};

/** The section; says so where the bundle did not keep who touches what. */
export function cacheLines(report: Report): HTMLElement | null {
  const ready = linesOfThePage();
  if (ready !== null) {
    const missing = report.manifest.missing.find(({ figure }) => figure === "data_accesses")?.reason ?? null;
    return filledFrom(section(id, title), ready, (of) => view(of, missing));
  }
  if (!document.getElementById("profile")?.textContent?.trim()) return null;
  return section(id, title, h("p", { class: "lead" }, "Not in this bundle: the run was killed before its end, so which code touches which variable is not known. A new run keeps it; scaleprof cachelines BINARY --bundle DIR reads it from the server’s own file."));
}

function view(of: Lines, missing: string | null): Node[] {
  const lack = missing === null ? null : h("p", { class: "notes" }, `Not complete: ${missing}.`);
  if (of.lines.length === 0) {
    const words = missing === null ? "In the lines that the hot code touches nothing was found that one CPU may take from another." : `Not in this bundle: ${missing}.`;
    return [h("p", { class: "lead" }, words), ...(of.waiting.length > 0 ? waitingTable(of) : [])];
  }
  const per = of.per === "transaction" ? "a transaction" : "a second of the watch";
  const waiting = of.waiting.length > 0 ? waitingTable(of) : [];
  const predicted = of.lines.filter(({ kind }) => kind === "longer_lines_only").length;
  const entries = of.lines.map((line) => entry(of, line));
  const show = () => {
    const wanted = parseInt(linkOf(id)?.get("line") ?? "", 16);
    const place = of.lines.findIndex(({ address, bytes }) => address === wanted && bytes === (Number(linkOf(id)?.get("bytes")) || 64));
    if (place < 0) return;
    entries[place]!.open = true;
    reveal(entries[place]!);
  };
  addEventListener("popstate", show);
  queueMicrotask(show);
  entries[0]!.open = true;
  return [
    h("p", { class: "lead" }, "A write to a variable invalidates its 64-byte line in all other CPUs; a read of a neighbour waits for the line. ",
      `Listed: lines of the server’s variables with samples at their instructions, significant increases first${predicted > 0 ? "; last, lines that would be shared with 128-byte lines or paired fetches" : ""}. `,
      `Time of a line: CPU time ${per} at instructions that access it and at the next one (skid), their other work included. Heap memory is not listed. Neighbours are only a candidate: read the evidence.`,
      of.omitted > 0 ? ` Omitted: ${counted(of.omitted, "line")} with less time.` : ""),
    ...(lack ? [lack] : []),
    h("div", { class: "lines" }, entries),
    ...waiting,
  ];
}

/** Instructions that give themselves away by what they cost, also where no variable names the line. */
function waitingTable(of: Lines): HTMLElement[] {
  const unit = unitFor(of, Math.max(...of.waiting.map(({ costs }) => costs[1])));
  return [
    h("h3", {}, "Instructions that wait for a line"),
    h("p", { class: "lead" }, "Each takes more time with more connections, and the rest of its function does not: threads wait there for the line. Without a variable, the line is on the heap or in an array."),
    table("Instructions that wait for a cache line", [
      { heading: "instruction", words: true, cell: ({ module, address, function: name }) => h("a", { href: `#annotate:${new URLSearchParams({ function: name, module, at: address.toString(16) }).toString()}` }, `${module}+0x${address.toString(16)}`) },
      { heading: "function", words: true, cell: ({ function: name }) => name },
      { heading: "source", words: true, cell: ({ source }) => source ?? "" },
      { heading: "before", unit: unit.name, cell: ({ costs }) => unit.show(costs[0]) },
      { heading: "now", unit: unit.name, cell: ({ costs }) => unit.show(costs[1]) },
      { heading: "rest of the function", unit: `${unit.name}, before and now`, cell: ({ rest }) => `${unit.show(rest[0])}, ${unit.show(rest[1])}` },
      { heading: "line", words: true, cell: ({ line }) => {
        const found = line === null ? undefined : of.lines[line];
        return found ? h("a", { href: `#${id}:${new URLSearchParams({ line: found.address.toString(16), bytes: String(found.bytes) }).toString()}` }, found.address.toString(16)) : "not one above";
      } },
    ], of.waiting),
  ];
}

function entry(of: Lines, line: Line): HTMLDetailsElement {
  const unit = unitFor(of, Math.max(0, ...line.costs.map((cost) => cost?.[0] ?? 0)));
  const details = h("details", { class: "cache-line", "data-address": line.address.toString(16), "data-kind": line.kind },
    h("summary", {}, h("span", { class: `line-kind kind-${line.costs_something ? line.kind : "longer_lines_only"}` }, line.costs_something || line.kind === "longer_lines_only" ? kinds[line.kind] : `possible: ${kinds[line.kind]}`), " ", h("b", {}, h("code", {}, line.address.toString(16))),
      h("span", { class: "faint" }, `  ${line.module}`), h("span", { class: "line-cost" }, costOf(of, line, unit))));
  let filled = false;
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    if (!filled) details.append(...inside(of, line, unit));
    filled = true;
  });
  details.querySelector("summary")?.addEventListener("click", () => {
    if (!details.open) writeLink(id, { line: line.address.toString(16), bytes: line.bytes === 64 ? "" : String(line.bytes) }, false);
  });
  return details;
}

/** At the last rung, and at the one before it at which a transaction was cheapest. */
function costOf(of: Lines, line: Line, unit: CostUnit): string {
  const at = (rung: number) => line.costs[rung]?.[0] ?? 0;
  const last = of.rungs.length - 1;
  const all = of.rungs[last]?.[1] ?? 0;
  const share = all > 0 ? `, ${percent(at(last) / all)} of CPU time` : "";
  if (last < 1) return `${unit.show(at(0))} ${unit.name}${share}`;
  const base = cheapest(of);
  return `${unit.show(at(base))} ${unit.name} at ${rungName(of, base)}, ${unit.show(at(last))} at ${rungName(of, last)}${share}`;
}

/** The rung before the last one at which a transaction was cheapest. */
function cheapest({ rungs }: Lines): number {
  return rungs.slice(0, -1).reduce((best, [, all], rung) => (all < rungs[best]![1] ? rung : best), 0);
}

function inside(of: Lines, line: Line, unit: CostUnit): Node[] {
  const rows: HTMLElement[] = [];
  const mark = (place: number | null) => {
    for (const row of rows) row.classList.toggle("pointed", place !== null && row.dataset["place"] === String(place));
  };
  const touchers = line.touchers.length > 0 ? touched(of, line, unit, rows) : null;
  const nodes: (Node | null)[] = [
    h("p", { class: "line-sentence" }, `${line.sentence.charAt(0).toUpperCase()}${line.sentence.slice(1)}.`),
    strip(line, mark),
    key(line),
    h("div", { class: "line-columns" },
      h("div", {}, h("h3", {}, of.rungs.length > 1 ? "How its cost grows" : "What it costs"), growth(of, line, unit)),
      h("div", {}, h("h3", {}, "Evidence"), h("ul", { class: "line-evidence" }, line.evidence.map(([holds, words]) => h("li", {}, h("b", { class: holds === true ? "holds" : "faint" }, holds === true ? "yes" : holds === false ? "no" : "?"), h("span", {}, words)))),
        line.advice.length > 0 ? h("div", { class: "try" }, h("strong", {}, "Try"), h("ul", {}, line.advice.map((words) => h("li", {}, words)))) : null)),
    touchers ? h("h3", {}, "Who touches it") : null, touchers,
    line.more_touchers > 0 ? h("p", { class: "notes" }, `and ${counted(line.more_touchers, "function")} more that touch it`) : null,
    places(line),
  ];
  return nodes.filter((node): node is Node => node !== null);
}

function key(line: Line): HTMLElement {
  const roles = [...new Set(line.variables.map(({ role }) => role))];
  return h("p", { class: "key" }, roles.map((role) => h("span", {}, h("span", { class: `line-swatch role-${role}` }), ` ${roleNames[role]}`)));
}

/** A bar a rung. */
function growth(of: Lines, line: Line, unit: CostUnit): HTMLElement {
  const most = Math.max(...line.costs.map((cost) => (cost ? cost[0] + (cost[1] ?? 0) : 0)), Number.MIN_VALUE);
  const rows = of.rungs.map((_, rung) => ({ rung, cost: line.costs[rung] ?? null }));
  return table("Cost of the line at every rung", [
    { heading: "at", words: true, cell: ({ rung }) => rungName(of, rung) },
    { heading: "CPU time", unit: unit.name, cell: ({ cost }) => (cost ? { text: unit.show(cost[0]), title: withInterval({ value: cost[0], half: cost[1] }, unit) } : { text: "–", mark: "faint" }) },
    { heading: "", cell: ({ cost }) => (cost ? bar(cost[0], cost[1], most) : "") },
  ], rows);
}

function bar(value: number, half: number | null, most: number): SVGElement {
  const width = 150;
  const x = (of: number) => (Math.max(0, of) / most) * width;
  return s("svg", { class: "bar line-bar", width, height: 12, viewBox: `0 0 ${width} 12`, "aria-hidden": "true" },
    s("rect", { class: "lost", x: 0, y: 1, width: x(value), height: 10 }),
    half === null ? null : s("line", { class: "line-doubt", x1: x(value - half), x2: x(value + half), y1: 6, y2: 6 }));
}

/** The functions that read and write it, the hottest first, with a link to their machine code where the page has it. */
function touched(of: Lines, line: Line, unit: CostUnit, rows: HTMLElement[]): HTMLElement {
  const last = of.rungs.length - 1;
  const first = cheapest(of);
  const at = (rung: number) => rungName(of, rung).replace(/ connections?$/, "");
  const names = line.touchers.map((toucher) => h("span", { class: "code-name" }, toucher.function));
  const columns: (Column<LineToucher> | null)[] = [
    { heading: "does", words: true, cell: ({ writes, locked, in_spin_loop: spins }) => ({ text: `${writes ? "writes" : "reads"}${locked ? ", locked" : ""}${spins ? ", in a spin loop" : ""}`, mark: writes ? "doubtful" : undefined }) },
    { heading: "what", words: true, cell: ({ place }) => h("code", {}, line.variables[place]?.name ?? "") },
    { heading: "function", words: true, cell: (_, place) => names[place] },
    { heading: "instruc\u00adtions", cell: ({ instructions }) => count(instructions) },
    last > first ? { heading: `at ${at(first)}`, unit: unit.name, cell: ({ costs }) => unit.show(costs[first] ?? 0) } : null,
    { heading: of.per === "second" ? "CPU time" : `at ${at(last)}`, unit: unit.name, cell: ({ costs }) => unit.show(costs[last] ?? 0) },
    { heading: "samples", cell: ({ samples }) => count(samples) },
  ];
  const made = table("Functions that touch the line", columns.filter((column) => column !== null), line.touchers);
  made.querySelectorAll<HTMLElement>("tbody tr").forEach((row, place) => {
    row.dataset["place"] = String(line.touchers[place]?.place);
    rows.push(row);
  });
  void code()?.then((found) => line.touchers.forEach((toucher, place) => {
    const listed = found.functions.find(({ name, module }) => name === toucher.function && module === line.module);
    if (!listed || toucher.address === null) return;
    const to = new URLSearchParams({ function: listed.name, module: listed.module, at: toucher.address.toString(16) });
    names[place]?.replaceChildren(h("a", { href: `#annotate:${to.toString()}` }, toucher.function));
  }));
  return made;
}

/** All that lies in the line, folded away. */
function places(line: Line): HTMLElement {
  return h("details", { class: "folded" }, h("summary", {}, `All that lies in it: ${counted(line.variables.length, "place")}`),
    table("What lies in the line", [
      { heading: "at", cell: ({ offset }) => signed(offset) },
      { heading: "bytes", cell: ({ size }) => count(size) },
      { heading: "name", words: true, cell: ({ name }) => h("code", {}, name) },
      { heading: "is", words: true, cell: ({ role }) => roleNames[role] },
      { heading: "readers", unit: "functions", cell: ({ readers }) => count(readers) },
      { heading: "writers", unit: "functions", cell: ({ writers }) => count(writers) },
      { heading: "hand it on", unit: "functions", cell: ({ address_passed_by }) => count(address_passed_by) },
      { heading: "write it rarely", unit: "at start, stop, setting", cell: ({ rare_writers }) => count(rare_writers) },
    ], line.variables));
}
