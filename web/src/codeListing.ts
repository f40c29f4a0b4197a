/** One function's machine code with what every instruction costs at two rungs. */

import { growthOf, growthText, inKernel, ofFunction, ofRow, unitFor, type CostUnit } from "./codeCosts.ts";
import { marks, word, type Code, type CodeFunction, type Row } from "./codeData.ts";
import { h } from "./element.ts";
import { count, counted, percent } from "./format.ts";

/** An instruction with this much of its function's cost at either rung is hot, and one with this much is told by its colour. */
const hot = 0.05;
const hottest = 0.2;

export interface Listing {
  element: HTMLElement;
  /** Goes to an instruction by its address; false where it is not shown. */
  go(address: number): boolean;
  focus(): void;
}

const has = (row: Row, mark: number) => (row[5] & mark) !== 0;

/** The listing. `moved` is called with the address where the reader stands, `left` when the reader goes back to the list. */
export function listing(of: Code, one: CodeFunction, base: number | null, shown: number, moved: (address: number) => void, left: () => void): Listing {
  const rows = one.regions.flatMap((region) => region.rows);
  const addresses = new Set(rows.map(([address]) => address));
  const unit = unitFor(of, Math.max(ofFunction(one, shown).value, ofFunction(one, base).value));
  const whole = (rung: number | null) => Math.max(ofFunction(one, rung).value, Number.MIN_VALUE);
  const shareOf = (row: Row) => Math.max(ofRow(row, shown).value / whole(shown), base === null ? 0 : ofRow(row, base).value / whole(base));
  const largest = Math.max(...rows.map((row) => Math.max(ofRow(row, shown).value, ofRow(row, base).value)), Number.MIN_VALUE);
  const withKernel = rows.some((row) => inKernel(row, shown) > 0);
  const columns = 3 + (base === null ? 0 : 2) + (withKernel ? 1 : 0) + 1;
  const elements: HTMLTableRowElement[] = [];
  const body = h("tbody", {});
  let before = "";
  for (const region of one.regions) {
    if (region.omitted > 0) {
      before = "";
      body.append(h("tr", { class: "code-gap" }, h("td", { colspan: columns }, `… ${counted(region.omitted, "instruction")} away from which no thread was seen`)));
    }
    for (const row of region.rows) {
      const source = sourceOf(of, row);
      elements.push(line(row, elements.length, source === before ? "" : source));
      before = source;
      body.append(elements.at(-1)!);
    }
  }
  const told = rows.length + one.regions.reduce((sum, region) => sum + region.omitted, 0);
  if (told < one.instructions) body.append(h("tr", { class: "code-gap" }, h("td", { colspan: columns }, `… ${counted(one.instructions - told, "instruction")} more`)));

  function line(row: Row, place: number, source: string): HTMLTableRowElement {
    const share = shareOf(row);
    const [then, now] = [ofRow(row, base), ofRow(row, shown)];
    const target = has(row, marks.branches) && row[6] !== null && addresses.has(row[6]) ? row[6] : null;
    const signs = `${has(row, marks.spin) ? "~" : ""}${has(row, marks.target) ? "›" : ""}`;
    return h("tr", {
      id: `code-${row[0].toString(16)}`, "data-place": place, class: [has(row, marks.spin) ? "waits" : "", share >= hottest ? "hottest" : share >= hot ? "hot" : ""].join(" ").trim() || null,
      click: () => stand(place, false),
    },
    base === null ? null : heat(then.value, largest, unit, "before"),
    heat(now.value, largest, unit, "now"),
    base === null ? null : h("td", { class: "growth" }, growthText(growthOf(then, now), unit)),
    withKernel ? h("td", {}, inKernel(row, shown) > 0 ? unit.show(inKernel(row, shown)) : "") : null,
    h("td", { class: "code-address" }, h("span", { class: "code-signs", title: signsTitle(row) }, signs), row[0].toString(16)),
    h("td", { class: "code-text" }, target === null ? row[1] : h("span", { class: "code-branch", title: "Enter follows it", dblclick: () => go(target) }, row[1]),
      has(row, marks.locked) ? h("span", { class: "code-tag", title: "No other CPU can come between: it takes the cache line for itself" }, "locked") : null),
    h("td", { class: "code-source words", title: source || null }, source));
  }

  let current = -1;
  const table = h("table", { role: "grid", tabindex: "0", class: "code-grid", "aria-label": `Machine code of ${one.name}. Up and Down move, n and p go to the next and the previous hot instruction, Enter follows a branch, Escape goes back to the list.` },
    h("thead", {}, h("tr", {}, headings(of, base, shown, unit, withKernel))), body);
  const element = h("div", { class: "code-scroll" }, table);

  function stand(place: number, reveal = true): void {
    if (place < 0 || place >= elements.length || place === current) return;
    elements[current]?.removeAttribute("aria-selected");
    current = place;
    const row = elements[place]!;
    row.setAttribute("aria-selected", "true");
    table.setAttribute("aria-activedescendant", row.id);
    if (reveal) show(row);
    moved(rows[place]![0]);
  }

  /** Within the listing only: the page stays where it is. */
  function show(row: HTMLElement): void {
    const head = table.tHead?.offsetHeight ?? 0;
    const { offsetTop: top, offsetHeight: height } = row;
    if (top - head < element.scrollTop || top + height > element.scrollTop + element.clientHeight) element.scrollTop = top - element.clientHeight / 3;
  }

  function go(address: number): boolean {
    const distance = (place: number) => Math.abs(rows[place]![0] - address);
    // Instructions away from which no thread was seen are left out: the nearest that is listed shows where it is.
    const place = rows.reduce((best, _, other) => (distance(other) < distance(best) ? other : best), 0);
    stand(place);
    return rows[place]?.[0] === address;
  }

  function hotFrom(step: 1 | -1): void {
    const places = rows.map((row, place) => (shareOf(row) >= hot ? place : -1)).filter((place) => place >= 0);
    const next = step > 0 ? places.find((place) => place > current) ?? places[0] : places.findLast((place) => place < current) ?? places.at(-1);
    if (next !== undefined) stand(next);
  }

  const keys: Record<string, () => void> = {
    ArrowDown: () => stand(Math.min(rows.length - 1, current + 1)),
    ArrowUp: () => stand(Math.max(0, current - 1)),
    PageDown: () => stand(Math.min(rows.length - 1, current + 20)),
    PageUp: () => stand(Math.max(0, current - 20)),
    Home: () => stand(0),
    End: () => stand(rows.length - 1),
    n: () => hotFrom(1),
    p: () => hotFrom(-1),
    Enter: () => { const target = rows[current]?.[6]; if (typeof target === "number") go(target); },
    Escape: left,
  };
  table.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  return { element, go, focus: () => table.focus({ preventScroll: true }) };
}

