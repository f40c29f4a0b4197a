/** Which functions a search matches, and what part of the time that is. */

import type { Profile } from "./flameData.ts";
import { totals, type Part } from "./flameTree.ts";

export interface Search {
  /** 1 for each function that matches. */
  matches: Uint8Array;
  functions: number;
  /** Whether the words are no regular expression and were searched as they stand. */
  literal: boolean;
}

/** Functions whose name matches, upper and lower case alike; null for no words. */
export function search(profile: Profile, words: string): Search | null {
  if (words === "") return null;
  let literal = false;
  let pattern: RegExp;
  try {
    pattern = new RegExp(words, "i");
  } catch {
    literal = true;
    pattern = new RegExp(words.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "i");
  }
  const matches = Uint8Array.from(profile.functions, (name) => (pattern.test(name) ? 1 : 0));
  return { matches, functions: matches.reduce((sum, one) => sum + one, 0), literal };
}

/** Time in call paths that a matching function is part of, each path once, beside all time. */
export function matchedTime(profile: Profile, parts: Part[], { matches }: Search, side: "base" | "shown"): { matched: number; all: number } {
  const { calls } = profile;
  let [matched, all] = [0, 0];
  for (const part of parts) {
    const times = totals(profile, part[side]);
    for (let node = 0; node < calls.count;) {
      if (calls.parent[node]! < 0) all += times[node]!;
      if (matches[calls.functionOf[node]!]) {
        matched += times[node]!;
        node = calls.end[node]!;
      } else node++;
    }
  }
  return { matched, all };
}
