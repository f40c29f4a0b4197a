/** What leads from a finding to where it can be seen. */

import { code } from "./codeData.ts";
import type { Finding } from "./data.ts";
import { h } from "./element.ts";
import { packedProfile } from "./flameData.ts";
import { lettersOf } from "./flameLink.ts";

/** The finding's path in the flame graph, and the machine code of its innermost function that has a listing. */
export function findingLinks(finding: Finding): HTMLElement | null {
  const { path, rungs: [from, to] } = finding;
  const innermost = path.at(-1);
  if (innermost === undefined) return null;
  const links = h("p", { class: "finding-links" });
  const add = (part: string, values: Record<string, string>, words: string) => {
    const link = h("a", { href: `#${part}:${new URLSearchParams({ rung: String(to), base: from === to ? "none" : String(from), ...values }).toString()}` }, words);
    links.append(...(links.childElementCount > 0 ? [" · "] : []), link);
  };
  if (packedProfile() !== null) {
    const search = `^${innermost.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`;
    // What the share is a part of says which time the graph has to show, whatever it would show by itself.
    const states = finding.share_of === "cpu_time" || finding.kind === "spin_waiting" ? "cpu.spin" : "lock.io.sleep.other";
    add("flame", { split: "no", states, zoom: `0${lettersOf(path.slice(0, -1))}`, search }, "Show it in the flame graph");
  }
  // Which functions have a listing is known once the listings are unpacked.
  code()?.then((of) => {
    const listed = path.findLast((name) => of.functions.some((one) => one.name === name));
    if (listed !== undefined) add("annotate", { function: listed }, `Machine code of ${listed}`);
  }).catch(() => null);
  return links;
}
