/** The small controls of a flame graph, and what its colours mean. */

import { h, s } from "./element.ts";
import { threadStateLabels, type ThreadState } from "./vocabulary.ts";

/** What a state of a thread is called. */
export function stateName(state: string): string {
  return threadStateLabels[state as ThreadState] ?? state;
}

/** Whether threads in that state use a CPU. */
export function isOnCpu(state: string): boolean {
  return state === "cpu" || state === "spin";
}

/** A button that is pressed or not. */
export function toggle(label: string, title: string, click: () => void): HTMLButtonElement {
  return h("button", { type: "button", class: "flame-toggle", title, "aria-pressed": "false", click }, label);
}

/** A button that shows or hides a state, with its colour and its time. */
export function stateChip(state: string, pressed: boolean, time: string, click: () => void): HTMLElement {
  return h("button", { type: "button", class: "flame-state", "aria-pressed": String(pressed), "data-state": state, click },
    s("svg", { viewBox: "0 0 10 10", width: 10, height: 10, class: "bar swatch" }, s("rect", { width: 10, height: 10, class: `state-${state}` })),
    ` ${stateName(state)} `, h("span", { class: "faint" }, time));
}

const swatch = (part: string) => h("i", { class: `flame-swatch ${part}` });

/** What colours of growth mean; `chanceKnown` where intervals tell chance apart, `ofRung` where a whole rung is shown. */
export function growthKey(base: string, chanceKnown: boolean, ofRung: boolean): Node[] {
  const unchanged = chanceKnown ? "the same, or within chance" : ofRung ? "the same (too few seconds to tell chance apart)" : "the same";
  return [h("span", {}, swatch("less"), " takes less"), h("span", {}, swatch("same"), ` ${unchanged}`), h("span", {}, swatch("more"), ` takes more than at ${base}; full colour: new or gone`), h("span", {}, swatch("kernel-mark"), " kernel")];
}

/** What colours by name mean. */
export function nameKey(): Node[] {
  return [h("span", {}, swatch("user"), " the server and its libraries"), h("span", {}, swatch("kernel"), swatch("kernel-mark"), " kernel")];
}
