/** One canvas of frames, with pointer and keyboard. */

import { h } from "./element.ts";
import type { FlameInk } from "./flameColours.ts";
import { layOut, neighbour, placeAt, rowHeight, type Layout } from "./flameLayout.ts";
import type { FrameTree } from "./flameTree.ts";

/** What a pane draws. */
export interface Picture {
  tree: FrameTree;
  /** Widths of the frames. */
  times: Float64Array;
  /** The outermost frame that is drawn, and the one that is as wide as the canvas. */
  top: number;
  zoom: number;
  /** Whether the outermost frame stands below. */
  upwards: boolean;
  ink: FlameInk;
  name(frame: number): string;
  /** Asked once for all that is laid out. */
  colours(layout: Layout): (place: number) => string;
  isKernel(frame: number): boolean;
  /** Whether a search found it; null without a search. */
  isHit: ((frame: number) => boolean) | null;
}

/** What the reader does with a frame. */
export interface PaneEvents {
  zoom(frame: number): void;
  /** Asks for the callers and callees of the frame's function. */
  open(frame: number): void;
  back(): void;
  /** The frame that the pointer or the keyboard is on, with where it is on the screen; null for none. */
  at(frame: number | null, box: DOMRect | null, byKeyboard: boolean): void;
  drawn(layout: Layout): void;
}

export interface Pane {
  element: HTMLElement;
  draw(picture: Picture): void;
  layout(): Layout | null;
  /** Moves the keyboard's frame there. */
  point(frame: number): void;
}

/** More rows than any stack of a server has; past them a canvas would be too large for some browsers. */
const mostRows = 400;

export function pane(name: string, label: string, events: PaneEvents): Pane {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const hover = h("div", { class: "flame-hover", hidden: true });
  const cursor = h("div", { class: "flame-cursor", hidden: true });
  const element = h("div", { class: "flame-pane", id: name, tabindex: "0", role: "application", "aria-roledescription": "flame graph", "aria-label": label },
    canvas, hover, cursor);
  let picture: Picture | null = null;
  let layout: Layout | null = null;
  let width = 0;
  let current = -1;

  const rows = () => Math.min(layout?.rows ?? 1, mostRows);
  const top = (row: number) => (picture?.upwards ? rows() - 1 - row : row) * rowHeight;
  const outline = (box: HTMLElement, place: number) => {
    box.hidden = place < 0 || layout === null;
    if (place < 0 || layout === null) return;
    box.style.left = `${layout.x[place]}px`;
    box.style.top = `${top(layout.row[place]!)}px`;
    box.style.width = `${Math.max(2, layout.width[place]! - 1)}px`;
  };
  const boxOf = (box: HTMLElement) => box.getBoundingClientRect();

  const redraw = () => {
    if (picture === null || width === 0) return;
    layout = layOut(picture.tree, picture.times, picture.top, picture.zoom, width);
    const height = rows() * rowHeight;
    canvas.width = width * devicePixelRatio;
    canvas.height = height * devicePixelRatio;
    canvas.style.height = `${height}px`;
    paint(canvas, picture, layout, top);
    current = -1;
    outline(hover, -1);
    outline(cursor, -1);
    events.drawn(layout);
  };
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry?.contentRect.width ?? 0);
    if (now === width || now === 0) return;
    width = now;
    redraw();
  }).observe(element);

  const under = (event: MouseEvent) => {
    if (layout === null) return -1;
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) / rowHeight);
    return placeAt(layout, event.clientX - box.left, picture?.upwards ? rows() - 1 - row : row);
  };
  canvas.addEventListener("pointermove", (event) => {
    const place = under(event);
    outline(hover, place);
    events.at(place < 0 ? null : layout!.frame[place]!, place < 0 ? null : new DOMRect(event.clientX, boxOf(hover).top, 0, rowHeight), false);
  });
  canvas.addEventListener("pointerleave", () => {
    outline(hover, -1);
    events.at(null, null, false);
  });
  canvas.addEventListener("click", (event) => {
    const place = under(event);
    if (place < 0) return;
    const frame = layout!.frame[place]!;
    if (event.shiftKey) events.open(frame);
    else events.zoom(frame);
  });
  const goTo = (place: number) => {
    current = place;
    outline(cursor, place);
    if (place < 0 || layout === null) return;
    cursor.scrollIntoView({ block: "nearest" });
    events.at(layout.frame[place]!, boxOf(cursor), true);
  };
  element.addEventListener("blur", () => {
    outline(cursor, -1);
    events.at(null, null, true);
  });
  element.addEventListener("keydown", (event) => {
    if (layout === null || picture === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const [inner, outer] = picture.upwards ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
    const moves: Record<string, "outer" | "inner" | "before" | "after"> = { [inner!]: "inner", [outer!]: "outer", ArrowLeft: "before", ArrowRight: "after" };
    const move = moves[event.key];
    const frame = layout.frame[Math.max(0, current)]!;
    if (move) goTo(current < 0 ? Math.max(0, layout.frame.indexOf(picture.zoom)) : neighbour(layout, picture.tree, current, move));
    else if (event.key === "Home") goTo(0);
    else if (event.key === "Enter" && current >= 0) events.zoom(frame);
    else if (event.key === "s" && current >= 0) events.open(frame);
    else if (event.key === "Escape") events.back();
    else return;
    event.preventDefault();
  });

  return {
    element,
    draw(next) {
      picture = next;
      width = Math.floor(element.clientWidth) || width;
      redraw();
    },
    layout: () => layout,
    point(frame) {
      if (layout !== null) goTo(layout.frame.indexOf(frame));
    },
  };
}

function paint(canvas: HTMLCanvasElement, picture: Picture, layout: Layout, top: (row: number) => number): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const { ink } = picture;
  context.scale(devicePixelRatio, devicePixelRatio);
  context.font = '11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
  context.textBaseline = "middle";
  const letter = context.measureText("m").width;
  const colourOf = picture.colours(layout);
  const tall = rowHeight - 1;
  for (let at = 0; at < layout.count; at++) {
    if (layout.row[at]! >= mostRows) continue;
    const frame = layout.frame[at]!;
    const [x, y, wide] = [layout.x[at]!, top(layout.row[at]!), layout.width[at]!];
    const box = wide > 2.5 ? wide - 0.75 : wide;
    const hit = picture.isHit?.(frame) ?? true;
    context.globalAlpha = hit ? 1 : 0.38;
    context.fillStyle = colourOf(at);
    context.fillRect(x, y, box, tall);
    if (picture.isKernel(frame)) {
      context.fillStyle = ink.mark;
      context.fillRect(x, y + tall - 2, box, 2);
    }
    if (picture.isHit && hit) {
      context.fillStyle = ink.hit;
      context.fillRect(x, y, box, 2.5);
    }
    const letters = Math.floor((wide - 7) / letter);
    if (letters >= 3) {
      const name = picture.name(frame);
      context.globalAlpha = hit ? 1 : 0.7;
      context.fillStyle = ink.text;
      context.fillText(name.length <= letters ? name : `${name.slice(0, letters - 1)}…`, x + 4, y + tall / 2 + 0.5);
    }
  }
  context.globalAlpha = 1;
}
