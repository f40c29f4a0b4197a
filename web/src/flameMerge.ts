/** Frames that many call paths share: callers of a function, what it calls, and the whole graph from its innermost functions. */

import type { Profile } from "./flameData.ts";
import { Builder, stateLabel, totals, whole, type FrameTree, type Part } from "./flameTree.ts";

/** Call paths with the times that they bring into a frame. */
interface Bunch { nodes: number[]; base: number[]; shown: number[] }

interface Open { label: number; parent: number; bunch: Bunch; part: number }

/** From the innermost functions outwards. Frames of less time than `least` at the rung that is shown are left out: their width comes from it. */
export function fromTheLeaves(profile: Profile, parts: Part[], least: number): FrameTree {
  const bunches = parts.map((part) => {
    const bunch: Bunch = { nodes: [], base: [], shown: [] };
    for (let node = 0; node < profile.calls.count; node++) put(bunch, node, part.base?.[node] ?? 0, part.shown[node]!);
    return bunch;
  });
  const builder = new Builder();
  builder.add(whole, -1, sumOf(bunches, "base"), sumOf(bunches, "shown"), -1, -1);
  parts.forEach((part, place) => {
    const bunch = bunches[place]!;
    if (bunch.nodes.length === 0) return;
    const top = part.state === null ? 0
      : builder.add(stateLabel(part.state), 0, sum(bunch.base), sum(bunch.shown), -1, place);
    const first = [...byFunction(profile, bunch)].map(([label, within]) => ({ label, parent: top, bunch: within, part: place }));
    grow(profile, builder, first, (one) => callers(profile, one), least);
  });
  return builder.finish();
}

/** The callers of a function, or what it calls; the function itself is the frame within the whole. */
export function around(profile: Profile, parts: Part[], wanted: number, direction: "callers" | "callees", least: number): FrameTree {
  const { calls } = profile;
  const all: Bunch = { nodes: [], base: [], shown: [] };
  const sums = parts.map((part) => ({ base: totals(profile, part.base), shown: totals(profile, part.shown) }));
  for (let node = 0; node < calls.count; node++) {
    if (calls.functionOf[node] !== wanted || isWithin(profile, calls.parent[node]!, wanted)) continue;
    put(all, node, sums.reduce((sum, one) => sum + one.base[node]!, 0), sums.reduce((sum, one) => sum + one.shown[node]!, 0));
  }
  const builder = new Builder();
  builder.add(whole, -1, sum(all.base), sum(all.shown), -1, -1);
  const next = direction === "callers" ? (one: Bunch) => callers(profile, one) : (one: Bunch) => callees(profile, one, sums);
  if (all.nodes.length > 0) grow(profile, builder, [{ label: wanted, parent: 0, bunch: all, part: 0 }], next, least);
  return builder.finish();
}

function isWithin({ calls }: Profile, node: number, wanted: number): boolean {
  for (let at = node; at >= 0; at = calls.parent[at]!) if (calls.functionOf[at] === wanted) return true;
  return false;
}

/** Adds the frames depth first, the heavier of siblings first. */
function grow(profile: Profile, builder: Builder, first: Open[], next: (bunch: Bunch) => Bunch, least: number): void {
  const open: Open[] = [];
  const push = (some: Open[]) => {
    const all = some.map((one) => ({ one, base: sum(one.bunch.base), shown: sum(one.bunch.shown) })).filter(({ base, shown }) => base + shown > 0);
    const heavy = all.filter(({ shown }) => shown > 0 && shown >= least);
    builder.leftOut += all.filter(({ shown }) => shown > 0).length - heavy.length;
    heavy.sort((a, b) => a.base + a.shown - b.base - b.shown || b.one.label - a.one.label);
    for (const { one } of heavy) open.push(one);
  };
  push(first);
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const { label, parent, bunch, part } = one;
    const frame = builder.add(label, parent, sum(bunch.base), sum(bunch.shown), -1, part);
    push([...byFunction(profile, next(bunch))].map(([inner, within]) => ({ label: inner, parent: frame, bunch: within, part })));
  }
}

function put(bunch: Bunch, node: number, base: number, shown: number): void {
  if (base === 0 && shown === 0) return;
  bunch.nodes.push(node);
  bunch.base.push(base);
  bunch.shown.push(shown);
}

function callers({ calls }: Profile, bunch: Bunch): Bunch {
  const outer: Bunch = { nodes: [], base: [], shown: [] };
  bunch.nodes.forEach((node, at) => {
    const parent = calls.parent[node]!;
    if (parent >= 0) put(outer, parent, bunch.base[at]!, bunch.shown[at]!);
  });
  return outer;
}

function callees({ calls }: Profile, bunch: Bunch, sums: { base: Float64Array; shown: Float64Array }[]): Bunch {
  const inner: Bunch = { nodes: [], base: [], shown: [] };
  for (const node of bunch.nodes) {
    for (let child = node + 1; child < calls.end[node]!; child = calls.end[child]!) {
      let [base, shown] = [0, 0];
      for (const one of sums) {
        base += one.base[child]!;
        shown += one.shown[child]!;
      }
      put(inner, child, base, shown);
    }
  }
  return inner;
}

function byFunction({ calls }: Profile, bunch: Bunch): Map<number, Bunch> {
  const found = new Map<number, Bunch>();
  bunch.nodes.forEach((node, at) => {
    const label = calls.functionOf[node]!;
    let within = found.get(label);
    if (!within) found.set(label, (within = { nodes: [], base: [], shown: [] }));
    put(within, node, bunch.base[at]!, bunch.shown[at]!);
  });
  return found;
}

function sum(values: number[]): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function sumOf(bunches: Bunch[], side: "base" | "shown"): number {
  return bunches.reduce((total, bunch) => total + sum(bunch[side]), 0);
}
