/** The heat map of a rung, and the flame graph of a stretch of it, as FlameScope has them. */

import type { Report } from "./data.ts";
import { h, s, section, type Child } from "./element.ts";
import { filled, profile, sampledRungs } from "./flame.ts";
import { cutOfRange } from "./flameCut.ts";
import { samplesOf, type Profile } from "./flameData.ts";
import { linkOf, writeLink } from "./flameLink.ts";
import { isOnCpu } from "./flameKey.ts";
import { flameView } from "./flameView.ts";
import { count, counted, number } from "./format.ts";
import { heatCanvas } from "./heatmapCanvas.ts";
import { palette } from "./heatmapColours.ts";
import { gridOf, highest, readRange, writeRange, type Grid, type Range } from "./heatmapGrid.ts";
import { states as stateNames } from "./ledger.ts";
import { ink, onRedraw } from "./theme.ts";

/** The section; nothing where no stack was sampled. */
export function heatmap(_report: Report): HTMLElement | null {
  const ready = profile();
  return ready && filled(section("heatmap", "Heat map: every 20 milliseconds"), ready.then(afterTheNextFrame), map);
}

/** The flame graph above, which is made of the same samples, is on the screen first. */
function afterTheNextFrame<T>(found: T): Promise<T> {
  return new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(found))));
}

function map(profile: Profile): Node[] {
  const rungs = sampledRungs(profile);
  const last = rungs.at(-1);
  if (!last) return [];
  const present = profile.states.filter((_, state) => rungs.some(({ measurements }) => measurements.some(({ starts }) => starts[state + 1]! > starts[state]!)));
  const usual = () => new Set(present.some(isOnCpu) ? present.filter(isOnCpu) : present);
  let [rung, states, grid] = [last, usual(), gridOf(profile, last, usual())];
  let shown: Range | null = null;
  let base: Range | null = null;

  const select = h("select", { id: "heatmap-rung" }, rungs.map((one) => h("option", { value: one.connections ?? "" }, one.connections === null ? "this server" : counted(one.connections, "connection"))));
  const chips = h("div", { class: "flame-states", role: "group", "aria-label": "States of the threads that are counted" });
  const key = h("p", { class: "key" });
  const readout = h("p", { class: "readout heatmap-readout", "aria-hidden": "true" });
  const spoken = h("p", { class: "hidden", "aria-live": "polite" });
  const said = h("p", { class: "notes", id: "heatmap-range", "aria-live": "polite" });
  const compare = h("button", { type: "button", click: () => {
    canvas.nextIsBase(true);
    said.textContent = "Now choose the time range to compare with: drag, or move with the arrow keys and press Enter at both ends.";
    canvas.element.focus();
  } }, "compare with another time range");
  const clear = h("button", { type: "button", click: () => choose(null, null) }, "clear");
  const buttons = h("div", { class: "flame-bar" }, compare, clear);
  const view = flameView(profile, "heatmap-graph", () => [...states], (step) => link(step));
  const graph = h("div", { hidden: true }, said, buttons, view.element);
  const canvas = heatCanvas("heatmap-pane",
    "Heat map: a column for each second, a row for each 20 milliseconds of it. Arrow keys move, Enter marks both ends of a time range, Escape clears.", {
      chosen: (range, isBase) => (isBase && shown ? choose(shown, range) : choose(range, null)),
      clear: () => choose(null, null),
      at: (cell, byKeyboard) => {
        readout.textContent = cell === null ? "" : describe(profile, grid, cell);
        if (byKeyboard) spoken.textContent = readout.textContent;
      },
    });

  // For tests that read what is drawn.
  Object.assign(window, { scaleprofHeatmap: () => ({ threads: [...grid.threads], rows: grid.rows, where: canvas.where }) });

  const link = (step: boolean) => writeLink("heatmap", {
    rung: select.value, range: writeRange(shown), base: writeRange(base),
    count: same(states, usual()) ? "" : [...states].join("."), ...(shown ? view.values() : {}),
  }, step);
  const choose = (range: Range | null, other: Range | null) => {
    [shown, base] = [range, other];
    draw();
    link(true);
  };
  const draw = () => {
    const onCpu = [...states].every(isOnCpu);
    // One scale for all rungs, so that they can be compared.
    const colours = palette(ink(), highest(rungs.map((one) => gridOf(profile, one, states))), onCpu);
    grid = gridOf(profile, rung, states);
    key.replaceChildren(...colours.key.map(([colour, words]) => {
      const swatch = h("i", { class: "flame-swatch" });
      swatch.style.background = colour;
      return h("span", {}, swatch, ` ${words}`);
    }));
    chips.replaceChildren(...present.map(chip));
    canvas.draw({ grid, colour: colours.colour, ink: ink(), shown, base });
    graph.hidden = shown === null;
    if (shown === null) return;
    const cut = (range: Range) => cutOfRange(profile, rung, span(profile, grid, range), range.first, range.last);
    said.textContent = words(profile, grid, shown, base);
    view.show(cut(shown), base && cut(base), "second");
  };
  const chip = (state: string): Node => h("button", {
    type: "button", class: "flame-state", "aria-pressed": String(states.has(state)), "data-state": state,
    click: () => {
      if (!states.delete(state)) states.add(state);
      draw();
      view.choose(states);
      link(false);
      chips.querySelector<HTMLElement>(`[data-state="${state}"]`)?.focus();
    },
  }, s("svg", { viewBox: "0 0 10 10", width: 10, height: 10, class: "bar swatch" }, s("rect", { width: 10, height: 10, class: `state-${state}` })),
  ` ${stateNames.find(([one]) => one === state)?.[1] ?? state}`);

  select.value = String(last.connections ?? "");
  select.addEventListener("change", () => {
    rung = rungs.find((one) => String(one.connections ?? "") === select.value) ?? last;
    choose(null, null);
  });
  const restore = () => {
    const values = linkOf("heatmap");
    if (values === null) return;
    rung = rungs.find((one) => String(one.connections ?? "") === values.get("rung")) ?? last;
    select.value = String(rung.connections ?? "");
    states = values.has("count") ? new Set(values.get("count")!.split(".").filter((state) => present.includes(state))) : usual();
    const cells = gridOf(profile, rung, states).threads.length;
    shown = readRange(values.get("range"), cells);
    base = shown && readRange(values.get("base"), cells);
    draw();
    if (shown) view.restore(values);
    if (location.hash !== "") document.getElementById("heatmap")?.scrollIntoView();
  };
  addEventListener("popstate", restore);
  // A reader who does not come here does not wait for it.
  let isNear = false;
  new IntersectionObserver((entries, observer) => {
    if (isNear || !entries.some((entry) => entry.isIntersecting)) return;
    isNear = true;
    observer.disconnect();
    draw();
  }, { rootMargin: "600px" }).observe(canvas.element);
  onRedraw(() => (isNear || document.documentElement.classList.contains("printing")) && draw());
  queueMicrotask(() => location.hash !== "" && restore());
  const children: Child[] = [
    h("p", { class: "lead" }, "Threads of the connections in the chosen states, per 20 ms. Each wait is drawn at its start; a wait across seconds is drawn in parts, one per second. ",
      "Drag over a time range, or click its two ends, for its flame graph; a second range with Shift is compared with the first."),
    h("div", { class: "flame-bar" }, rungs.length > 1 ? [h("label", { for: select.id }, "Rung"), select] : null, chips),
    thinning(profile), key, canvas.element, readout, spoken, graph,
  ];
  return children.filter((one): one is HTMLElement => one instanceof HTMLElement);
}

