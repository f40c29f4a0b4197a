/** How sure the time of a frame is, from the seconds of its rung. */

import type { Cut } from "./flameCut.ts";
import type { Profile } from "./flameData.ts";
import type { Layout } from "./flameLayout.ts";
import { stateLabel, type FrameTree } from "./flameTree.ts";
import { halfInterval } from "./measurementSpread.ts";

/** Which frames of a tree a call path is part of. */
export type Membership =
  | { view: "callees" }
  | { view: "callers" }
  | { view: "around"; wanted: number; direction: "callers" | "callees" };

/** Half of the 95 % interval of the time of each frame that is laid out; null where there are too few seconds that count. */
export function halves(profile: Profile, cut: Cut, states: (number | null)[], tree: FrameTree, layout: Layout, membership: Membership): Float64Array | null {
  const { rung } = cut;
  const half = rung && halfInterval(rung.amounts, rung.stretches, profile.quantiles);
  if (rung === null || half === null) return null;
  const blocks = rung.amounts.length;
  const sums = new Float64Array(layout.count * blocks);
  if (membership.view === "callees") fromStart(profile, cut, states, tree, layout, sums);
  else merged(profile, cut, states, tree, layout, membership, sums);
  const found = new Float64Array(layout.count);
  for (let place = 0; place < layout.count; place++) found[place] = half(sums, place * blocks);
  return found;
}

/**
 * Calls back for every sample of a chosen state in a second that counts, with the part that its state is drawn in. Where not
 * every sample is kept, the seconds of paths stand for them.
 */
function each(profile: Profile, cut: Cut, states: (number | null)[], chosen: (part: number, node: number, block: number, weight: number) => void): void {
  const { node, cell, weight } = profile.samples;
  const partOf = (state: number) => (states.length !== 1 || states[0] !== null ? states.indexOf(state) : cut.own(state) === null ? -1 : 0);
  cut.rung?.thinned.forEach((thinned, state) => {
    const part = partOf(state);
    if (thinned === null || part < 0) return;
    const { seconds } = thinned;
    for (let at = 0; at < seconds.node.length; at++) chosen(part, seconds.node[at]!, seconds.place[at]!, seconds.weight[at]!);
  });
  for (const measurement of cut.rung?.measurements ?? []) {
    for (let state = 0; state < profile.states.length; state++) {
      const part = partOf(state);
      if (part < 0 || cut.rung?.thinned[state]) continue;
      for (let at = measurement.starts[state]!; at < measurement.starts[state + 1]!; at++) {
        const block = measurement.countedAt[Math.floor(cell[at]! / profile.cellsPerSecond)] ?? -1;
        if (block >= 0) chosen(part, node[at]!, block, weight[at]!);
      }
    }
  }
}

/** Each sample belongs to the innermost frame on its path that is laid out, and to all that this is within. */
function fromStart(profile: Profile, cut: Cut, states: (number | null)[], tree: FrameTree, layout: Layout, sums: Float64Array): void {
  const blocks = cut.rung!.amounts.length;
  const placeOf = new Int32Array(tree.count).fill(-1);
  for (let place = 0; place < layout.count; place++) placeOf[layout.frame[place]!] = place;
  const outer = layout.frame.map((frame) => (tree.parent[frame]! < 0 ? -1 : placeOf[tree.parent[frame]!]!));
  const placeOfNode = states.map(() => new Int32Array(profile.calls.count).fill(-1));
  for (let frame = 0; frame < tree.count; frame++) {
    if (placeOf[frame]! < 0 && frame > 0) placeOf[frame] = placeOf[tree.parent[frame]!]!;
    if (tree.node[frame]! >= 0) placeOfNode[tree.part[frame]!]![tree.node[frame]!] = placeOf[frame]!;
  }
  each(profile, cut, states, (part, node, block, weight) => {
    const place = placeOfNode[part]![node]!;
    if (place >= 0) sums[place * blocks + block]! += weight;
  });
  for (let place = layout.count - 1; place > 0; place--) {
    const parent = outer[place]!;
    if (parent >= 0) for (let block = 0; block < blocks; block++) sums[parent * blocks + block]! += sums[place * blocks + block]!;
  }
}

/** In a merged tree the frames of a sample are found by going its path along the tree, as far as that is laid out. */
function merged(profile: Profile, cut: Cut, states: (number | null)[], tree: FrameTree, layout: Layout, membership: Exclude<Membership, { view: "callees" }>, sums: Float64Array): void {
  const { calls } = profile;
  const blocks = cut.rung!.amounts.length;
  const names = profile.functions.length + profile.states.length + 2;
  const inner = new Map<number, number>();
  const placeOf = new Map<number, number>();
  for (let place = 0; place < layout.count; place++) {
    const frame = layout.frame[place]!;
    placeOf.set(frame, place);
    if (tree.parent[frame]! >= 0) inner.set(tree.parent[frame]! * names + tree.label[frame]! + profile.states.length + 2, frame);
  }
  const child = (frame: number, label: number) => inner.get(frame * names + label + profile.states.length + 2) ?? -1;
  let memo = { part: -1, node: -1, places: [] as number[] };
  const placesOf = (part: number, node: number): number[] => {
    if (memo.part === part && memo.node === node) return memo.places;
    const places: number[] = [];
    let frame = 0;
    const take = (label: number) => {
      frame = child(frame, label);
      const place = frame < 0 ? undefined : placeOf.get(frame);
      if (place !== undefined) places.push(place);
      return place !== undefined;
    };
    const root = placeOf.get(0);
    if (root !== undefined) places.push(root);
    if (membership.view === "callers") {
      const state = states[part] ?? null;
      if (state === null || take(stateLabel(state))) for (let at = node; at >= 0 && take(calls.functionOf[at]!);) at = calls.parent[at]!;
    } else {
      const path: number[] = [];
      for (let at = node; at >= 0; at = calls.parent[at]!) path.push(at);
      const outermost = path.findLastIndex((at) => calls.functionOf[at] === membership.wanted);
      if (outermost < 0) places.length = 0;
      else {
        const along = membership.direction === "callers" ? path.slice(outermost) : path.slice(0, outermost + 1).reverse();
        along.every((at) => take(calls.functionOf[at]!));
      }
    }
    memo = { part, node, places };
    return places;
  };
  each(profile, cut, states, (part, node, block, weight) => {
    for (const place of placesOf(part, node)) sums[place * blocks + block]! += weight;
  });
}
