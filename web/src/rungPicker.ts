/** The row of rungs: one is chosen, by pointer or by the arrow keys. */

import { h } from "./element.ts";
import { count, counted } from "./format.ts";
import { onChoice } from "./selection.ts";

export interface RungPicker {
  element: HTMLElement;
  /** Marks a rung as chosen without calling back; one that is not there changes nothing, null unmarks all. */
  mark(connections: number | null): void;
}

/**
 * Buttons that behave as one radio group; calls back when another rung is chosen, here or, where it `follows`, elsewhere on the
 * page.
 */
export function rungPicker(rungs: number[], first: number, chosen: (connections: number) => void, follows = true): RungPicker {
  const buttons = rungs.map((rung) => h("button", {
    type: "button", role: "radio", "data-rung": rung, "aria-label": counted(rung, "connection"),
    click: () => take(rung, false),
  }, count(rung)));
  let current = first;
  const mark = (rung: number | null) => {
    if (rung !== null && !rungs.includes(rung)) return;
    current = rung ?? current;
    buttons.forEach((button, at) => {
      button.setAttribute("aria-checked", String(rungs[at] === rung));
      button.tabIndex = rungs[at] === current ? 0 : -1;
    });
  };
  const take = (rung: number, focus: boolean) => {
    if (!rungs.includes(rung)) return;
    mark(rung);
    if (focus) buttons[rungs.indexOf(rung)]?.focus();
    chosen(rung);
  };
  const steps: Record<string, (at: number) => number> = {
    ArrowRight: (at) => (at + 1) % rungs.length,
    ArrowDown: (at) => (at + 1) % rungs.length,
    ArrowLeft: (at) => (at + rungs.length - 1) % rungs.length,
    ArrowUp: (at) => (at + rungs.length - 1) % rungs.length,
    Home: () => 0,
    End: () => rungs.length - 1,
  };
  const group = h("div", { class: "rungs", role: "radiogroup", "aria-label": "Rung, in connections" }, h("span", { class: "rungs-name", "aria-hidden": "true" }, "connections"), buttons);
  group.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    take(rungs[step(rungs.indexOf(current))] ?? first, true);
  });
  if (follows) onChoice((rung) => take(rung, false));
  mark(first);
  return { element: group, mark };
}
