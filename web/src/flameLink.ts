/** The part of the address that says what is shown, so that every view has a link of its own. */

import { numberOf } from "./flameColours.ts";
import { pathTo } from "./flameLayout.ts";
import { nameOf, type FrameTree } from "./flameTree.ts";
import type { Profile } from "./flameData.ts";

/**
 * What the address says of a part: `#flame:view=callers&search=…` has values for `flame`. Without a `#` it says that all is
 * as at first; null where it is about something else.
 */
export function linkOf(part: string): URLSearchParams | null {
  if (location.hash === "") return new URLSearchParams();
  return location.hash.startsWith(`#${part}:`) ? new URLSearchParams(location.hash.slice(part.length + 2)) : null;
}

/** Writes it into the address bar; `step` makes the browser's way back lead to what was shown before. */
export function writeLink(part: string, values: Record<string, string>, step: boolean): void {
  const kept = Object.entries(values).filter(([, value]) => value !== "");
  const hash = `#${part}:${new URLSearchParams(kept).toString()}`;
  if (hash === location.hash) return;
  try {
    if (step) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
  } catch {
    // Browsers that allow no address to a page from a file: the view works, only its link is missing.
  }
}

/** A frame by four letters for each function on its path: short, and the same in another report of the same server. */
export function pathLetters(profile: Profile, tree: FrameTree, frame: number): string {
  return pathTo(tree, frame).slice(1).map((at) => letters(nameOf(profile, tree.label[at]!))).join("");
}

/** The same for functions by their names, the outermost first. */
export function lettersOf(functions: string[]): string {
  return functions.map(letters).join("");
}

/** The frame at such a path, or as far on it as there are frames, and whether that is all of it. */
export function frameAt(profile: Profile, tree: FrameTree, path: string): { frame: number; whole: boolean } {
  let frame = 0;
  for (let at = 0; at + 4 <= path.length; at += 4) {
    const wanted = path.slice(at, at + 4);
    let child = frame + 1;
    while (child < tree.end[frame]! && letters(nameOf(profile, tree.label[child]!)) !== wanted) child = tree.end[child]!;
    if (child >= tree.end[frame]!) return { frame, whole: false };
    frame = child;
  }
  return { frame, whole: true };
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

function letters(name: string): string {
  const number = numberOf(name);
  return [0, 6, 12, 18].map((shift) => alphabet[(number >>> shift) & 63]).join("");
}
