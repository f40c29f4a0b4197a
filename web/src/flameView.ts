/** A flame graph with its controls: states, views, search, zoom. */

import { h } from "./element.ts";
import { atFirst, choiceOf, valuesOf, type Choice, type View } from "./flameChoice.ts";
import type { Cut } from "./flameCut.ts";
import { flameInk, growth, growthColours, nameColours } from "./flameColours.ts";
import type { Profile } from "./flameData.ts";
import { halves, type Membership } from "./flameIntervals.ts";
import { growthKey, isOnCpu, nameKey, stateChip, stateName, toggle } from "./flameKey.ts";
import type { Layout } from "./flameLayout.ts";
import { frameAt, pathLetters } from "./flameLink.ts";
import { around, fromTheLeaves } from "./flameMerge.ts";
import { pane, type Pane, type Picture } from "./flamePane.ts";
import { flameTables } from "./flameTables.ts";
import { flameTip } from "./flameTip.ts";
import { matchedTime, search, type Search } from "./flameSearch.ts";
import { fromTheStart, nameOf, type FrameTree, type Part } from "./flameTree.ts";
import { lines, per, time, type Unit } from "./flameWords.ts";
import { count, counted, percent } from "./format.ts";
import { onRedraw } from "./theme.ts";

export interface FlameView {
  element: HTMLElement;
  /** Draws other samples; what the reader chose stays. */
  show(shown: Cut, base: Cut | null, unit: Unit): void;
  /** The choice as values of a link. */
  values(): Record<string, string>;
  restore(values: URLSearchParams): void;
  /** Shows these states and no others. */
  choose(states: Set<string>): void;
  /** Shows the callers and callees of a function. */
  open(name: string): void;
  /** The graph's parts, for tables beside it. */
  parts(): Part[];
}

interface Drawn {
  pane: Pane;
  tree: FrameTree;
  top: number;
  zoom: number;
  membership: Membership;
  /** Half of the 95 % interval of the change of each frame that is laid out; null where it is not known. */
  doubts: Float64Array | null;
}

/** What each graph draws, pane by pane, for tests that read it: `window.scaleprofFlames`. */
const flames: Record<string, () => { frame: number; name: string; shown: number; base: number; x: number; width: number; row: number; half: number | null; isInnermost: boolean }[][]> = {};
Object.assign(window, { scaleprofFlames: flames });

