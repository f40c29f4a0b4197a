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
  /** Frames that were left out as too short to be seen. */
  leftOut: number;
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
  leftOut = 0;
  private count = 0;
  private label = new Int32Array(1024);
  private parent = new Int32Array(1024);
  private node = new Int32Array(1024);
  private part = new Int8Array(1024);
  private base = new Float64Array(1024);
  private shown = new Float64Array(1024);

  add(label: number, parent: number, base: number, shown: number, node: number, part: number): number {
    if (this.count === this.label.length) this.widen();
    this.label[this.count] = label;
    this.parent[this.count] = parent;
    this.node[this.count] = node;
    this.part[this.count] = part;
    this.base[this.count] = base;
    this.shown[this.count] = shown;
    return this.count++;
  }

  private widen(): void {
    const wider = <A extends Int32Array | Int8Array | Float64Array>(old: A, made: A): A => {
      made.set(old);
      return made;
    };
    const size = this.count * 2;
    this.label = wider(this.label, new Int32Array(size));
    this.parent = wider(this.parent, new Int32Array(size));
    this.node = wider(this.node, new Int32Array(size));
    this.part = wider(this.part, new Int8Array(size));
    this.base = wider(this.base, new Float64Array(size));
    this.shown = wider(this.shown, new Float64Array(size));
  }

  finish(): FrameTree {
    const { count, parent } = this;
    const end = new Int32Array(count);
    const depth = new Uint16Array(count);
    for (let at = 1; at < count; at++) depth[at] = depth[parent[at]!]! + 1;
    for (let at = count - 1; at >= 0; at--) {
      if (end[at] === 0) end[at] = at + 1;
      if (at > 0) end[parent[at]!] = Math.max(end[parent[at]!]!, end[at]!);
    }
    return {
      count, end, depth, leftOut: this.leftOut, parent: parent.subarray(0, count), label: this.label.subarray(0, count), node: this.node.subarray(0, count),
      part: this.part.subarray(0, count), base: this.base.subarray(0, count), shown: this.shown.subarray(0, count),
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
