/** Which two rungs a flame graph shows: one gives the frames their width, the growth since the other their colour. */

import { h } from "./element.ts";
import { cutOfRung } from "./flameCut.ts";
import type { Profile, ProfiledRung } from "./flameData.ts";
import { linkOf, writeLink } from "./flameLink.ts";
import { flameView } from "./flameView.ts";

/** A rung that can be chosen. */
export interface Choosable {
  /** Names it in links. */
  key: string;
  /** Such as `512 connections`. */
  words: string;
  /** Those of one heading stand together. */
  heading?: string;
  rung: ProfiledRung;
}

/** The keys of both; no base where nothing is compared. */
export interface Pair { shown: string; base: string }

export interface FlamePair {
  elements: HTMLElement[];
  /** Shows two others. */
  choose(pair: Pair): void;
}

/**
 * The controls and the graph, which the part `flame` of the address remembers. `first` is shown at first, `usualStates` until
 * the reader chooses others; `told` is called with every pair that is shown. Without `bases` nothing can be compared.
 */
export function flamePair(
  profile: Profile, all: Choosable[], bases: Choosable[], first: Pair, usualStates: (present: string[]) => string[], told?: (pair: Pair) => void,
): FlamePair {
  const shown = h("select", { id: "flame-shown" }, options(all));
  const base = h("select", { id: "flame-base" }, h("option", { value: "" }, "nothing"), options(bases));
  const swap = h("button", { type: "button", title: "The other way round: what is gone has a width then", click: () => {
    if (base.value !== "") choose({ shown: base.value, base: shown.value });
  } }, "swap");
  const known = (key: string, among = all) => among.find((one) => one.key === key);
  const view = flameView(profile, "flame-graph", usualStates, (step) => link(step));
  const link = (step: boolean) => writeLink("flame", { rung: shown.value, base: base.value || "none", ...view.values() }, step);
  const cut = (one: Choosable) => cutOfRung(profile, one.rung, one.words);
  const draw = () => {
    const [one, other] = [known(shown.value) ?? known(first.shown), known(base.value, bases)];
    if (one === undefined) return;
    view.show(cut(one), other && other !== one ? cut(other) : null, profile.per);
    told?.({ shown: shown.value, base: base.value });
  };
  const set = (pair: Pair) => {
    shown.value = known(pair.shown) ? pair.shown : first.shown;
    base.value = known(pair.base, bases) ? pair.base : "";
  };
  const update = () => {
    draw();
    link(true);
  };
  const choose = (pair: Pair) => {
    set(pair);
    update();
  };
  const restore = () => {
    const values = linkOf("flame");
    if (values === null) return;
    set({ shown: values.get("rung") ?? "", base: values.get("base") ?? first.base });
    draw();
    view.restore(values);
    if (location.hash !== "") document.getElementById("flame")?.scrollIntoView();
  };
  set(first);
  for (const one of [shown, base]) one.addEventListener("change", update);
  addEventListener("popstate", restore);
  queueMicrotask(() => {
    draw();
    if (location.hash !== "") restore();
    requestAnimationFrame(() => performance.mark("flame graph drawn"));
  });
  const bar = h("div", { class: "flame-bar" }, h("label", { for: shown.id }, "Width: time at"), shown,
    bases.length > 0 ? [h("label", { for: base.id }, "Colour: growth since"), base, swap] : null);
  return { elements: all.length > 1 ? [bar, view.element] : [view.element], choose };
}

function options(all: Choosable[]): HTMLElement[] {
  const headings = [...new Set(all.map((one) => one.heading))];
  return headings.flatMap((heading) => {
    const made = all.filter((one) => one.heading === heading).map((one) => h("option", { value: one.key }, one.words));
    return heading === undefined ? made : [h("optgroup", { label: heading }, made)];
  });
}
