/** What is drawn on a chart besides its curves: shaded parts, bars of intervals, labels at the ends of lines. */

import uPlot from "uplot";
import { canvasFont } from "./axes.ts";
import type { Ink } from "./theme.ts";

type Hook = (u: uPlot) => void;

/** Draws within the plotting area only. */
function clipped(u: uPlot, draw: (context: CanvasRenderingContext2D, ratio: number) => void): void {
  const { left, top, width, height } = u.bbox;
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(left, top, width, height);
  u.ctx.clip();
  draw(u.ctx, uPlot.pxRatio);
  u.ctx.restore();
}

/** Shades the plot from one x to another. */
export function shade(from: number, to: number, colour: string): Hook {
  return (u) => clipped(u, (context) => {
    const left = u.valToPos(from, "x", true);
    context.fillStyle = colour;
    context.fillRect(left, u.bbox.top, u.valToPos(to, "x", true) - left, u.bbox.height);
  });
}

/** A line upwards at x with words at its top. */
export function upright(x: number, words: string, colour: string, side: "left" | "right" = "right", row = 0): Hook {
  return (u) => clipped(u, (context, ratio) => {
    const at = Math.round(u.valToPos(x, "x", true)) + 0.5;
    context.strokeStyle = colour;
    context.lineWidth = ratio;
    context.setLineDash([4 * ratio, 3 * ratio]);
    context.beginPath();
    context.moveTo(at, u.bbox.top);
    context.lineTo(at, u.bbox.top + u.bbox.height);
    context.stroke();
    context.fillStyle = colour;
    context.font = canvasFont(ratio);
    // Near the edge of the plot the words stand on the other side.
    const room = u.bbox.left + u.bbox.width - at - 5 * ratio;
    const toTheRight = side === "right" && context.measureText(words).width <= room;
    context.textAlign = toTheRight ? "left" : "right";
    context.textBaseline = "top";
    context.fillText(words, at + (toTheRight ? 5 : -5) * ratio, u.bbox.top + (3 + row * 14) * ratio);
  });
}

/** Words at the top of the plot, centred between two x. */
export function banner(from: number, to: number, words: string, colour: string, row = 0): Hook {
  return (u) => clipped(u, (context, ratio) => {
    context.fillStyle = colour;
    context.font = canvasFont(ratio);
    context.textAlign = "center";
    context.textBaseline = "top";
    const middle = (u.valToPos(from, "x", true) + u.valToPos(to, "x", true)) / 2;
    context.fillText(words, middle, u.bbox.top + (3 + row * 14) * ratio);
  });
}

/** A line through points of the x and y scales that is no series of the data. */
export function path(points: [number, number][], colour: string, dash: number[], width = 1.25): Hook {
  return (u) => clipped(u, (context, ratio) => {
    context.strokeStyle = colour;
    context.lineWidth = width * ratio;
    context.setLineDash(dash.map((part) => part * ratio));
    context.beginPath();
    points.forEach(([x, y], place) => {
      const at = [u.valToPos(x, "x", true), u.valToPos(y, "y", true)] as const;
      if (place === 0) context.moveTo(...at);
      else context.lineTo(...at);
    });
    context.stroke();
  });
}

/** Bars of intervals with short ends. */
export function intervals(of: [x: number, low: number, high: number][], colour: string): Hook {
  return (u) => clipped(u, (context, ratio) => {
    context.strokeStyle = colour;
    context.lineWidth = 1.25 * ratio;
    for (const [x, low, high] of of) {
      const at = u.valToPos(x, "x", true);
      const [bottom, top] = [u.valToPos(low, "y", true), u.valToPos(high, "y", true)];
      context.beginPath();
      context.moveTo(at, bottom);
      context.lineTo(at, top);
      for (const end of [bottom, top]) {
        context.moveTo(at - 4 * ratio, end);
        context.lineTo(at + 4 * ratio, end);
      }
      context.stroke();
    }
  });
}

/** The shape of a point. */
export type Shape = "dot" | "ring" | "triangle" | "square" | "speck";

/** Draws points of that shape. Open shapes are filled with the colour of the paper. */
export function points(at: [x: number, y: number, shape: Shape][], colour: string, paper: string): Hook {
  return (u) => clipped(u, (context, ratio) => {
    for (const [x, y, shape] of at) {
      const [left, top] = [u.valToPos(x, "x", true), u.valToPos(y, "y", true)];
      const size = (shape === "speck" ? 1.6 : shape === "dot" || shape === "ring" ? 3.6 : 5) * ratio;
      context.beginPath();
      if (shape === "triangle") {
        context.moveTo(left, top - size);
        context.lineTo(left + size, top + size * 0.8);
        context.lineTo(left - size, top + size * 0.8);
        context.closePath();
      } else if (shape === "square") context.rect(left - size * 0.85, top - size * 0.85, size * 1.7, size * 1.7);
      else context.arc(left, top, size, 0, 2 * Math.PI);
      context.fillStyle = shape === "dot" || shape === "speck" ? colour : paper;
      context.fill();
      if (shape === "dot" || shape === "speck") continue;
      context.strokeStyle = colour;
      context.lineWidth = 1.75 * ratio;
      context.stroke();
    }
  });
}

/** Names the lines where they end, to the right of the plot, without one name on another. */
export function endLabels(labels: { series: number; words: string; colour: string }[], ink: Ink): Hook {
  return (u) => {
    const ratio = uPlot.pxRatio;
    const placed = labels.flatMap(({ series, words, colour }) => {
      const values = u.data[series] ?? [];
      let last = values.length - 1;
      while (last >= 0 && (values[last] === null || values[last] === undefined)) last--;
      const value = values[last];
      return value === null || value === undefined ? [] : [{ words, colour, top: u.valToPos(value, "y", true) }];
    }).sort((a, b) => a.top - b.top);
    const step = 13 * ratio;
    placed.forEach((label, at) => {
      const above = placed[at - 1];
      if (above && label.top < above.top + step) label.top = above.top + step;
    });
    const over = (placed.at(-1)?.top ?? 0) - (u.bbox.top + u.bbox.height - 4 * ratio);
    if (over > 0) for (const label of placed) label.top -= over;
    u.ctx.save();
    u.ctx.font = canvasFont(ratio);
    u.ctx.textBaseline = "middle";
    u.ctx.textAlign = "left";
    for (const { words, colour, top } of placed) {
      u.ctx.fillStyle = colour || ink.text;
      u.ctx.fillText(words, u.bbox.left + u.bbox.width + 6 * ratio, top);
    }
    u.ctx.restore();
  };
}

/** Names a line on the line itself, above its last point. */
export function nameInside(series: number, words: string, colour: string): Hook {
  return (u) => clipped(u, (context, ratio) => {
    const values = u.data[series] ?? [];
    const last = values.length - 1;
    const [x, y] = [u.data[0][last], values[last]];
    if (x === undefined || y === null || y === undefined) return;
    context.font = canvasFont(ratio);
    context.fillStyle = colour;
    context.textAlign = "right";
    context.textBaseline = "bottom";
    context.fillText(words, u.valToPos(x, "x", true), u.valToPos(y, "y", true) - 4 * ratio);
  });
}
