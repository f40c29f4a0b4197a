/** Why throughput is lost: the ranked findings, each with its evidence and what to try. */

import type { Finding, Report } from "./data.ts";
import { h, section } from "./element.ts";
import { count, isKnown, percent } from "./format.ts";


/** The findings, the gravest first; a run in which nothing was found says so where something was looked for. */
export function findings({ summary }: Report): HTMLElement | null {
  const looked = summary.rungs.some((rung) => rung.ledger !== null);
  if (summary.findings.length === 0 && (!looked || summary.rungs.length < 2)) return null;
  if (summary.findings.length === 0) {
    return section("findings", "Findings", h("p", { class: "lead" }, "Nothing was found that makes a transaction dearer at the last rung beyond chance."));
  }
  return section("findings", "Findings", h("ol", { class: "findings" }, summary.findings.map(entry)));
}

function entry(finding: Finding): HTMLElement {
  const { value, low, high } = finding.lost_share;
  const between = isKnown(low) && isKnown(high) ? ` (${percent(low)} – ${percent(high)})` : "";
  const [from, to] = finding.rungs;
  return h("li", {},
    h("h3", {}, finding.title),
    h("p", { class: "share" }, h("strong", {}, percent(value)), `${between} of ${finding.kind === "retries" ? "the transactions" : "what a transaction costs"} at ${count(to)} connections`,
      from === to ? "" : `, compared with ${count(from)}`),
    finding.path.length ? h("p", { class: "path" }, finding.path.flatMap((name, place) => [place ? " › " : "", h("code", {}, name)])) : null,
    h("ul", {}, finding.evidence.map((line) => h("li", {}, line))),
    finding.try.length ? h("div", { class: "try" }, h("strong", {}, "Try"), h("ul", {}, finding.try.map((line) => h("li", {}, line)))) : null);
}