/** What is not kept; nothing where every sample is. */
function thinning(profile: Profile): HTMLElement | null {
  const { kept, all } = samplesOf(profile.rungs);
  return kept === all ? null : h("p", { class: "notes", id: "thinning" },
    `To keep the page small, ${count(kept)} of ${count(all)} samples are kept for stretches of the heat map. They were drawn evenly, each with a chance in proportion to its time, so that nothing is favoured. `,
    "The heat map itself and the flame graph of a whole rung are of all samples; intervals there are of the heavy call paths and of some light ones that stand for the others, and so rather too wide than too narrow.");
}

/** Where a cell stands: repeat 1, second 3, 420 to 440 ms. */
function place(profile: Profile, { columns, rows }: Grid, cell: number): { repeat: number; milliseconds: number } {
  const column = columns[Math.floor(cell / rows)];
  return { repeat: (column?.measurement.repeat ?? 0) + 1, milliseconds: (column?.second ?? 0) * 1000 + (cell % rows) * profile.cellSeconds * 1000 };
}

function describe(profile: Profile, grid: Grid, cell: number): string {
  const { repeat, milliseconds } = place(profile, grid, cell);
  const from = milliseconds % 1000;
  return `repeat ${repeat}, second ${Math.floor(milliseconds / 1000)}, ${from} to ${from + profile.cellSeconds * 1000} ms: ${number(grid.threads[cell])} threads (${counted(grid.samples[cell] ?? 0, "sample")})`;
}

/** A stretch in words: 2.34 to 2.86 s of repeat 1. */
function span(profile: Profile, grid: Grid, range: Range): string {
  const [from, to] = [place(profile, grid, range.first), place(profile, grid, range.last)];
  const end = (to.milliseconds / 1000 + profile.cellSeconds).toFixed(2);
  const start = (from.milliseconds / 1000).toFixed(2);
  return from.repeat === to.repeat ? `${start} to ${end} s of repeat ${from.repeat}` : `${start} s of repeat ${from.repeat} to ${end} s of repeat ${to.repeat}`;
}

function words(profile: Profile, grid: Grid, shown: Range, base: Range | null): string {
  const about = (range: Range) => {
    let [threads, samples, kept] = [0, 0, 0];
    for (let cell = range.first; cell <= range.last; cell++) {
      threads += grid.threads[cell]!;
      samples += grid.samples[cell]!;
      kept += grid.kept[cell]!;
    }
    const seconds = (range.last - range.first + 1) * profile.cellSeconds;
    return `${span(profile, grid, range)}: ${number(threads * profile.cellSeconds)} thread-seconds in ${seconds.toFixed(2)} s, ${number(threads * profile.cellSeconds / seconds)} threads on average, ${kept === samples ? `${count(samples)} samples` : `${count(kept)} of ${count(samples)} samples are kept`}`;
  };
  return `${about(shown)}${base ? `. Compared with ${about(base)}` : ""}. Of so short a time there are no intervals: colours may be chance.`;
}

function same(one: Set<string>, other: Set<string>): boolean {
  return one.size === other.size && [...one].every((value) => other.has(value));
}
