/** Axes and scales that the charts share. */

import type uPlot from "uplot";
import { amount, count, tick } from "./format.ts";
import type { Ink } from "./theme.ts";

const font = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** The font of marks that are drawn by hand, in canvas pixels. */
export function canvasFont(ratio: number, weight = "normal"): string {
  return `${weight} ${font.replace("11px", `${11 * ratio}px`)}`;
}

function base(ink: Ink): uPlot.Axis {
  return { font, labelFont: font, stroke: ink.muted, grid: { stroke: ink.rule, width: 1 }, ticks: { show: false }, gap: 6 };
}

/** Powers of two from the first below the least to the last above the greatest. */
function powersOfTwo(least: number, greatest: number): number[] {
  const powers: number[] = [];
  for (let at = 2 ** Math.ceil(Math.log2(least)); at <= greatest; at *= 2) powers.push(at);
  return powers;
}

/** The axis of connections: every doubling has the same width. */
export function connectionsAxis(ink: Ink): uPlot.Axis {
  return {
    ...base(ink),
    splits: (_u, _axis, least, greatest) => powersOfTwo(least, greatest),
    filter: (_u, splits) => splits,
    values: (u, splits) => {
      const room = Math.max(1, Math.ceil((splits.length * 34) / Math.max(1, u.bbox.width / 2)));
      return splits.map((at, place) => ((splits.length - 1 - place) % room === 0 ? count(at) : ""));
    },
    size: 24,
    label: "connections",
    labelSize: 16,
    labelGap: 0,
  };
}

/** Its scale, with a margin on both sides. */
export function connectionsScale(least: number, greatest: number): uPlot.Scale {
  const margin = least === greatest ? 2 : 1.25;
  return { time: false, distr: 3, log: 2, range: [least / margin, greatest * margin] };
}

/** An axis of amounts. */
export function amountAxis(ink: Ink, show: (value: number) => string = amount, size = 52): uPlot.Axis {
  return { ...base(ink), size, values: (_u, splits) => splits.map((at) => (at === null ? "" : tick(show(at)))) };
}

/** A scale that starts at 0 and leaves room above the greatest value. */
export function fromZero(greatest: number, room = 1.1): uPlot.Scale {
  return { range: [0, greatest > 0 ? greatest * room : 1] };
}

/** An axis of amounts on a log scale: marks at 1, 2 and 5 of each power of ten, or fewer where there are many. */
export function logAxis(ink: Ink, show: (value: number) => string): uPlot.Axis {
  return {
    ...base(ink),
    size: 58,
    splits: (_u, _axis, least, greatest) => {
      const decades = Math.log10(greatest / least);
      const steps = decades > 3 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
      const marks: number[] = [];
      for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(greatest)); power++) {
        for (const step of steps) {
          const at = step * 10 ** power;
          if (at >= least && at <= greatest) marks.push(at);
        }
      }
      return marks;
    },
    filter: (_u, splits) => splits,
    values: (_u, splits) => splits.map((at) => tick(show(at))),
  };
}

/** The pointer: a line across, no zoom, what is near in words below. */
export const pointer: uPlot.Cursor = { y: false, drag: { x: false, y: false }, points: { size: 7 } };
