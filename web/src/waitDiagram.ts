/** The diagram of waits: who waits stands left, the lock in the middle, who held it or woke the waiting right. */

import type { Child } from "./element.ts";
import { h } from "./element.ts";
import { counted, number, percent } from "./format.ts";
import type { Place, Rest, WaitedLock, WaitRung } from "./waitData.ts";
import { edges, type Edge } from "./waitEdges.ts";
import { about, bare, holderWords, kindWords, knownWords, lockWords, part, restWords, sampleWords, threads, viaWords, wakerWords } from "./waitWords.ts";

/** What a box says when it is opened. */
export interface Opened { title: string; path: string[]; states: string }

export interface WaitDiagram {
  element: HTMLElement;
  /** Opens a box, or none for "", and goes to it where asked. */
  open(box: string, go: boolean): void;
  /** Shows all locks: on paper nothing can be opened. */
  unfold(): void;
}

/** The part of a lock's waiting from which on it has a box; as in crates/analysis/src/wait_graph.rs. */
const leastShare = 0.02;
/** Locks that are shown at first. */
const first = 5;

const columns = ["waiter", "lock", "other"] as const;
type Column = (typeof columns)[number];

interface Box { id: string; column: Column; row: number; element: HTMLButtonElement; details: HTMLElement }

/** Draws a rung. `link` makes what leads from a call path to the flame graph; `changed` hears which box is open. */
export function waitDiagram(rung: WaitRung, functions: string[], link: (opened: Opened) => Child, changed: (box: string) => void): WaitDiagram {
  const boxes: Box[] = [];
  const lines: Edge[] = [];
  const largest = Math.max(...rung.locks.map((lock) => lock.waiting.value + lock.on_cpu), Number.MIN_VALUE);
  let open = "";
  const names = (numbers: number[]) => numbers.map((one) => functions[one] ?? "");
  const few = (place: Place) => names(place.label).map(bare).join(" < ");
  const via = (place: Place | null) => (place ? viaWords(names(place.path), functions[place.label[0] ?? -1] ?? "") : "");

  const box = (id: string, column: Column, row: number, kind: string, label: string, opened: Opened | null, ...children: Child[]): HTMLElement => {
    const details = h("div", { class: "wait-details", id: `wait-${id}-details`, hidden: true });
    const element = h("button", {
      type: "button", class: `wait-box ${kind}`, "data-box": id, tabindex: "-1", "aria-label": label,
      "aria-expanded": opened ? "false" : null, "aria-controls": opened ? details.id : null, click: () => opened && take(open === id ? "" : id),
    }, children);
    if (opened) {
      details.append(h("p", {}, link(opened)), opened.path.length
        ? h("ol", {}, opened.path.map((name) => h("li", {}, name))) : h("p", {}, "Its place in the code is not known."));
    }
    boxes.push({ id, column, row, element, details });
    return h("div", { class: "wait-cell" }, element, details);
  };
  const lead = (...words: Child[]) => h("span", { class: "wait-lead" }, words);
  const small = (...words: Child[]) => h("span", { class: "wait-small" }, words);
  const weight = (value: number) => Math.max(0, value / largest);

  const row = (lock: WaitedLock, at: number): HTMLElement => {
    const name = lockWords(lock, functions);
    const all = lock.waiting.value;
    const share = (value: number) => part(value, all);
    const waiters = lock.waiters.map(({ place, on_cpu, threads: mean, samples }, one) => {
      const id = `${at}w${one}`;
      lines.push({ from: id, to: `${at}l`, weight: weight(mean.value), kind: "waits" });
      const words = few(place) || "a place that could not be read";
      const doing = on_cpu ? "fight for it on a CPU" : "wait";
      return box(id, "waiter", at, "waiter", `${about(mean)} ${doing} for ${name} in ${words}`, { title: words, path: names(place.path), states: on_cpu ? "cpu.spin" : "lock" },
        lead(words), small(`${about(mean)}${on_cpu ? " on a CPU" : ""} · ${sampleWords(samples)}`), small(via(place)));
    });
    const others: HTMLElement[] = [];
    lock.holders.forEach((holder, one) => {
      const id = `${at}h${one}`;
      lines.push({ from: `${at}l`, to: id, weight: weight(holder.threads), kind: "held" });
      for (const to of holder.waits_for) if (to.lock !== null) lines.push({ from: id, to: `${to.lock}l`, weight: weight(holder.threads * to.share), kind: "chain" });
      const [where, did] = [holder.place ? few(holder.place) : "", holderWords(holder, rung.holders_by)];
      const chain = holder.waits_for.map((to) => `${lockWords(to, functions)}${to.share < 0.9995 ? ` (${percent(to.share, 0)})` : ""}`).join(", ");
      const waited = chain ? `it waited for ${chain}` : holder.state === "lock" ? "for which one was not sampled" : "";
      const words = [where && `in ${where}`, did, waited].filter(Boolean).join("; ");
      others.push(box(id, "other", at, "held", `held by a thread ${words}: ${threads(holder.threads)} waiting, ${share(holder.threads)} of those for ${name}`,
        holder.place ? { title: where, path: names(holder.place.path), states: "" } : null,
        h("span", { class: "wait-tag" }, "held by"), lead(where || did), small(where ? `${holder.state === null ? did : `which ${did}`}. ` : "", `${threads(holder.threads)} waiting, ${share(holder.threads)} · ${sampleWords(holder.samples)}`),
        waited ? small(chain ? "⤺ " : "", waited) : null, small(via(holder.place))));
    });
    lock.wakers.forEach((waker, one) => {
      const id = `${at}k${one}`;
      lines.push({ from: id, to: `${at}l`, weight: weight(waker.threads), kind: "woken" });
      const where = waker.place ? few(waker.place) : wakerWords(waker);
      others.push(box(id, "other", at, "woken", `woken by ${wakerWords(waker)} ${waker.place ? `in ${where}` : ""}: ${threads(waker.threads)} waiting, ${share(waker.threads)} of those for ${name}`,
        waker.place ? { title: where, path: names(waker.place.path), states: "" } : null,
        h("span", { class: "wait-tag" }, "woken by"), lead(where), small(`${threads(waker.threads)} waiting, ${share(waker.threads)} · ${sampleWords(waker.samples)}`), small(via(waker.place))));
    });
    const neither = lock.attribution[2];
    if (neither >= leastShare * all && neither > 0) {
      const id = `${at}n`;
      lines.push({ from: id, to: `${at}l`, weight: weight(neither), kind: "neither" });
      others.push(box(id, "other", at, "neither", `neither holder nor waker was seen: ${threads(neither)} waiting, ${share(neither)} of those for ${name}`, null,
        lead("neither holder nor waker seen"), small(`${threads(neither)} waiting, ${share(neither)}`)));
    }
    const rest = (left: Rest, one: string, several: string) => (left.count ? h("p", { class: "wait-rest" }, restWords(left, one, several)) : null);
    const fighting = lock.on_cpu > 0 ? `, and ${threads(lock.on_cpu)} on a CPU` : "";
    const middle = box(`${at}l`, "lock", at, "lock", `lock ${at + 1}: ${name}, ${kindWords(lock)}: ${about(lock.waiting)} wait for it${fighting}; ${knownWords(lock.attribution)}`, null,
      h("span", { class: "wait-lead" }, h("span", { class: "wait-number" }, `${at + 1}`), " ", name), small(kindWords(lock)),
      h("span", { class: "wait-figure" }, number(all)), small(`${about(lock.waiting).replace(/^[^ ]+ /, "")} wait${fighting}`), small(knownWords(lock.attribution)));
    return h("div", { class: "wait-row", "data-lock": at },
      h("div", { class: "wait-column" }, waiters, rest(lock.omitted_waiters, "call path", "call paths")),
      h("div", { class: "wait-column" }, middle),
      h("div", { class: "wait-column" }, others, rest(lock.omitted_holders, "holder", "holders"), rest(lock.omitted_wakers, "waker", "wakers"), neither > 0 && neither < leastShare * all ? h("p", { class: "wait-rest" }, `neither holder nor waker seen: ${threads(neither)}`) : null));
  };

  const rows = rung.locks.map(row);
  const chart = h("div", { class: "wait-diagram", role: "group", "aria-label": "Who waits for which lock, and who held it or woke them. Arrow keys go from box to box." },
    h("div", { class: "wait-row wait-heads", "aria-hidden": "true" }, h("span", {}, "threads that wait, in"), h("span", {}, "the lock, most waiting first"), h("span", {}, "who held it when the wait began, or who ended the wait")), rows);
  const drawing = edges(chart, (id) => boxes.find((one) => one.id === id)?.element ?? null, lines);
  chart.prepend(drawing);

  const stop = (current: Box) => boxes.forEach((one) => { one.element.tabIndex = one === current ? 0 : -1; });
  const focus = (next: Box | undefined) => {
    if (!next) return;
    stop(next);
    next.element.focus();
  };
  function take(id: string): void {
    show(id);
    changed(id);
  }
  function show(id: string): void {
    open = id;
    for (const one of boxes) {
      if (one.element.hasAttribute("aria-expanded")) one.element.setAttribute("aria-expanded", String(one.id === id));
      one.details.hidden = one.id !== id;
    }
    const now = boxes.find((one) => one.id === id);
    if (now) stop(now);
  }
  const within = (column: Column) => boxes.filter((one) => one.column === column && !rows[one.row]?.hidden);
  chart.addEventListener("keydown", (event) => {
    const at = boxes.find((one) => one.element === event.target);
    if (!at || event.altKey || event.ctrlKey || event.metaKey) return;
    const same = within(at.column);
    const aside = (step: number) => within(columns[columns.indexOf(at.column) + step] ?? at.column).find((one) => one.row === at.row);
    const steps: Record<string, () => Box | undefined> = {
      ArrowDown: () => same[same.indexOf(at) + 1], ArrowUp: () => same[same.indexOf(at) - 1],
      ArrowLeft: () => aside(-1), ArrowRight: () => aside(1),
      Home: () => within("lock")[0], End: () => within("lock").at(-1),
      Escape: () => { take(""); return at; },
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    focus(step());
  });
  const begin = boxes.find((one) => one.id === "0l") ?? boxes[0];
  if (begin) stop(begin);
  // What a chain leads to is shown with what it begins at.
  const before = new Set(rung.locks.slice(0, first).map((_, at) => at));
  for (const at of before) for (const holder of rung.locks[at]!.holders) for (const to of holder.waits_for) if (to.lock !== null) before.add(to.lock);
  const behind = rows.filter((_, at) => !before.has(at));
  const more = h("button", { type: "button", class: "wait-more", hidden: behind.length === 0, click: () => unfold() }, `Show ${counted(behind.length, "more lock")}`);
  const unfold = () => {
    for (const one of behind) one.hidden = false;
    more.hidden = true;
  };
  for (const one of behind) one.hidden = true;
  return {
    unfold,
    element: h("div", {}, h("div", { class: "wait-scroll" }, chart), more),
    open(id, go) {
      if (id !== "" && !before.has(Number.parseInt(id, 10))) unfold();
      show(id);
      if (go && id) boxes.find((one) => one.id === id)?.element.scrollIntoView({ block: "center" });
    },
  };
}
