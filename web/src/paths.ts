/** The heaviest call paths and locks of a rung that the reader chooses. */

import type { CallPath, Estimate, Lock, Report, Rung } from "./data.ts";
import { h } from "./element.ts";
import { count, counted, isKnown, number, percent } from "./format.ts";
import { micros, states } from "./ledger.ts";
import { linkOf, writeLink } from "./flameLink.ts";
import { reveal } from "./reveal.ts";
import { onChoice } from "./selection.ts";
import { table } from "./table.ts";

/** A choice of rung, and below it its paths and its locks; nothing where no stack was sampled. */
export function heaviest({ summary: { rungs, scaling } }: Report, peak: number | null): HTMLElement | null {
  const sampled = rungs.filter((rung) => rung.paths.length > 0);
  const last = sampled.at(-1);
  if (!last) return null;
  const busy = new Set(scaling?.rungs.filter((one) => one.cpus_busy).map((one) => one.connections));
  const heading = h("h3", { "aria-live": "polite" });
  const body = h("div", {});
  const select = h("select", { id: "paths-rung" }, sampled.map((rung) => h("option", { value: rung.connections, selected: rung === last },
    `${counted(rung.connections, "connection")}${rung.connections === peak ? " (peak)" : ""}`)));
  const show = () => {
    const rung = sampled.find((one) => String(one.connections) === select.value) ?? last;
    heading.textContent = `Heaviest call paths at ${counted(rung.connections, "connection")}`;
    body.replaceChildren(...paths(rung, busy.has(rung.connections)), ...(rung.locks.length ? [h("h3", {}, "Locks that were waited for longest"), locks(rung)] : []));
  };
  select.addEventListener("change", () => {
    show();
    writeLink("paths", { rung: select.value }, true);
  });
  const restore = () => {
    const values = linkOf("paths");
    if (values === null) return;
    const wanted = values.get("rung") ?? "";
    select.value = sampled.some((rung) => String(rung.connections) === wanted) ? wanted : String(last.connections);
    show();
    if (location.hash !== "") reveal(element);
  };
  addEventListener("popstate", restore);
  queueMicrotask(() => location.hash !== "" && restore());
  onChoice((connections) => {
    if (!sampled.some((rung) => rung.connections === connections)) return;
    select.value = String(connections);
    show();
  });
  show();
  const element = h("div", { id: "paths" }, heading, h("p", { class: "search" }, h("label", { for: "paths-rung" }, "Rung "), select), body);
  return element;
}

/** The causes first: while every CPU is busy, waiting for one is none, and stands behind them. */
function paths(rung: Rung, cpusBusy: boolean): HTMLElement[] {
  const whole = rung.ledger?.connections_over_throughput;
  const isApart = (path: CallPath) => cpusBusy && path.state === "runq";
  const ordered = [...rung.paths.filter((path) => !isApart(path)), ...rung.paths.filter(isApart)];
  const words = new Map(apart(ordered.map(asPath)).map((few, at) => [ordered[at]!, few]));
  const note = rung.paths.some(isApart) ? [h("p", { class: "notes" }, "Waiting for a CPU stands last: it is not a cause while every CPU is busy.")] : [];
  return [table(`Heaviest call paths at ${counted(rung.connections, "connection")}`, [
    { heading: "state", words: true, cell: (path) => states.find(([state]) => state === path.state)?.[1] ?? path.state },
    { heading: "time", unit: "µs/tx", cell: (path) => micros(path.seconds_per_txn.value) },
    { heading: "±", unit: "95\u202f%", cell: (path) => half(path.seconds_per_txn) },
    { heading: "share", unit: "of N/X", cell: (path) => percent(isKnown(whole) ? path.seconds_per_txn.value / whole : null) },
    { heading: "samples", cell: (path) => count(path.samples) },
    { heading: "call path", unit: "innermost function first", words: true, cell: (path) => unfolding(path.path, words.get(path) ?? "") },
  ], ordered), ...note];
}

function locks(rung: Rung): HTMLElement {
  const words = new Map(apart(rung.locks.map(({ waiter: functions }) => ({ functions, blocked: true }))).map((few, at) => [rung.locks[at]!, few]));
  return table(`Locks that were waited for longest at ${counted(rung.connections, "connection")}`, [
    { heading: "lock", words: true, cell: (lock) => lock.name ?? { text: "(on the heap)", mark: "faint" } },
    { heading: "waits", unit: "µs/tx", cell: (lock) => micros(lock.seconds_per_txn.value) },
    { heading: "±", unit: "95\u202f%", cell: (lock) => half(lock.seconds_per_txn) },
    { heading: "samples", cell: (lock) => count(lock.samples) },
    { heading: "waits most in", words: true, cell: (lock) => unfolding(lock.waiter, words.get(lock) ?? "") },
    { heading: "holder, where off its CPU", words: true, cell: holder },
  ], rung.locks);
}

function holder(lock: Lock) {
  if (lock.holder.length === 0) return { text: "not seen", mark: "faint" as const };
  return h("div", {}, unfolding(lock.holder, innermost(lock.holder, true)), h("span", { class: "faint" }, `${counted(lock.holder_samples, "sample")}`));
}

function half({ value, high }: Estimate): string {
  return isKnown(high) ? number((high - value) * 1e6) : "–";
}

function asPath({ path, state }: CallPath): { functions: string[]; blocked: boolean } {
  return { functions: path, blocked: !["cpu", "spin"].includes(state) };
}

/** Functions of the kernel and of the C library in which a thread waits: they say no more than its state does. */
const waiting = / \[k\]$|^(__lll_|_{0,3}pthread_|__futex_|__GI_|futex_|syscall)/;

/** How many of them are shown. */
const most = 3;

/** The functions that say something, innermost first. A stack that ends in the library has only what stands for its missing callers outside of it. */
function telling(functions: string[], blocked: boolean): string[] {
  const inwards = [...functions].reverse();
  const outside = inwards.slice(blocked ? Math.max(0, inwards.findIndex((name) => !waiting.test(name))) : 0);
  return outside.every((name) => name.startsWith("[incomplete")) ? inwards : outside;
}

/** The innermost functions that say something, innermost first; the same choice as crates/report/src/text/functions.rs. */
export function innermost(functions: string[], blocked: boolean): string {
  return telling(functions, blocked).slice(0, most).join(" < ");
}

/** The same of several: those that would read alike go on to the first function in which they differ. */
export function apart(paths: { functions: string[]; blocked: boolean }[]): string[] {
  const all = paths.map(({ functions, blocked }) => telling(functions, blocked));
  const few = all.map((path) => path.slice(0, most).join(" < "));
  const common = (one: string[], other: string[]) => {
    const at = one.findIndex((name, place) => name !== other[place]);
    return at < 0 ? one.length : at;
  };
  return all.map((path, at) => {
    const alike = all.filter((_, other) => other !== at && few[other] === few[at]);
    const depth = Math.max(0, ...alike.map((other) => common(path, other)));
    const differs = path[depth];
    if (alike.length === 0 || differs === undefined) return few[at]!;
    return depth === most ? `${few[at]!} < ${differs}` : `${path.slice(0, most - 1).join(" < ")} < … < ${differs}`;
  });
}

/** A few words that open into the whole path. */
export function unfolding(functions: string[], few: string): HTMLElement {
  return h("details", { class: "path" }, h("summary", {}, few),
    h("ol", {}, functions.map((name) => h("li", {}, name))));
}
