/** The annotate view: the machine code of the hot functions with what every instruction costs at two rungs. */

import { growthOf, isUnsure, ofFunction, place, rungName, unitFor, withInterval, type CostUnit } from "./codeCosts.ts";
import { code, type Code, type CodeFunction } from "./codeData.ts";
import { functionList, ranked } from "./codeList.ts";
import { listing, type Listing } from "./codeListing.ts";
import type { Report } from "./data.ts";
import { h, section } from "./element.ts";
import { linkOf, writeLink } from "./flameLink.ts";
import { count, counted, percent, times } from "./format.ts";
import { filledFrom } from "./packed.ts";
import { reveal } from "./reveal.ts";

const id = "annotate";
const title = "Machine code of the hot functions";

/** The section; says so where the bundle has no machine code and could have some. */
export function annotate(report: Report): HTMLElement | null {
  const ready = code();
  if (ready !== null) return filledFrom(section(id, title), ready, view);
  const sampled = document.getElementById("profile")?.textContent?.trim();
  if (!sampled) return null;
  const reason = [...report.manifest.missing, ...report.summary.missing].find(({ figure }) => figure === "instructions")?.reason;
  return section(id, title, h("p", { class: "lead" }, reason
    ? `Not in this bundle: ${reason}.`
    : "Not in this bundle: the run was killed before its end. A new run keeps the machine code; scaleprof annotate BUNDLE FUNCTION --binary FILE reads it from the server’s own file."));
}

function view(of: Code): Node[] {
  const hasRungs = of.rungs.length > 1;
  const select = (name: string, none: boolean) => h("select", { id: `${id}-${name}` }, none ? h("option", { value: "" }, "nothing") : null,
    of.rungs.map((_, rung) => h("option", { value: rung }, rungName(of, rung))));
  const [shown, base] = [select("shown", false), select("base", true)];
  const field = h("input", { type: "search", id: `${id}-search`, placeholder: "name of a function", autocomplete: "off", spellcheck: "false", size: 26 });
  const swap = h("button", { type: "button", click: () => {
    if (base.value === "") return;
    [shown.value, base.value] = [base.value, shown.value];
    draw(true);
  } }, "swap");
  const list = h("div", {});
  const head = h("div", { class: "code-head", "aria-live": "polite" });
  const body = h("div", {});
  let chosen: CodeFunction | null = null;
  let open: Listing | null = null;
  let at: number | null = null;

  const usual = () => {
    shown.value = String(of.rung);
    base.value = of.base === null ? "" : String(of.base);
  };
  const rungs = () => ({ shown: Number(shown.value), base: base.value === "" || base.value === shown.value ? null : Number(base.value) });
  const connections = (rung: number | null) => (rung === null ? "none" : String(of.rungs[rung]?.[0] ?? ""));
  const link = (step: boolean) => writeLink(id, {
    function: chosen?.name ?? "", module: chosen?.module ?? "", rung: connections(rungs().shown), base: connections(rungs().base), at: at === null ? "" : at.toString(16),
  }, step);

  function drawList(): void {
    list.replaceChildren(functionList(of, { ...rungs(), words: field.value, chosen }, (one) => {
      [chosen, at] = [one, null];
      draw(true);
      open?.focus();
    }));
  }

  function draw(step: boolean): void {
    const { shown: now, base: then } = rungs();
    chosen ??= ranked(of, then, now)[0] ?? null;
    drawList();
    if (chosen === null) return;
    const one = chosen;
    const stood = at;
    open = listing(of, one, then, now, (address) => {
      if (address === at) return;
      at = address;
      link(false);
    }, () => list.querySelector<HTMLElement>("[tabindex='0'].code-name")?.focus());
    head.replaceChildren(...summary(of, one, then, now));
    body.replaceChildren(open.element);
    if (stood !== null) open.go(stood);
    if (step) link(true);
  }

  /** What the address says; unknown functions and rungs leave what is there. */
  function restore(): void {
    const values = linkOf(id);
    if (values === null) return;
    usual();
    const rungOf = (text: string | null) => of.rungs.findIndex(([connections]) => String(connections ?? "") === text);
    const [rung, other] = [rungOf(values.get("rung")), values.get("base")];
    if (rung >= 0) shown.value = String(rung);
    if (other === "none") base.value = "";
    else if (rungOf(other) >= 0) base.value = String(rungOf(other));
    const module = values.get("module");
    const address = parseInt(values.get("at") ?? "", 16);
    at = Number.isNaN(address) ? null : address;
    const ofModule = of.functions.filter((one) => !module || one.module === module);
    // A function that was built into another one has no code of its own: the address tells whose it is.
    chosen = ofModule.find(({ name }) => name === values.get("function"))
      ?? ofModule.find(({ regions }) => regions.some(({ rows }) => rows.some(([row]) => row === address))) ?? null;
    draw(false);
    const part = document.getElementById(id);
    if (part && location.hash.startsWith(`#${id}:`)) reveal(part);
  }

  for (const one of [shown, base]) one.addEventListener("change", () => draw(true));
  field.addEventListener("input", drawList);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    event.preventDefault();
    const first = list.querySelector<HTMLElement>(".code-name");
    if (event.key === "Enter") first?.click();
    else first?.focus();
  });
  for (const part of [list, body]) part.addEventListener("keydown", (event) => {
    if (event.key !== "/") return;
    event.preventDefault();
    field.focus();
    field.select();
  });
  addEventListener("popstate", restore);
  queueMicrotask(() => {
    usual();
    draw(false);
    if (location.hash !== "") restore();
  });

  const per = of.per === "transaction" ? "a transaction" : "a second of the watch";
  return [
    h("p", { class: "lead" }, `CPU time of ${per} at every instruction of the functions whose machine code the bundle has: ${percent(of.covered)} of all ${place(of, of.rung)}. `,
      "Skid: a sample names the next instruction to run. The time is usually spent one instruction above. Time in the kernel is at the instruction that entered it.",
      of.omitted > 0 ? ` Omitted: ${counted(of.omitted, "function")} with less time; scaleprof annotate shows them.` : ""),
    h("div", { class: "flame-bar" },
      ...(hasRungs ? [h("label", { for: shown.id }, "Time at"), shown, h("label", { for: base.id }, "compared with"), base, swap] : []),
      h("span", { class: "flame-find nowrap" }, h("label", { for: field.id }, "Search "), field)),
    list, head, body,
    h("p", { class: "notes" }, "~ in a loop that waits for another thread   › a branch goes here   ? may be chance.   Keys: Up, Down; n, p next and previous hot instruction; Enter follows a branch; / searches; Escape goes back to the list."),
  ];
}

