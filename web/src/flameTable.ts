/** The figures of a flame graph as tables: the heaviest functions, and what is gone. */

import { h } from "./element.ts";
import type { Profile } from "./flameData.ts";
import type { FrameTree } from "./flameTree.ts";
import { nameOf } from "./flameTree.ts";
import { change, time, type Unit } from "./flameWords.ts";
import { percent } from "./format.ts";
import { table, type Column } from "./table.ts";

/** Rows of a table: past them nobody reads. */
const most = 40;

/** Time in a function itself, and with all that it calls. */
export interface FunctionTime { function: number; ownBase: number; ownShown: number; allBase: number; allShown: number }

/** Every function of a tree that begins at the threads' starts. A function within itself counts once. */
export function functionTimes(profile: Profile, tree: FrameTree): FunctionTime[] {
  const found: FunctionTime[] = [];
  const placeOf = new Int32Array(profile.functions.length).fill(-1);
  const inside = new Int32Array(profile.functions.length);
  const open: number[] = [];
  for (let frame = 0; frame < tree.count; frame++) {
    while (open.length > 0 && tree.end[open.at(-1)!]! <= frame) inside[tree.label[open.pop()!]!]! -= 1;
    const label = tree.label[frame]!;
    if (label < 0) continue;
    if (placeOf[label]! < 0) placeOf[label] = found.push({ function: label, ownBase: 0, ownShown: 0, allBase: 0, allShown: 0 }) - 1;
    const times = found[placeOf[label]!]!;
    let [ownBase, ownShown] = [tree.base[frame]!, tree.shown[frame]!];
    for (let child = frame + 1; child < tree.end[frame]!; child = tree.end[child]!) {
      ownBase -= tree.base[child]!;
      ownShown -= tree.shown[child]!;
    }
    // What is left of a sum of floats is no time.
    if (ownBase > tree.base[frame]! * 1e-9) times.ownBase += ownBase;
    if (ownShown > tree.shown[frame]! * 1e-9) times.ownShown += ownShown;
    if (inside[label] === 0) {
      times.allBase += tree.base[frame]!;
      times.allShown += tree.shown[frame]!;
    }
    inside[label]! += 1;
    open.push(frame);
  }
  return found;
}

export type Order = "own" | "all" | "growth";

/** The heaviest functions; the name of each shows its callers and callees. */
export function functionTable(
  profile: Profile, tree: FrameTree, unit: Unit, compared: boolean, order: Order, matches: Uint8Array | null, open: (name: string) => void,
): HTMLElement {
  const key: Record<Order, (row: FunctionTime) => number> = {
    own: (row) => row.ownShown, all: (row) => row.allShown, growth: (row) => row.ownShown - row.ownBase,
  };
  const rows = functionTimes(profile, tree).filter((row) => matches === null || matches[row.function] === 1);
  rows.sort((a, b) => key[order](b) - key[order](a));
  const told = order === "all" ? rows : rows.filter((row) => row.ownShown > 0 || row.ownBase > 0);
  const all = tree.shown[0]!;
  const before: Column<FunctionTime>[] = compared ? [
    { heading: "before", unit: "itself", cell: (row) => time(row.ownBase, unit) },
    { heading: "change", unit: "itself", cell: (row) => change(row.ownBase, row.ownShown) },
  ] : [];
  const allBefore: Column<FunctionTime>[] = compared ? [{ heading: "change", unit: "with callees", cell: (row) => change(row.allBase, row.allShown) }] : [];
  return table("Heaviest functions", [
    { heading: "function", words: true, cell: (row) => opener(profile.functions[row.function] ?? "", open) },
    { heading: "time", unit: "itself", cell: (row) => time(row.ownShown, unit) },
    { heading: "share", unit: "itself", cell: (row) => percent(all > 0 ? row.ownShown / all : null) },
    ...before,
    { heading: "time", unit: "with callees", cell: (row) => time(row.allShown, unit) },
    { heading: "share", unit: "with callees", cell: (row) => percent(all > 0 ? row.allShown / all : null) },
    ...allBefore,
  ], told.slice(0, most));
}

function opener(name: string, open: (name: string) => void): HTMLElement {
  return h("button", { type: "button", class: "flame-open", title: "Callers and callees", click: () => open(name) }, name);
}

/** A call path that took time at the rung compared with and takes none at the one that is shown. */
interface Gone { frame: number; base: number }

/** The outermost frames that are gone, the heaviest first. */
export function gone(tree: FrameTree): Gone[] {
  const found: Gone[] = [];
  for (let frame = 1; frame < tree.count;) {
    if (tree.shown[frame] === 0 && tree.base[frame]! > 0) {
      found.push({ frame, base: tree.base[frame]! });
      frame = tree.end[frame]!;
    } else frame++;
  }
  return found.sort((a, b) => b.base - a.base);
}

/** What is gone, as far as anybody would read it. */
export function goneTable(profile: Profile, tree: FrameTree, rows: Gone[], unit: Unit, baseName: string): HTMLElement {
  const named = (frame: number) => nameOf(profile, tree.label[frame]!);
  return table("Call paths that take no time any more", [
    { heading: "function", words: true, cell: (row) => named(row.frame) },
    { heading: "called by", words: true, cell: (row) => named(tree.parent[row.frame]!) },
    { heading: "time", unit: `at ${baseName}`, cell: (row) => time(row.base, unit) },
  ], rows.slice(0, most));
}