/** `usualStates` are shown until the reader chooses others; `changed` is called when the reader chose something else; `step` where the way back should lead to what was before. */
export function flameView(profile: Profile, name: string, usualStates: (present: string[]) => string[], changed: (step: boolean) => void): FlameView {
  const present = profile.states.filter((_, state) => profile.rungs.some(({ measurements }) => measurements.some(({ starts }) => starts[state + 1]! > starts[state]!)));
  const usual = () => new Set(usualStates(present));
  const choice = atFirst(usual());
  let shown: Cut | null = null;
  let base: Cut | null = null;
  let unit: Unit = profile.per;
  let parts: Part[] = [];
  let found: Search | null = null;
  let drawn: Drawn[] = [];

  const tip = flameTip();
  const status = h("p", { class: "notes flame-status" });
  const matched = h("span", { class: "flame-matched", "aria-live": "polite" });
  const panes = h("div", { class: "flame-panes" });
  const field = h("input", { type: "search", id: `${name}-search`, placeholder: "regular expression", autocomplete: "off", spellcheck: "false", size: 22 });
  const chips = h("div", { class: "flame-states", role: "group", "aria-label": "States of the threads that are shown" });
  const button = (label: string, title: string, click: () => void) => h("button", { type: "button", title, click }, label);

  const tables = flameTables(profile, name, () => tabulate(), (wanted) => open(wanted));

  // Each control, and how it shows what is chosen.
  const views = h("select", { id: `${name}-view` },
    h("option", { value: "callees" }, "from the thread’s start"), h("option", { value: "callers" }, "from the innermost functions"),
    h("option", { value: "around" }, "around one function"));
  const split = toggle("split by state", "A frame for each state below the whole", () => update({ split: !choice.split, zoom: "" }, true));
  const flip = toggle("flip", "Flame graph: the outermost function below. Otherwise an icicle graph: it stands on top", () => update({ upwards: !choice.upwards }));
  const colours = toggle("colour by growth", "Colour by growth; otherwise by name", () => update({ colour: choice.colour === "growth" ? "name" : "growth" }));
  const reset = button("whole graph", "Zoom out (Escape)", () => update({ zoom: "", view: choice.view === "around" ? "callees" : choice.view }, true));
  const sandwich = button("", "", () => open(zoomedFunction() ?? ""));
  const about = h("span", { class: "flame-about" });
  const next = button("next", "Next match (Enter)", () => cycle(1));
  const key = h("p", { class: "key flame-key" });

  const element = h("div", { class: "flame", id: name },
    h("div", { class: "flame-bar" }, chips,
      button("only on a CPU", "Only what used a CPU", () => update({ states: new Set(present.filter(isOnCpu)), zoom: "" })),
      button("only waiting", "Only what did not use one, but for waits for the client", () => update({ states: new Set(present.filter((state) => !isOnCpu(state) && state !== "net")), zoom: "" }))),
    h("div", { class: "flame-bar" },
      h("label", { for: views.id }, "View "), views, split, flip, colours,
      h("span", { class: "flame-find nowrap" }, h("label", { for: field.id }, "Search "), field), next, matched),
    h("div", { class: "flame-bar flame-zoomed" }, reset, sandwich, about),
    key, panes, tip.element, status, tables.elements, tip.spoken);

  const update = (changes: Partial<Choice>, step = false) => {
    Object.assign(choice, changes);
    draw();
    changed(step);
  };
  const open = (wanted: string) => {
    if (profile.functions.includes(wanted)) update({ view: "around", around: wanted, zoom: "", zoomedPane: 0 }, true);
  };
  views.addEventListener("change", () => {
    const view = views.value as View;
    const fallback = zoomedFunction() ?? heaviestFunction();
    update({ view, zoom: "", zoomedPane: 0, around: view === "around" ? choice.around || fallback : choice.around }, true);
  });
  field.addEventListener("input", () => update({ words: field.value }));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") cycle(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") update({ words: "" });
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    field.focus();
    field.select();
  });

  function zoomedFunction(): string | null {
    const one = drawn[choice.zoomedPane];
    const label = one && one.zoom > one.top ? one.tree.label[one.zoom]! : -1;
    return label >= 0 ? profile.functions[label] ?? null : null;
  }

  function heaviestFunction(): string {
    const own = new Map<number, number>();
    for (const part of parts) part.shown.forEach((time, node) => time > 0 && own.set(profile.calls.functionOf[node]!, (own.get(profile.calls.functionOf[node]!) ?? 0) + time));
    const [best] = [...own].sort((a, b) => b[1] - a[1])[0] ?? [0];
    return profile.functions[best] ?? "";
  }

  /** Goes to the next frame on the canvases that matches, or to the one before. */
  function cycle(step: number): void {
    if (!found) return;
    const hits = drawn.flatMap((one) => [...(one.pane.layout()?.frame ?? [])].filter((frame) => isMatch(one.tree, frame)).map((frame) => ({ one, frame })));
    if (hits.length === 0) return;
    const last = hits.findIndex(({ one, frame }) => one.pane === lastHit?.one.pane && frame === lastHit.frame);
    const from = last >= 0 || step > 0 ? last : 0;
    lastHit = hits[(from + step + hits.length) % hits.length]!;
    lastHit.one.pane.point(lastHit.frame);
  }
  let lastHit: { one: Drawn; frame: number } | null = null;
  const isMatch = (tree: FrameTree, frame: number) => tree.label[frame]! >= 0 && found?.matches[tree.label[frame]!] === 1;

  function partsNow(): Part[] {
    if (shown === null) return [];
    const chosen = profile.states.map((state, at) => (choice.states.has(state) ? at : -1)).filter((state) => state >= 0);
    const none = new Float64Array(profile.calls.count);
    if (choice.split && choice.view !== "around") {
      return chosen.filter((state) => shown!.own(state) || base?.own(state)).map((state) => ({ state, base: base?.own(state) ?? null, shown: shown!.own(state) ?? none }));
    }
    const together = (cut: Cut | null) => {
      if (cut === null) return null;
      const sum = new Float64Array(profile.calls.count);
      for (const state of chosen) {
        const times = cut.own(state);
        if (times !== null) for (let node = 0; node < sum.length; node++) sum[node]! += times[node]!;
      }
      return sum;
    };
    return [{ state: null, base: together(base), shown: together(shown) ?? none }];
  }

  function draw(): void {
    if (shown === null) return;
    parts = partsNow();
    found = search(profile, choice.words);
    const kinds: ["callers" | "callees" | null, boolean][] = choice.view === "around" ? [["callers", true], ["callees", false]] : [[null, choice.upwards]];
    if (drawn.length !== kinds.length) {
      drawn = [];
      panes.replaceChildren(...kinds.map(([kind], place) => {
        const label = kind === null ? "Flame graph" : kind === "callers" ? "Callers of the function" : "What the function calls";
        const made = pane(`${name}-pane-${place}`, `${label}. Arrow keys move, Enter zooms, Escape shows the whole, s shows callers and callees, / searches. The table below holds the figures.`, events(place));
        drawn.push({ pane: made, tree: fromTheStart(profile, []), top: 0, zoom: 0, membership: { view: "callees" }, doubts: null });
        return made.element;
      }));
    }
    const wanted = profile.functions.indexOf(choice.around);
    kinds.forEach(([kind, upwards], place) => {
      const one = drawn[place]!;
      const path = choice.zoomedPane === place ? choice.zoom : "";
      Object.assign(one, built((least) => kind === null
        ? (choice.view === "callees" ? fromTheStart(profile, parts) : fromTheLeaves(profile, parts, least))
        : around(profile, parts, wanted, kind, least), path));
      one.membership = kind !== null ? { view: "around", wanted, direction: kind } : { view: choice.view === "callers" ? "callers" : "callees" };
      one.top = kind === null ? 0 : Math.min(1, one.tree.count - 1);
      one.zoom = Math.max(one.zoom, one.top);
      one.pane.draw(picture(one, upwards));
    });
    tell();
    tabulate();
    const label = zoomedFunction();
    sandwich.hidden = label === null;
    sandwich.textContent = `callers and callees of ${shortened(label ?? "")}`;
    sandwich.title = `${label ?? ""} (s)`;
    about.textContent = choice.view !== "around" ? "" : parts.length > 0 && drawn[0]!.tree.count > 1
      ? `Callers of ${choice.around} stand above it, what it calls below.` : `${choice.around} takes no time in these states at ${shown.name}.`;
    reset.hidden = choice.zoom === "" && choice.view !== "around";
  }

  /** The tables that are open; they are of the whole, however far the graph is zoomed. */
  function tabulate(): void {
    const tree = () => (choice.view === "callees" ? drawn[0]?.tree : null) ?? fromTheStart(profile, parts);
    tables.fill(tree, unit, shown?.name ?? "", base?.name ?? null, found?.matches ?? null);
  }

  /** Merged views leave out what would be narrower than can be seen; zoomed in, that is less, so they are made again. */
  function built(make: (least: number) => FrameTree, path: string): { tree: FrameTree; zoom: number } {
    let seen = parts.reduce((all, part) => all + part.shown.reduce((sum, time) => sum + time, 0), 0);
    for (let round = 0; ; round++) {
      const tree = make(seen / 4000);
      const { frame, whole } = frameAt(profile, tree, path);
      const inside = tree.shown[frame]!;
      if (round > 8 || (whole && inside >= seen / 2)) return { tree, zoom: frame };
      seen = inside < seen / 2 ? inside : seen / 16;
    }
  }

  function picture(one: Drawn, upwards: boolean): Picture {
    const ink = flameInk();
    const byGrowth = base !== null && choice.colour === "growth";
    const [grown, named] = [growthColours(ink), nameColours(ink)];
    const { tree } = one;
    const isKernel = (frame: number) => tree.label[frame]! >= 0 && profile.isKernel[tree.label[frame]!] === 1;
    return {
      tree, times: tree.shown, top: one.top, zoom: one.zoom, upwards, ink, isKernel,
      name: (frame) => words(tree, frame),
      colours: (layout) => {
        one.doubts = doubts(one, layout);
        return (place) => {
          const frame = layout.frame[place]!;
          if (byGrowth) return grown(growth(tree.base[frame]!, tree.shown[frame]!, one.doubts?.[place] ?? 0));
          return tree.label[frame]! < 0 ? ink.same : named(nameOf(profile, tree.label[frame]!), isKernel(frame));
        };
      },
      isHit: found ? (frame) => isMatch(tree, frame) : null,
    };
  }

  /** The two rungs are independent of one another, so their errors add up as squares. */
  function doubts({ tree, membership }: Drawn, layout: Layout): Float64Array | null {
    if (shown === null || base === null) return null;
    const states = parts.map((part) => part.state);
    const chosen = states.length === 1 && states[0] === null ? chosenOnly : (cut: Cut) => cut;
    const [now, before] = [shown, base].map((cut) => halves(profile, chosen(cut), states, tree, layout, membership));
    return now && before ? now.map((half, place) => Math.hypot(half, before[place]!)) : null;
  }

  /** A cut without the states that are switched off. */
  function chosenOnly(cut: Cut): Cut {
    return { ...cut, own: (state) => (choice.states.has(profile.states[state] ?? "") ? cut.own(state) : null) };
  }

  function words(tree: FrameTree, frame: number): string {
    const label = tree.label[frame]!;
    if (label >= 0) return profile.functions[label] ?? "";
    if (label === -1) return `all: ${time(tree.shown[frame]!, unit)} ${per(unit)}`;
    return `${stateName(nameOf(profile, label))}: ${time(tree.shown[frame]!, unit)}`;
  }

  const events = (place: number) => ({
    zoom: (frame: number) => {
      const one = drawn[place]!;
      // A click on the frame that fills the canvas leads out of it again.
      const to = frame === one.zoom ? Math.max(one.top, one.tree.parent[frame]!) : frame;
      update({ zoom: to > one.top ? pathLetters(profile, one.tree, to) : "", zoomedPane: to > one.top ? place : 0 }, true);
    },
    open: (frame: number) => open(nameOf(profile, drawn[place]!.tree.label[frame]!)),
    back: () => {
      if (choice.zoom !== "") update({ zoom: "", zoomedPane: 0 }, true);
      else if (choice.view === "around") update({ view: "callees" }, true);
    },
    at: (frame: number | null, box: DOMRect | null, byKeyboard: boolean) => {
      if (frame === null || box === null) tip.hide();
      else tip.show(describe(drawn[place]!, frame), box, element.getBoundingClientRect(), byKeyboard);
    },
    drawn: () => {
      const layouts = drawn.map((one) => one.pane.layout()).filter((one) => one !== null);
      const narrow = layouts.reduce((sum, one) => sum + one.tooNarrow, 0) + drawn.reduce((sum, one) => sum + one.tree.leftOut, 0);
      status.textContent = `${counted(layouts.reduce((sum, one) => sum + one.count, 0), "frame")} drawn${narrow > 0 ? `; ${count(narrow)} more are narrower than half a pixel: zoom in to see them` : ""}. Click or Enter zooms, Shift and click or s shows callers and callees, / searches.`;
    },
  });

  function describe({ tree, pane: where, doubts: known }: Drawn, frame: number): string[] {
    const label = tree.label[frame]!;
    let itself = tree.shown[frame]!;
    for (let child = frame + 1; child < tree.end[frame]!; child = tree.end[child]!) itself -= tree.shown[child]!;
    const [root] = fromTheWhole();
    return lines({
      name: label >= 0 ? profile.functions[label] ?? "" : words(tree, frame),
      shown: tree.shown[frame]!, base: base ? tree.base[frame]! : null, itself: choice.view === "callees" ? Math.max(0, itself) : null,
      allShown: root.shown, allBase: root.base, doubt: known?.[where.layout()?.frame.indexOf(frame) ?? -1] ?? null,
    }, unit, shown?.name ?? "", base?.name ?? null);
  }

  function fromTheWhole(): [{ shown: number; base: number }] {
    const sum = (cut: Cut | null) => profile.states.reduce((all, state, at) => all + (choice.states.has(state) ? cut?.byState[at] ?? 0 : 0), 0);
    return [{ shown: sum(shown), base: sum(base) }];
  }

  /** Makes the controls show what is chosen. */
  function tell(): void {
    chips.replaceChildren(...present.map((state) => stateChip(state, choice.states.has(state), time(shown?.byState[profile.states.indexOf(state)] ?? 0, unit), () => {
      const states = new Set(choice.states);
      if (!states.delete(state)) states.add(state);
      update({ states, zoom: "" });
      chips.querySelector<HTMLElement>(`[data-state="${state}"]`)?.focus();
    })));
    views.value = choice.view;
    split.setAttribute("aria-pressed", String(choice.split));
    split.disabled = flip.disabled = choice.view === "around";
    flip.setAttribute("aria-pressed", String(choice.upwards));
    colours.hidden = base === null;
    colours.setAttribute("aria-pressed", String(choice.colour === "growth"));
    if (field.value !== choice.words) field.value = choice.words;
    next.hidden = found === null;
    matched.textContent = found === null ? "" : said(found);
    const growing = base !== null && choice.colour === "growth";
    key.replaceChildren(...(growing ? growthKey(base?.name ?? "", drawn.some((one) => one.doubts), Boolean(shown?.rung)) : nameKey()));
  }

  function said(one: Search): string {
    const at = (side: "shown" | "base") => {
      const { matched, all } = matchedTime(profile, parts, one, side);
      return `${percent(all > 0 ? matched / all : null)} (${time(matched, unit)})`;
    };
    const before = base ? `, ${at("base")} at ${base.name}` : "";
    return `${one.literal ? "no regular expression, searched as it stands: " : ""}${counted(one.functions, "function")}: ${at("shown")} of the time${base ? ` at ${shown?.name}` : ""}${before}`;
  }

  onRedraw(draw);
  flames[name] = () => drawn.map(({ pane: one, tree, doubts: known }) => {
    const layout = one.layout();
    return [...layout?.frame ?? []].map((frame, place) => ({
      frame, name: words(tree, frame), shown: tree.shown[frame]!, base: tree.base[frame]!,
      x: layout!.x[place]!, width: layout!.width[place]!, row: layout!.row[place]!, half: known?.[place] ?? null, isInnermost: tree.end[frame] === frame + 1,
    }));
  });

  return {
    element,
    show(nextShown, nextBase, nextUnit) {
      [shown, base, unit] = [nextShown, nextBase, nextUnit];
      draw();
    },
    values: () => valuesOf(choice, usual()),
    restore(values) {
      Object.assign(choice, choiceOf(values, profile.functions, present, usual()));
      draw();
    },
    choose(states) {
      choice.states = new Set(states);
      draw();
    },
    open,
    parts: () => parts,
  };
}

function shortened(name: string): string {
  return name.length > 48 ? `${name.slice(0, 47)}…` : name;
}
