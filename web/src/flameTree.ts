/** The frames of a flame graph as typed arrays, ready to be laid out. */

import type { Profile } from "./flameData.ts";

/** Frames in the order in which they are drawn: each before those within it. The first is the whole. */
export interface FrameTree {
  count: number;
  /** Place of the frame's name, see [`nameOf`]. */
  label: Int32Array;
  parent: Int32Array;
  /** The place after the last frame within. */
  end: Int32Array;
  depth: Uint16Array;
  /** Time at the rung that is compared with, and at the one that is shown, what the frame calls included. */
  base: Float64Array;
  shown: Float64Array;
  /** The call path that it is in the profile, where it is one. */
  node: Int32Array;
  /** Place of the part that it is in. */
  part: Int8Array;
}

/** Call paths that are drawn as one tree: those of a state, or of all chosen states together. */
export interface Part {
  /** Place of the state; null for all together. */
  state: number | null;
  base: Float64Array | null;
  shown: Float64Array;
}

/** The whole, which every tree begins with. */
export const whole = -1;
/** Name of a frame: functions by their place, states by the complement of theirs, less one for the whole. */
export function nameOf(profile: Profile, label: number): string {
  if (label >= 0) return profile.functions[label] ?? "";
  return label === whole ? "all" : profile.states[-label - 2] ?? "";
}

/** The label of a state. */
export function stateLabel(state: number): number {
  return -state - 2;
}

/** Times with what is called included. */
export function totals({ calls }: Profile, own: Float64Array | null): Float64Array {
  if (own === null) return new Float64Array(calls.count);
  const sums = own.slice();
  for (let node = calls.count - 1; node >= 0; node--) {
    const parent = calls.parent[node]!;
    if (parent >= 0) sums[parent]! += sums[node]!;
  }
  return sums;
}

/** Grows as frames are added. */
export class Builder {
  private label: number[] = [];
  private parent: number[] = [];
  private base: number[] = [];
  private shown: number[] = [];
  private node: number[] = [];
  private part: number[] = [];

  add(label: number, parent: number, base: number, shown: number, node: number, part: number): number {
    this.label.push(label);
    this.parent.push(parent);
    this.base.push(base);
    this.shown.push(shown);
    this.node.push(node);
    this.part.push(part);
    return this.label.length - 1;
  }

  finish(): FrameTree {
    const count = this.label.length;
    const parent = Int32Array.from(this.parent);
    const end = Int32Array.from({ length: count }, (_, at) => at + 1);
    const depth = new Uint16Array(count);
    for (let at = count - 1; at > 0; at--) end[parent[at]!] = Math.max(end[parent[at]!]!, end[at]!);
    for (let at = 1; at < count; at++) depth[at] = depth[parent[at]!]! + 1;
    return {
      count, parent, end, depth, label: Int32Array.from(this.label), base: Float64Array.from(this.base), shown: Float64Array.from(this.shown),
      node: Int32Array.from(this.node), part: Int8Array.from(this.part),
    };
  }
}

/** From the thread's start inwards. */
export function fromTheStart(profile: Profile, parts: Part[]): FrameTree {
  const { calls } = profile;
  const sums = parts.map((part) => ({ part, base: totals(profile, part.base), shown: totals(profile, part.shown) }));
  const builder = new Builder();
  const ofRoots = (times: Float64Array) => {
    let sum = 0;
    for (let node = 0; node < calls.count; node = calls.end[node]!) sum += times[node]!;
    return sum;
  };
  const all = sums.map(({ base, shown }) => [ofRoots(base), ofRoots(shown)] as const);
  builder.add(whole, -1, all.reduce((sum, [base]) => sum + base, 0), all.reduce((sum, [, shown]) => sum + shown, 0), -1, -1);
  const frameOf = new Int32Array(calls.count);
  sums.forEach(({ part, base, shown }, place) => {
    const [allBase, allShown] = all[place]!;
    if (allBase === 0 && allShown === 0) return;
    const top = part.state === null ? 0 : builder.add(stateLabel(part.state), 0, allBase, allShown, -1, place);
    for (let node = 0; node < calls.count;) {
      if (base[node] === 0 && shown[node] === 0) {
        node = calls.end[node]!;
        continue;
      }
      const parent = calls.parent[node]!;
      frameOf[node] = builder.add(calls.functionOf[node]!, parent < 0 ? top : frameOf[parent]!, base[node]!, shown[node]!, node, place);
      node++;
    }
  });
  return builder.finish();
}