function headings(of: Code, base: number | null, shown: number, unit: CostUnit, withKernel: boolean): (HTMLElement | null)[] {
  const at = (rung: number) => { const connections = of.rungs[rung]?.[0]; return typeof connections === "number" ? `at ${count(connections)}` : "CPU time"; };
  const heading = (text: string, small: string, words = false) => h("th", { scope: "col", class: words ? "words" : null }, text, small ? h("span", { class: "unit" }, small) : null);
  return [
    base === null ? null : heading(at(base), unit.name), heading(at(shown), unit.name), base === null ? null : heading("growth", unit.name),
    withKernel ? heading("in kernel", unit.name) : null, heading("address", ""), heading("instruction", "", true), heading("source", "", true),
  ];
}

/** A figure with a bar as long as its part of the largest one. */
function heat(value: number, largest: number, unit: CostUnit, which: string): HTMLElement {
  const cell = h("td", { class: `heat ${which}` }, value > 0 ? unit.show(value) : "");
  if (value > 0) cell.style.setProperty("--share", percent(value / largest, 1).replace(/[^\d.%]/g, ""));
  return cell;
}

function sourceOf(of: Code, row: Row): string {
  const file = word(of, row[2]);
  const place = file && row[3] > 0 ? `${file}:${row[3]}` : file;
  const inlined = word(of, row[4]);
  return [place, inlined ? `in ${inlined}` : ""].filter(Boolean).join("  ");
}

function signsTitle(row: Row): string | null {
  const words = [has(row, marks.spin) ? "in a loop that waits for another thread" : "", has(row, marks.target) ? "a branch goes here" : ""].filter(Boolean);
  return words.join("; ") || null;
}
