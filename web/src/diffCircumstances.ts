/** What is not the same in both runs beside the figures, and what each run warns of or lacks. */

import { folded } from "./chart.ts";
import { called, isWatched, type Diff, type Difference, type SettingChange } from "./diffData.ts";
import { h, section, type Child } from "./element.ts";
import { counted } from "./format.ts";
import { table } from "./table.ts";

const effects: Record<Difference["effect"], string> = {
  intended: "", confounds: "part of what changed may be due to it", incomparable: "a transaction is not the same in both",
};

/** The section. */
export function circumstances(diff: Diff): HTMLElement {
  const { comparison: { differences, settings }, runs } = diff;
  const both = settings.filter(({ a, b }) => a !== null && b !== null);
  const oneSided = settings.filter(({ a, b }) => a === null || b === null);
  return section("circumstances", "What is not the same",
    differences.length > 0 ? table("Server, machine and load: what is not the same", [
      { heading: "what", words: true, cell: (one) => one.what },
      { heading: "A", words: true, cell: (one) => value(one.a) },
      { heading: "B", words: true, cell: (one) => value(one.b) },
      { heading: "", words: true, cell: (one) => ({ text: one.effect === "incomparable" && isWatched(diff) ? "the load is not the same in both" : effects[one.effect], mark: one.effect === "intended" ? "faint" : "doubtful" }) },
    ], differences) : h("p", {}, "Server, machine and load are the same in both, as far as is known."),
    h("h3", {}, "Settings"),
    both.length > 0 ? h("div", { class: "settings-changed" }, settingsTable("Settings with two values", both))
      : h("p", {}, settings.length > 0 ? "Those that both have are the same." : "No setting differs, as far as they are known."),
    oneSided.length > 0 ? folded(`${counted(oneSided.length, "setting")} that only one of them has`, () => settingsTable("Settings that only one run has", oneSided)) : null,
    ofEach(diff, "warned of", runs.map((run) => run.warnings)),
    ofEach(diff, "could not measure", runs.map((run) => run.missing.map(({ figure, reason }) => `${figure}: ${reason}`))));
}

/** Lines of both runs, those that are the same only once. */
function ofEach(diff: Diff, did: string, [ofA = [], ofB = []]: string[][]): Child {
  const both = ofA.filter((line) => ofB.includes(line));
  const alone = (lines: string[]) => lines.filter((line) => !both.includes(line));
  return [lists(`What both runs ${did}`, both), lists(`What ${called(diff, 0)} ${did}`, alone(ofA)), lists(`What ${called(diff, 1)} ${did}`, alone(ofB))];
}

function settingsTable(caption: string, rows: SettingChange[]): HTMLElement {
  return table(caption, [
    { heading: "name", words: true, cell: (one) => one.name },
    { heading: "A", words: true, cell: (one) => value(one.a) },
    { heading: "B", words: true, cell: (one) => value(one.b) },
  ], rows);
}

function value(text: string | null): Child {
  return text === "" ? "(empty)" : text ?? "–";
}

function lists(title: string, lines: string[]): Child {
  return lines.length > 0 ? [h("h3", {}, title), h("ul", { class: "notes" }, lines.map((line) => h("li", {}, line)))] : null;
}
