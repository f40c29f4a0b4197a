/** The call paths whose cost changed, rung by rung, the gravest first. */

import { firstRung, isWatched, signedMicros, type Course, type Diff, type PathChange, type RungChange } from "./diffData.ts";
import { flameAddress } from "./diffFlame.ts";
import { whyNoStacks } from "./diffMissing.ts";
import { h, section, type Child } from "./element.ts";
import type { Estimate } from "./data.ts";
import { packedProfile } from "./flameData.ts";
import { stateName } from "./flameKey.ts";
import { linkOf, writeLink } from "./flameLink.ts";
import { counted, isKnown, percent } from "./format.ts";
import { micros } from "./ledger.ts";
import { innermost, unfolding } from "./paths.ts";
import { reveal } from "./reveal.ts";
import { rungPicker } from "./rungPicker.ts";

/** Call paths of a rung that are shown before the reader asks for more. */
const most = 8;

/** How a path changed: the same words as in the terminal. */
const courses: Record<Course, string> = {
  new: "new, only B has it", gone: "gone, only A has it", scales_worse: "scales worse", scales_better: "scales better",
  slower_everywhere: "slower everywhere", faster_everywhere: "faster everywhere", slower: "slower here", faster: "faster here",
};

/** Whether the same work was done is not known of servers that were only watched. */
function isOfWork(course: Course): boolean {
  return course === "slower" || course === "faster";
}

/** The section, with a choice of rung; nothing where kinds of code stand for call paths. */
export function changes(diff: Diff): HTMLElement | null {
  const { comparison: { rungs } } = diff;
  if (rungs.some((rung) => rung.code_kinds.length > 0)) return null;
  const title = "Call paths that changed";
  const why = whyNoPaths(diff);
  if (why !== null) return section("changes", title, why);
  const first = firstRung(diff);
  const body = h("div", { "aria-live": "polite" });
  const show = (connections: number) => {
    const rung = rungs.find((one) => one.connections === connections);
    body.replaceChildren(...(rung ? ofRung(diff, rung) : []));
  };
  const picker = rungPicker(rungs.map((rung) => rung.connections), first, (connections) => {
    show(connections);
    writeLink("changes", { rung: String(connections) }, true);
  });
  const element = section("changes", title, isWatched(diff) ? null : picker.element, body);
  const restore = () => {
    const values = linkOf("changes");
    if (values === null) return;
    const wanted = Number(values.get("rung"));
    const rung = rungs.some((one) => one.connections === wanted) ? wanted : first;
    picker.mark(rung);
    show(rung);
    if (location.hash !== "") reveal(element);
  };
  addEventListener("popstate", restore);
  show(first);
  queueMicrotask(() => location.hash !== "" && restore());
  return element;
}

/** Why no path can be listed of any rung; null where they can. */
function whyNoPaths(diff: Diff): HTMLElement | null {
  if (!diff.paired) {
    return h("p", { class: "lead" }, `${diff.comparison.unpaired}, so call paths cannot be paired; and without call paths in both there are no kinds of code to compare.`);
  }
  const lacking = ([0, 1] as const).filter((side) => diff.runs[side].sampled.length === 0);
  return lacking.length === 0 ? null : h("div", {}, lacking.map((side) => h("p", { class: "lead" }, whyNoStacks(diff, side))));
}

function ofRung(diff: Diff, rung: RungChange): Node[] {
  const { comparison, connections: asked } = diff;
  const [measurements, unless] = isWatched(diff) ? ["recordings", ""] : ["measurements", ` at ${counted(rung.connections, "connection")}`];
  const here = comparison.paths.filter((path) => path.connections === rung.connections);
  const nodes: Node[] = [];
  if (here.length === 0) {
    const unseen = rung.stacks.flatMap((sampled, side) => (sampled ? [] : [`${"AB"[side]}`]));
    const why = unseen.length > 0 ? `No stack was sampled${unless} in ${unseen.join(" and in ")}, so no call path can be compared.`
      : asked !== null && asked !== rung.connections ? `This page has only ${counted(asked, "connection")} (--rung ${asked}).`
      : Math.min(...rung.measurements) < 2 ? `No call path changed much${unless}; too few ${measurements} for the significance of small changes.`
      : `No call path changed significantly${unless}.`;
    return [h("p", { class: "lead" }, why)];
  }
  nodes.push(h("p", { class: "notes" }, here.some((path) => path.p !== null) ? `These call paths changed significantly${unless}. No time is counted twice.`
    : `The largest changes${unless}; too few ${measurements} for significance.`));
  if (Math.abs(rung.uniform_slowdown - 1) > 0.02) {
    nodes.push(h("p", { class: "notes" }, `Uniform slowdown: all functions take ${rung.uniform_slowdown.toFixed(2)} times as long in B. The figures below exclude it.`));
  }
  const entries = here.map((path, place) => entry(diff, path, rung, place));
  nodes.push(h("ol", { class: "findings changes" }, entries.slice(0, most)));
  if (entries.length > most) {
    nodes.push(h("details", { class: "folded" }, h("summary", {}, `${entries.length - most} more`), h("ol", { class: "findings changes", start: most + 1 }, entries.slice(most))));
  }
  return nodes;
}

function entry(diff: Diff, change: PathChange, rung: RungChange, place: number): HTMLElement {
  const { base_rung: base } = diff.comparison;
  const of = isWatched(diff) ? "of its threads’ time" : `of a transaction’s ${rung.busy ? "CPU time" : "time"}`;
  const blocked = !change.state.includes("cpu") && !change.state.includes("spin");
  const { a, b } = change.seconds_per_txn;
  const beyond = change.beyond_base && base !== null
    ? `; ${signedMicros(change.beyond_base.value)}\u202fµs${limits(change.beyond_base)} beyond the change at ${counted(base, "connection")}` : "";
  const links: Child[] = packedProfile() === null ? [] : [h("a", { href: flameAddress(diff, change) }, "Show it in the flame graph")];
  return h("li", { "data-place": place },
    h("div", { class: "change-path" }, unfolding(change.path, innermost(change.path, blocked)), h("span", { class: "faint" }, `, ${change.state.split(" and ").map(stateName).join(" and ")}`)),
    h("p", { class: "share" }, h("span", { class: `course ${change.change.value > 0 ? "worse" : "better"}` }, isWatched(diff) && isOfWork(change.course) ? `takes ${change.course === "slower" ? "more" : "less"} of a second` : courses[change.course]), " ",
      h("strong", {}, `${signedMicros(change.change.value)}\u202fµs`), `${limits(change.change)}, ${change.share > 0 ? "+" : "−"}${percent(Math.abs(change.share))} ${of}`),
    h("p", { class: "finding-links" }, h("span", { class: "nowrap" }, `${micros(a)}\u202fµs in A → ${micros(b)}\u202fµs in B`), beyond, links.length > 0 ? [" · ", links] : null));
}

/** Such as ` (+3.1 to +4.2)`. */
function limits({ low, high }: Estimate): string {
  return isKnown(low) && isKnown(high) ? ` (${signedMicros(low)} to ${signedMicros(high)})` : "";
}
