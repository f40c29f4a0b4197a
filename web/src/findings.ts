/** Why throughput is lost: the ranked findings, each with its evidence and what to try. */

import type { Finding, Report, RemedyResult } from "./data.ts";
import { h, section } from "./element.ts";
import { findingLinks } from "./findingLinks.ts";
import { count, isKnown, percent } from "./format.ts";
import { reveal } from "./reveal.ts";
import { experimentVerdictLabels, shareOfLabels } from "./vocabulary.ts";

/** The findings, the gravest first, and what they leave unexplained; a run in which nothing was found says so, or why it was not looked for. */
export function findings({ summary }: Report): HTMLElement | null {
  if (summary.findings.length === 0 && summary.rungs.length === 0) return null;
  const found = summary.findings.length
    ? h("ol", { class: "findings" }, summary.findings.map(entry))
    : summary.findings_unavailable ? h("p", { class: "lead" }, `No analysis: ${summary.findings_unavailable}.`)
    : h("p", { class: "lead" }, "No significant cause found for the extra CPU time per transaction at the last rung.");
  addEventListener("popstate", follow);
  // On paper nothing can be opened.
  addEventListener("beforeprint", () => document.querySelectorAll<HTMLDetailsElement>("#findings details.evidence").forEach((one) => { one.open = true; }));
  queueMicrotask(follow);
  return section("findings", "Findings",
    summary.base_rungs ? h("p", { class: "notes", id: "compared" }, summary.base_rungs) : null,
    found,
    summary.explained?.length ? h("div", { id: "unexplained" }, h("h3", {}, "What they explain, and what has no finding"), summary.explained.map((account) => h("p", { class: "notes" }, account.sentence))) : null);
}

/** Opens the finding that the address names: `#finding-2`. */
function follow(): void {
  const named = /^#(finding-\d+)$/.exec(location.hash)?.[1];
  const found = named === undefined ? null : document.getElementById(named);
  const folded = found?.querySelector("details");
  if (!found || !folded) return;
  folded.open = true;
  reveal(found);
}

function entry(finding: Finding, place: number): HTMLElement {
  const { value, low, high } = finding.lost_share;
  const between = isKnown(low) && isKnown(high) ? ` (${percent(low)} – ${percent(high)})` : "";
  const [from, to] = finding.rungs;
  const address = `finding-${place + 1}`;
  return h("li", { id: address, tabindex: "-1" },
    h("h3", {}, h("a", { href: `#${address}` }, finding.title)),
    h("p", { class: "share" }, h("strong", {}, percent(value)), `${between} of ${shareOfLabels[finding.share_of]} at ${count(to)} connections`,
      from === to ? "" : `, compared with ${count(from)}`),
    finding.remedy_results.length ? h("div", { class: "try" }, h("strong", {}, "Tried"), h("ul", {}, finding.remedy_results.map((tried) => h("li", {}, words(tried))))) : null,
    h("details", { class: "evidence" }, h("summary", {}, finding.try.length ? "Where, evidence, and what to try" : "Where, and evidence"),
      findingLinks(finding),
      finding.path.length ? h("p", { class: "path" }, finding.path.flatMap((name, place) => [place ? " › " : "", h("code", {}, name)])) : null,
      h("ul", {}, finding.evidence.map((line) => h("li", {}, line))),
      finding.try.length ? h("div", { class: "try" }, h("strong", {}, "Try"), h("ul", {}, finding.try.map((line) => h("li", {}, line)))) : null));
}

function words({ setting, value, connections, throughput, pairs, verdict, margin, caveat: doubt }: RemedyResult): string {
  const remedy = `${setting} = ${value}`;
  if (throughput === null) return `${remedy}: not measured, because ${doubt ?? "no pair of starts was measured completely"}`;
  const above = verdict === "no_difference" && isKnown(margin) ? ` above ${percent(margin)}` : "";
  const word = `${experimentVerdictLabels[verdict ?? "inconclusive"]}${above}`;
  const change = (ratio: number) => `${ratio < 1 ? "−" : "+"}${percent(Math.abs(ratio - 1))}`;
  const { low, high } = throughput;
  const between = isKnown(low) && isKnown(high) ? ` (${change(low)} to ${change(high)})` : " (no interval)";
  return `${remedy}: ${word}, ${change(throughput.value)}${between} at ${count(connections)} connections (${count(pairs)} pairs of starts)${doubt === null ? "" : `; not reliable: ${doubt}`}`;
}
