/** The functions of which the page has machine code, those that grew most first. */

import { growthOf, growthText, ofFunction, unitFor } from "./codeCosts.ts";
import { word, type Code, type CodeFunction } from "./codeData.ts";
import { h } from "./element.ts";
import { count, percent } from "./format.ts";

/** What the list shows. */
export interface Listed { base: number | null; shown: number; words: string; chosen: CodeFunction | null }

/** By growth; with nothing to compare with by cost. */
export function ranked(of: Code, base: number | null, shown: number): CodeFunction[] {
  const rank = (one: CodeFunction) => ofFunction(one, shown).value - (base === null ? 0 : ofFunction(one, base).value);
  return [...of.functions].sort((a, b) => rank(b) - rank(a));
}

/** The functions with these words in their names, or in the names of what was built into them. */
export function found(of: Code, functions: CodeFunction[], words: string): CodeFunction[] {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return functions;
  return functions.filter((one) => namesOf(of, one).includes(wanted));
}

const known = new WeakMap<CodeFunction, string>();

function namesOf(of: Code, one: CodeFunction): string {
  const already = known.get(one);
  if (already !== undefined) return already;
  const inner = new Set(one.regions.flatMap(({ rows }) => rows.map((row) => row[4])));
  const names = [one.name, ...[...inner].map((number) => word(of, number))].join("\n").toLowerCase();
  known.set(one, names);
  return names;
}

/** The list as a table; Up and Down go from function to function, Enter chooses one. */
export function functionList(of: Code, { base, shown, words, chosen }: Listed, choose: (one: CodeFunction) => void): HTMLElement {
  const functions = found(of, ranked(of, base, shown), words);
  const unit = unitFor(of, Math.max(0, ...functions.map((one) => ofFunction(one, shown).value)));
  const all = of.rungs[shown]?.[1] ?? 0;
  const connections = (rung: number) => of.rungs[rung]?.[0];
  const at = (rung: number) => (typeof connections(rung) === "number" ? `at ${count(connections(rung))}` : "CPU time");
  const buttons = functions.map((one, place) => h("button", {
    type: "button", class: "flame-open code-name", tabindex: (chosen && functions.includes(chosen) ? one === chosen : place === 0) ? 0 : -1,
    "aria-current": one === chosen ? "true" : null, click: () => choose(one),
  }, one.name));
  const rows = functions.map((one, place) => {
    const [before, now] = [ofFunction(one, base), ofFunction(one, shown)];
    const waiting = one.costs[shown]?.[2] ?? 0;
    return h("tr", { class: one === chosen ? "chosen" : null },
      base === null ? null : h("td", {}, growthText(growthOf(before, now), unit)),
      base === null ? null : h("td", {}, before.value > 0 ? unit.show(before.value) : ""),
      h("td", {}, now.value > 0 ? unit.show(now.value) : ""),
      h("td", {}, all > 0 ? percent(now.value / all) : ""),
      h("td", {}, waiting > 0 ? percent(waiting / now.value) : ""),
      h("th", { scope: "row", class: "words" }, buttons[place], h("span", { class: "faint" }, ` ${one.module}`)));
  });
  const heading = (text: string, small: string, words = false) => h("th", { scope: "col", class: words ? "words" : null }, text, h("span", { class: "unit" }, small));
  const element = h("div", { class: "scroll code-list", role: "region", "aria-label": "Functions with machine code" },
    h("table", {}, h("caption", { class: "hidden" }, "Functions with machine code"),
      h("thead", {}, h("tr", {}, base === null ? null : heading("growth", unit.name), base === null ? null : heading(at(base), unit.name),
        heading(at(shown), unit.name), heading("of all", "CPU time"), heading("waiting", "of it"), heading("function", "its own instructions", true))),
      h("tbody", {}, rows)));
  element.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const place = buttons.indexOf(event.target as HTMLButtonElement);
    if (!step || place < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const next = buttons[Math.min(buttons.length - 1, Math.max(0, place + step))]!;
    for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  });
  return element;
}