/** What the function costs, above its listing. */
function summary(of: Code, one: CodeFunction, base: number | null, shown: number): Node[] {
  const unit = unitFor(of, Math.max(ofFunction(one, shown).value, ofFunction(one, base).value));
  const rung = (at: number) => {
    const cost = one.costs[at];
    const all = of.rungs[at]?.[1] ?? 0;
    if (!cost || cost[4] === 0) return `${capital(place(of, at))}: no thread was seen in it.`;
    const kernel = cost[3] > 0 ? `; ${unit.show(cost[3])} ${unit.name} more in the kernel from here` : "";
    return `${capital(place(of, at))}: ${withInterval(ofFunction(one, at), unit)}, ${percent(cost[0] / all)} of all CPU time${cost[2] > 0 ? `, ${percent(cost[2] / cost[0])} of it in waiting loops` : ""}${kernel}; ${counted(cost[4], "sample")}.`;
  };
  const cells = [base === null ? null : rung(base), rung(shown), base === null ? null : grown(one, base, shown, unit)];
  return [
    h("h3", {}, one.name, h("span", { class: "faint" }, `  in ${one.module}${one.build_id ? `, build-id ${one.build_id.slice(0, 12)}` : ""}, ${count(one.instructions)} instructions`)),
    ...cells.filter((text) => text !== null).map((text) => h("p", { class: "code-cost" }, text)),
  ];
}

/** As a sentence begins. */
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function grown(one: CodeFunction, base: number, shown: number, unit: CostUnit): string {
  const [then, now] = [ofFunction(one, base), ofFunction(one, shown)];
  const growth = growthOf(then, now);
  const ratio = then.value > 0 ? `, ${times(now.value / then.value)}` : "";
  const between = growth.half === null ? "" : ` (${unit.show(growth.value - growth.half)} – ${unit.show(growth.value + growth.half)})`;
  return `Growth: ${growth.value > 0 ? "+" : ""}${unit.show(growth.value)}${between} ${unit.name}${ratio}${isUnsure(growth) ? "; it may be chance" : ""}.`;
}
