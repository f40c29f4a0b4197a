/** The flame graph of one run at a rung, coloured by growth since the other run's. */

import { called, firstRung, isWatched, type Diff, type PathChange } from "./diffData.ts";
import { whyNoStacks } from "./diffMissing.ts";
import { h, section } from "./element.ts";
import { filled, profile as unpacked, sampledRungs, usualStates } from "./flame.ts";
import type { Profile } from "./flameData.ts";
import { lettersOf } from "./flameLink.ts";
import { flamePair, type Choosable, type Pair } from "./flamePair.ts";
import { count, counted } from "./format.ts";
import { rungPicker } from "./rungPicker.ts";

type Side = "a" | "b";
const sides: Side[] = ["a", "b"];

/** How links name a rung of a run: `b512`. */
function keyOf(side: Side, connections: number | null): string {
  return `${side}${connections ?? ""}`;
}

/** The section; where nothing was sampled it says why. */
export function diffFlame(diff: Diff): HTMLElement | null {
  const ready = unpacked();
  const [ofA, ofB] = diff.runs.map((run) => run.sampled.length > 0);
  const title = !ofA || !ofB ? `Flame graph of ${ofB ? "B" : "A"}` : diff.paired ? "Flame graph of B, coloured by growth since A" : "Flame graphs of both runs";
  const lacking = ([0, 1] as const).filter((side) => diff.runs[side].sampled.length === 0).map((side) => h("p", { class: "notes lacking" }, whyNoStacks(diff, side)));
  if (ready === null) return section("flame", "Flame graph", ...lacking);
  return filled(section("flame", title, ...lacking), ready, (found) => graph(found, diff));
}

function graph(profile: Profile, diff: Diff): Node[] {
  const sampled = sampledRungs(profile);
  const choices = sides.flatMap((side, at): Choosable[] => sampled.filter((rung) => rung.side === side).map((rung) => ({
    key: keyOf(side, rung.connections), words: rung.connections === null ? "AB"[at] ?? "" : `${counted(rung.connections, "connection")} in ${"AB"[at]}`, heading: called(diff, at as 0 | 1), rung,
  })));
  // Servers that were only watched have nothing to choose a rung from.
  const has = (side: Side, connections: number) => choices.some((one) => one.key === keyOf(side, connections));
  const common = diff.paired ? diff.comparison.rungs.map((rung) => rung.connections).filter((one) => has("a", one) && has("b", one)) : [];
  const first = firstPair(diff, choices, common);
  const watched = isWatched(diff);
  const rungOf = (key: string) => diff.comparison.rungs.find((rung) => watched || key === keyOf("a", rung.connections) || key === keyOf("b", rung.connections));
  const busy = rungOf(first.shown)?.busy ?? false;
  const alike = h("p", { class: "notes" });
  const picker = rungPicker(common, common.find((one) => first.shown === keyOf("b", one)) ?? common.at(-1) ?? 0, (rung) => pair.choose({ shown: keyOf("b", rung), base: keyOf("a", rung) }), false);
  const pair = flamePair(profile, choices, diff.paired ? choices : [], first, usualStates(busy), (now) => {
    const same = isSameRung(now) ? rungOf(now.shown) : undefined;
    picker.mark(same?.connections ?? null);
    alike.textContent = same && Math.abs(same.uniform_slowdown - 1) > 0.02
      ? `Uniform slowdown: all functions take ${same.uniform_slowdown.toFixed(2)} times as long in B${watched ? "" : ` at ${counted(same.connections, "connection")}`}. The list of call paths excludes it, these colours include it.` : "";
    alike.hidden = alike.textContent === "";
  });
  const { per } = diff.comparison;
  const what = diff.runs.some((run) => run.sampled.length === 0)
    ? `Width is time per ${per} of the threads that serve the load; colour is what became of it since ${watched ? "the other run" : "another rung, where one is chosen"}.`
    : diff.paired
    ? `Width is time per ${per} of the threads that serve the load; colour is what became of it since ${watched ? "A" : "the run and rung that it is compared with"}. What only A has takes no width in B: it is listed below the graph, and “swap” shows it.`
    : `Width is time per ${per} of the threads that serve the load. ${diff.comparison.unpaired}, so growth from one to the other is unknown: choose a run${watched ? "" : " and a rung"}.`;
  const apart = !watched && diff.paired && common.length === 0 && first.base !== "" ? " No rung was sampled in both runs, so other numbers of connections are compared." : "";
  const onCpu = busy ? ` CPUs were busy at ${count(rungOf(first.shown)?.connections ?? 0)} connections in both: waiting loses nothing then, so only time on a CPU is shown at first.` : "";
  return [h("p", { class: "lead" }, what + apart + onCpu), ...(common.length > 0 ? [picker.element] : []), ...pair.elements, alike];
}

/** B at the rung that the changes are told of, against A there; else what there is. */
function firstPair(diff: Diff, choices: Choosable[], common: number[]): Pair {
  const wanted = firstRung(diff);
  const rung = common.includes(wanted) ? wanted : common.at(-1);
  if (rung !== undefined) return { shown: keyOf("b", rung), base: keyOf("a", rung) };
  const last = (side: Side) => choices.findLast((one) => one.rung.side === side)?.key ?? "";
  return { shown: last("b") || last("a"), base: diff.paired && last("b") !== "" ? last("a") : "" };
}

/** Whether A and B are shown at one rung, whichever way round. */
function isSameRung({ shown, base }: Pair): boolean {
  return base !== "" && shown.slice(1) === base.slice(1) && shown[0] !== base[0];
}

/** The address that shows a call path in the graph. What is gone has a width in A only. */
export function flameAddress(diff: Diff, { connections, course, path, state }: PathChange): string {
  const rung = isWatched(diff) ? null : connections;
  const [shown, base]: [Side, Side] = course === "gone" ? ["a", "b"] : ["b", "a"];
  const innermost = path.at(-1) ?? "";
  const values = {
    rung: keyOf(shown, rung), base: keyOf(base, rung), split: "no", states: isOnCpuAccount(state) ? "cpu.spin" : state,
    zoom: `0${lettersOf(path.slice(0, -1))}`, search: `^${innermost.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`,
  };
  return `#flame:${new URLSearchParams(values).toString()}`;
}

/** `cpu` and `spin` are one account of a comparison. */
function isOnCpuAccount(state: string): boolean {
  return ["cpu", "spin", "cpu and spin"].includes(state);
}
