/** Puts the comparison of two runs together: the parts of the report, of two runs. */

import { isWatched, readDiff, type Diff } from "./diffData.ts";
import { circumstances } from "./diffCircumstances.ts";
import { curves } from "./diffCurves.ts";
import { diffFlame } from "./diffFlame.ts";
import { head } from "./diffHead.ts";
import { changes } from "./diffPaths.ts";
import { figures, kindsOfCode, told } from "./diffTables.ts";
import { bothStates } from "./diffStates.ts";
import { h } from "./element.ts";
import { startTheme, themeButton } from "./theme.ts";

type Part = (diff: Diff) => HTMLElement | null;

/** A part that cannot be shown must not take the others with it. */
function part(name: string, make: Part, diff: Diff): HTMLElement | null {
  try {
    return make(diff);
  } catch (problem) {
    console.error(name, problem);
    return h("section", { class: "incomplete" }, `The part “${name}” could not be shown: ${problem instanceof Error ? problem.message : String(problem)}`);
  }
}

function build(): Node[] {
  const diff = readDiff();
  const ofLoads: [string, Part][] = isWatched(diff) ? [] : [["Throughput", curves]];
  const makers: [string, Part][] = [
    ...ofLoads, ["Changes", changes], ["Kinds of code", kindsOfCode], ["Figures", figures], ["States", bothStates], ["Flame graph", diffFlame], ["Explained", told], ["Not the same", circumstances],
  ];
  const sections = makers.flatMap(([name, make]) => {
    const element = part(name, make, diff);
    return element === null ? [] : [{ name, element }];
  });
  // What a reader wants to see first stands side by side where there is room: the curves, and what changed or stands for that.
  const first = sections.slice(0, 2).map(({ element }) => element);
  const links = sections.map(({ name, element }) => h("a", { href: `#${element.id}` }, name));
  return [
    h("div", { class: "top" }, h("span", { class: "brand" }, "scaleprof diff"), h("nav", { "aria-label": "Parts of the comparison" }, links), themeButton()),
    h("main", { id: "report", tabindex: "-1" }, part("head", head, diff), h("div", { class: "first-screen" }, first), sections.slice(2).map(({ element }) => element),
      h("p", { class: "lead made-by" }, `Written by scaleprof ${diff.scaleprof}. This page is one file and asks the network for nothing.`)),
  ];
}

startTheme();
const page = document.getElementById("page");
try {
  page?.replaceChildren(...build());
} catch (problem) {
  page?.replaceChildren(h("main", {}, h("h1", {}, "This comparison cannot be shown"), h("p", {}, problem instanceof Error ? problem.message : String(problem))));
}
