/** Where each frame stands, and which one stands at a point. Only frames of half a pixel and more are laid out. */

import type { FrameTree } from "./flameTree.ts";

/** Narrower frames are not drawn, and neither is what is within them. */
const narrowest = 0.5;
export const rowHeight = 18;

/** Frames that are drawn, each before those within it. */
export interface Layout {
  count: number;
  /** Place in the tree. */
  frame: Int32Array;
  x: Float64Array;
  width: Float64Array;
  row: Uint16Array;
  rows: number;
  /** Frames within the zoomed one that are too narrow. */
  tooNarrow: number;
}

/**
 * The frame `zoom` as wide as the canvas, what it is within above it as wide, and below it all that it calls. `times` are
 * the widths, and frames above `top` are left out.
 */
export function layOut(tree: FrameTree, times: Float64Array, top: number, zoom: number, canvasWidth: number): Layout {
  const frame: number[] = [];
  const x: number[] = [];
  const width: number[] = [];
  const row: number[] = [];
  const put = (at: number, left: number, wide: number) => {
    frame.push(at);
    x.push(left);
    width.push(wide);
    row.push(tree.depth[at]! - tree.depth[top]!);
  };
  const path = pathTo(tree, zoom);
  for (const at of path.slice(path.indexOf(top))) put(at, 0, canvasWidth);
  const scale = times[zoom]! > 0 ? canvasWidth / times[zoom]! : 0;
  const cursor = new Float64Array(tree.end[zoom]! - zoom);
  let tooNarrow = 0;
  for (let at = zoom + 1; at < tree.end[zoom]!;) {
    const parent = tree.parent[at]! - zoom;
    const wide = times[at]! * scale;
    const left = cursor[parent]!;
    cursor[parent] = left + wide;
    if (wide < narrowest) {
      if (wide > 0) tooNarrow += tree.end[at]! - at;
      at = tree.end[at]!;
      continue;
    }
    cursor[at - zoom] = left;
    put(at, left, wide);
    at++;
  }
  return {
    count: frame.length, frame: Int32Array.from(frame), x: Float64Array.from(x), width: Float64Array.from(width), row: Uint16Array.from(row),
    rows: row.reduce((most, one) => Math.max(most, one + 1), 1), tooNarrow,
  };
}

/** The place in the layout of what stands at a point; -1 for nothing. */
export function placeAt(layout: Layout, x: number, row: number): number {
  for (let at = 0; at < layout.count; at++) {
    if (layout.row[at] === row && x >= layout.x[at]! && x < layout.x[at]! + layout.width[at]!) return at;
  }
  return -1;
}

/** From the whole to a frame, both included. */
export function pathTo(tree: FrameTree, frame: number): number[] {
  const path: number[] = [];
  for (let at = frame; at >= 0; at = tree.parent[at]!) path.push(at);
  return path.reverse();
}

/** Which frame the reader comes to from another by an arrow key: of those that are drawn, in the direction of the graph. */
export function neighbour(layout: Layout, tree: FrameTree, place: number, direction: "outer" | "inner" | "before" | "after"): number {
  const row = layout.row[place]!;
  if (direction === "outer") return Math.max(0, layout.frame.indexOf(tree.parent[layout.frame[place]!]!));
  if (direction === "inner") {
    let widest = place;
    for (let at = place + 1; at < layout.count; at++) {
      if (tree.parent[layout.frame[at]!] === layout.frame[place] && (widest === place || layout.width[at]! > layout.width[widest]!)) widest = at;
    }
    return widest;
  }
  const step = direction === "after" ? 1 : -1;
  for (let at = place + step; at >= 0 && at < layout.count; at += step) if (layout.row[at] === row) return at;
  return place;
}
