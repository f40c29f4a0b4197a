/** Colours of the heat map. */

import { mix } from "./flameColours.ts";
import type { Ink } from "./theme.ts";

/** One thread, with room for the weights of samples to differ a little. */
const oneThread = 1.05;

/** A colour for an amount of threads, and what to say of it. */
export interface Palette {
  colour(threads: number): string;
  key: [string, string][];
}

/**
 * For time on a CPU as FlameScope's enhanced palette: up to one thread is blue, more is red, so that phases in which only
 * one thread runs stand out. For waits, of which there are any number, from pale to red by the square root.
 */
export function palette(ink: Ink, highest: number, onCpu: boolean): Palette {
  const red = (share: number) => mix(mix(ink.paper, ink.vermilion, 0.22), ink.vermilion, Math.max(0, Math.min(1, share)));
  const say = (threads: number) => (threads < 9.95 ? threads.toFixed(1).replace(".0", "") : threads.toFixed(0));
  if (onCpu) {
    const blue = (threads: number) => mix(ink.paper, ink.blue, 0.25 + 0.6 * Math.min(1, threads));
    const over = (threads: number) => red((threads - 1) / Math.max(0.5, highest - 1));
    return {
      colour: (threads) => (threads <= 0 ? ink.paper : threads <= oneThread ? blue(threads) : over(threads)),
      key: [[ink.shade, "no thread seen"], [blue(0.5), "half"], [blue(1), "one thread"],
        ...(highest <= oneThread ? [] : [[over(1 + (highest - 1) / 3), say(1 + (highest - 1) / 3)], [over(highest), `${say(highest)} threads and more`]] as [string, string][])],
    };
  }
  const shade = (threads: number) => (threads <= 0 ? ink.paper : red(Math.sqrt(threads / highest)));
  return {
    colour: shade,
    key: [[ink.shade, "none"], [shade(highest / 16), say(highest / 16)], [shade(highest / 4), say(highest / 4)], [shade(highest), `${say(highest)} threads and more`]],
  };
}
