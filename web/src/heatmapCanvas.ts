/** The canvas of the heat map: a column a second, a row 20 ms; a stretch of time is chosen by pointer or keyboard. */

import { h } from "./element.ts";
import { rangeOf, type Grid, type Range } from "./heatmapGrid.ts";
import type { Ink } from "./theme.ts";

export interface MapPicture {
  grid: Grid;
  colour(threads: number): string;
  ink: Ink;
  shown: Range | null;
  base: Range | null;
}

export interface MapEvents {
  /** A stretch was chosen: the one that is shown, or the one that it is compared with. */
  chosen(range: Range, isBase: boolean): void;
  clear(): void;
  /** The cell that the pointer or the keyboard is on; null for none. */
  at(cell: number | null, byKeyboard: boolean): void;
}

export interface HeatCanvas {
  element: HTMLElement;
  draw(picture: MapPicture): void;
  /** The next stretch is the one to compare with. */
  nextIsBase(yes: boolean): void;
  /** The middle of a cell, from the corner of the canvas. */
  where(cell: number): { x: number; y: number };
}

const cellHeight = 5;
const [left, top, bottom] = [46, 18, 18];
const [narrowest, widest, gap] = [3, 26, 8];

export function heatCanvas(name: string, label: string, events: MapEvents): HeatCanvas {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const element = h("div", { class: "heatmap-pane", id: name, tabindex: "0", role: "application", "aria-roledescription": "heat map", "aria-label": label }, canvas);
  let picture: MapPicture | null = null;
  let width = 0;
  let cellWidth = 0;
  let begun: number | null = null;
  let byBase = false;
  let isDrag = false;
  let cursor: number | null = null;
  let pending: Range | null = null;

  const columns = () => picture?.grid.columns ?? [];
  /** Where a column begins: the measurements stand apart. */
  const x = (column: number) => left + column * cellWidth + gapsBefore(column);
  const gapsBefore = (column: number) => {
    let gaps = 0;
    for (let at = 1; at <= column && at < columns().length; at++) if (columns()[at]!.measurement !== columns()[at - 1]!.measurement) gaps += gap;
    return gaps;
  };
  const redraw = () => {
    if (picture === null || width === 0) return;
    const count = columns().length;
    const gaps = gapsBefore(count - 1);
    cellWidth = Math.min(widest, Math.max(narrowest, Math.floor((width - left - gaps - 2) / Math.max(1, count))));
    const wide = Math.max(left + count * cellWidth + gaps + 2, 120);
    const tall = top + picture.grid.rows * cellHeight + bottom;
    canvas.width = wide * devicePixelRatio;
    canvas.height = tall * devicePixelRatio;
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${tall}px`;
    const context = canvas.getContext("2d");
    if (context) paint(context, picture, x, cellWidth, byBase ? { ...picture, base: pending ?? picture.base } : { ...picture, shown: pending ?? picture.shown }, cursor);
  };
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry?.contentRect.width ?? 0);
    if (now === width || now === 0) return;
    width = now;
    redraw();
  }).observe(element);

  const under = (event: MouseEvent): number | null => {
    if (picture === null) return null;
    const box = canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top - top];
    const row = picture.grid.rows - 1 - Math.floor(py / cellHeight);
    for (let column = 0; column < columns().length; column++) {
      if (px >= x(column) && px < x(column) + cellWidth && row >= 0 && row < picture.grid.rows) return column * picture.grid.rows + row;
    }
    return null;
  };
  const finish = (end: number) => {
    if (begun === null) return;
    const range = rangeOf(begun, end);
    begun = pending = null;
    const isBase = byBase;
    byBase = false;
    events.chosen(range, isBase);
  };
  canvas.addEventListener("pointerdown", (event) => {
    const cell = under(event);
    if (cell === null || event.button !== 0) return;
    if (begun !== null) return finish(cell);
    byBase ||= event.shiftKey;
    begun = cell;
    isDrag = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const cell = under(event);
    events.at(cell, false);
    if (begun === null || cell === null) return;
    isDrag ||= cell !== begun && event.buttons === 1;
    pending = rangeOf(begun, cell);
    redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const cell = under(event);
    // Without a drag the first click is one end, and the next click the other.
    if (isDrag && cell !== null) finish(cell);
    isDrag = false;
  });
  canvas.addEventListener("pointerleave", () => events.at(null, false));
  element.addEventListener("keydown", (event) => {
    if (picture === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const rows = picture.grid.rows;
    const steps: Record<string, number> = { ArrowUp: 1, ArrowDown: -1, ArrowRight: rows, ArrowLeft: -rows };
    const step = steps[event.key];
    const cells = picture.grid.threads.length;
    if (step !== undefined) {
      const next = cursor === null ? picture.shown?.first ?? 0 : cursor + step * (event.shiftKey && Math.abs(step) === 1 ? 5 : 1);
      cursor = Math.max(0, Math.min(cells - 1, next));
      if (begun !== null) pending = rangeOf(begun, cursor);
      events.at(cursor, true);
      redraw();
    } else if ((event.key === "Enter" || event.key === " ") && cursor !== null) {
      if (begun !== null) finish(cursor);
      else begun = cursor;
      redraw();
    } else if (event.key === "Escape") {
      const wasBegun = begun !== null;
      begun = pending = null;
      byBase = false;
      if (wasBegun) redraw();
      else events.clear();
    } else return;
    event.preventDefault();
  });
  element.addEventListener("blur", () => {
    cursor = null;
    redraw();
  });

  return {
    element,
    draw(next) {
      picture = next;
      width = Math.floor(element.clientWidth) || width;
      redraw();
    },
    nextIsBase(yes) {
      byBase = yes;
    },
    where(cell) {
      const rows = picture?.grid.rows ?? 1;
      return { x: x(Math.floor(cell / rows)) + cellWidth / 2, y: top + (rows - 0.5 - (cell % rows)) * cellHeight };
    },
  };
}

function paint(
  context: CanvasRenderingContext2D, { grid, colour, ink }: MapPicture, x: (column: number) => number, cellWidth: number,
  { shown, base }: { shown: Range | null; base: Range | null }, cursor: number | null,
): void {
  context.scale(devicePixelRatio, devicePixelRatio);
  context.font = '10.5px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
  const tall = grid.rows * cellHeight;
  const y = (row: number) => top + (grid.rows - 1 - row) * cellHeight;
  context.fillStyle = ink.muted;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const share of [0, 0.25, 0.5, 0.75, 1]) context.fillText(`${share * 1000}`, left - 6, top + tall - share * tall);
  context.fillText("ms", left - 6, top - 9);
  grid.columns.forEach(({ measurement, second, counts }, column) => {
    const at = x(column);
    for (let row = 0; row < grid.rows; row++) {
      const threads = grid.threads[column * grid.rows + row]!;
      context.fillStyle = threads > 0 ? colour(threads) : counts ? ink.shade : ink.paper;
      context.fillRect(at, y(row), cellWidth - (cellWidth > 5 ? 1 : 0), cellHeight - 0.5);
    }
    // What the analysis cut is there, but pale.
    if (!counts) {
      context.globalAlpha = 0.62;
      context.fillStyle = ink.paper;
      context.fillRect(at, top, cellWidth, tall);
      context.globalAlpha = 1;
    }
    context.fillStyle = ink.muted;
    context.textAlign = "left";
    if (column === 0 || grid.columns[column - 1]!.measurement !== measurement) context.fillText(`repeat ${measurement.repeat + 1}${counts ? "" : ", pale: not counted"}`, at, top - 9);
    const every = [1, 2, 5, 10, 20, 30, 60].find((step) => step * cellWidth >= 18) ?? 120;
    if (second % every === 0) context.fillText(String(second), at, top + tall + 9);
  });
  for (const [range, ink_, dash] of [[base, ink.purple, [4, 3]], [shown, ink.text, []]] as const) {
    if (range === null) continue;
    context.strokeStyle = ink_;
    context.lineWidth = 2;
    context.setLineDash([...dash]);
    for (let column = Math.floor(range.first / grid.rows); column <= Math.floor(range.last / grid.rows); column++) {
      const from = Math.max(0, range.first - column * grid.rows);
      const to = Math.min(grid.rows - 1, range.last - column * grid.rows);
      context.strokeRect(x(column), y(to), cellWidth - 1, (to - from + 1) * cellHeight - 0.5);
    }
    context.setLineDash([]);
  }
  if (cursor !== null) {
    context.strokeStyle = ink.blue;
    context.lineWidth = 2.5;
    context.strokeRect(x(Math.floor(cursor / grid.rows)) - 1, y(cursor % grid.rows) - 1, cellWidth + 1, cellHeight + 2);
  }
}
