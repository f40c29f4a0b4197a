/** Puts the report together. */

import { annotate } from "./code.ts";
import { caveats, errors, machine, repeat, settings } from "./about.ts";
import { readReport, type Report } from "./data.ts";
import { h } from "./element.ts";
import { findings } from "./findings.ts";
import { flame, profile } from "./flame.ts";
import { heatmap } from "./heatmap.ts";
import { ironLaw } from "./ironLaw.ts";
import { cacheLines } from "./lines.ts";
import { ledger } from "./ledger.ts";
import { lostThreads } from "./lostThreads.ts";
import { latency } from "./latency.ts";
import { quality } from "./quality.ts";
import { holdPlace } from "./reveal.ts";
import { rungTable } from "./rungTable.ts";
import { series } from "./series.ts";
import { startTheme, themeButton } from "./theme.ts";
import { throughput } from "./throughput.ts";
import { verdict } from "./verdict.ts";
import { waits } from "./waits.ts";
import { watch } from "./watch.ts";

const short: Record<string, string> = {
  throughput: "Throughput", findings: "Findings", "iron-law": "Iron law", ledger: "Threads", lost: "Lost threads", watch: "Threads", waits: "Waits", flame: "Flame graph", heatmap: "", annotate: "Machine code", "cache-lines": "Cache lines", latency: "Latency", seconds: "Seconds", figures: "Figures", quality: "Quality",
  errors: "Errors", settings: "Settings", machine: "Machine", caveats: "Warnings", repeat: "Repeat",
};

/** A part that cannot be shown must not take the others with it. */
function part(name: string, make: (report: Report) => HTMLElement | null, report: Report): HTMLElement | null {
  try {
    return make(report);
  } catch (problem) {
    console.error(name, problem);
    return h("section", { class: "incomplete" }, `The part “${name}” could not be shown: ${problem instanceof Error ? problem.message : String(problem)}`);
  }
}

function build(): Node[] {
  const report = readReport();
  const makers: [string, (report: Report) => HTMLElement | null][] = [
    ["throughput", throughput], ["findings", findings], ["iron law", ironLaw], ["ledger", ledger], ["lost threads", lostThreads], ["watch", watch], ["waits", waits], ["flame graph", flame], ["heat map", heatmap], ["machine code", annotate], ["cache lines", cacheLines], ["latency", latency], ["seconds", series], ["figures", rungTable],
    ["data quality", quality], ["errors", errors], ["settings", settings], ["machine", machine], ["warnings", caveats], ["repeat", repeat],
  ];
  // Of a load that is not ours neither its seconds nor its errors are known.
  const shown = makers.filter(([name]) => !report.summary.watch || !["seconds", "errors"].includes(name));
  const sections = shown.flatMap(([name, make]) => part(name, make, report) ?? []);
  // What a reader wants to see first stands side by side where there is room: the curve, and why it is so.
  const first = sections.filter((one) => ["throughput", "findings"].includes(one.id));
  const others = sections.filter((one) => !first.includes(one));
  const links = sections.filter((one) => one.id && short[one.id] !== "").map((one) => h("a", { href: `#${one.id}` }, short[one.id] ?? one.id));
  return [
    h("div", { class: "top" }, h("span", { class: "brand" }, "scaleprof"), h("nav", { "aria-label": "Parts of the report" }, links), themeButton()),
    h("main", { id: "report", tabindex: "-1", class: first.length > 0 && isOpenedAtTop() ? "opening" : null }, part("verdict", verdict, report), h("div", { class: first.length > 1 ? "first-screen" : null }, first), others),
  ];
}

/** Whether the reader sees the first screen first: not if he follows a link into the page or comes back to where he was. */
function isOpenedAtTop(): boolean {
  const [navigation] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  return location.hash === "" && navigation?.type === "navigate";
}

/** Lays out what waited for the first screen and the flame graph. */
function opened(): void {
  requestAnimationFrame(() => setTimeout(() => document.getElementById("report")?.classList.remove("opening")));
}

startTheme();
const page = document.getElementById("page");
try {
  page?.replaceChildren(...build());
  holdPlace();
  // After those who draw what is unpacked, which asked before.
  Promise.resolve(profile()).then(opened, opened);
} catch (problem) {
  page?.replaceChildren(h("main", {}, h("h1", {}, "This report cannot be shown"), h("p", {}, problem instanceof Error ? problem.message : String(problem))));
}
