/** The tables below a flame graph: the heaviest functions, and the call paths that are gone. */

import { h } from "./element.ts";
import type { Profile } from "./flameData.ts";
import { functionTable, gone, goneTable, type Order } from "./flameTable.ts";
import type { FrameTree } from "./flameTree.ts";
import { time, type Unit } from "./flameWords.ts";
import { counted } from "./format.ts";

export interface FlameTables {
  elements: HTMLElement[];
  /** Fills those that are open from the whole tree; `base` names the rung that is compared with. */
  fill(tree: () => FrameTree, unit: Unit, shown: string, base: string | null, matches: Uint8Array | null): void;
}

/** `changed` is called when another one is opened or ordered otherwise, `open` when a function in them is chosen. */
export function flameTables(profile: Profile, name: string, changed: () => void, open: (name: string) => void): FlameTables {
  const order = h("select", { id: `${name}-order` }, h("option", { value: "own" }, "time in the function itself"),
    h("option", { value: "all" }, "time with what it calls"), h("option", { value: "growth" }, "growth of the time in itself"));
  const heavy = h("div", {});
  const heaviest = h("details", { class: "folded flame-functions" }, h("summary", {}, "Heaviest functions as a table"),
    h("p", { class: "search" }, h("label", { for: `${name}-order` }, "Order "), order), heavy);
  const lost = h("div", {});
  const summary = h("summary", {});
  const vanished = h("details", { class: "folded flame-gone" }, summary, lost);
  for (const [one, event] of [[order, "change"], [heaviest, "toggle"], [vanished, "toggle"]] as const) one.addEventListener(event, changed);
  return {
    elements: [heaviest, vanished],
    fill(treeOf, unit, shown, base, matches) {
      const compared = base !== null;
      const tree = heaviest.open || compared ? treeOf() : null;
      heavy.replaceChildren(...(heaviest.open && tree ? [functionTable(profile, tree, unit, compared, order.value as Order, matches, open)] : []));
      const rows = tree && compared ? gone(tree) : [];
      vanished.hidden = rows.length === 0;
      summary.textContent = `Gone at ${shown}: ${counted(rows.length, "call path")}, ${time(rows.reduce((sum, row) => sum + row.base, 0), unit)} at ${base ?? ""}`;
      lost.replaceChildren(...(vanished.open && tree ? [
        goneTable(profile, tree, rows, unit, base ?? ""), h("p", { class: "notes" }, "To see them in the graph, swap the two rungs."),
      ] : []));
    },
  };
}
