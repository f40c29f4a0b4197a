/** Who waits for whom at a rung that the reader chooses. */

import { folded } from "./chart.ts";
import type { Report } from "./data.ts";
import { h, section, type Child } from "./element.ts";
import { packedProfile } from "./flameData.ts";
import { linkOf, writeLink } from "./flameLink.ts";
import { count, counted, isKnown, number, percent } from "./format.ts";
import { onChoice } from "./selection.ts";
import { table } from "./table.ts";
import type { WaitedLock, WaitRung } from "./waitData.ts";
import { waitDiagram, type Opened, type WaitDiagram } from "./waitDiagram.ts";
import { about, kindWords, lockWords, part, threads } from "./waitWords.ts";

/** The section; nothing where no thread was seen to wait for a lock. */
export function waits({ waits: found, summary }: Report): HTMLElement | null {
  if (!found) return null;
  const { functions, rungs } = found;
  const last = rungs.at(-1)!;
  const named = (rung: WaitRung) => (rung.connections === null ? "on this server" : `at ${counted(rung.connections, "connection")}`);
  const peak = summary.verdict?.peak_connections;
  const select = h("select", { id: "waits-rung" }, rungs.map((rung) => h("option", { value: rung.connections ?? "", selected: rung === last },
    rung.connections === null ? "this server" : `${counted(rung.connections, "connection")}${rung.connections === peak ? " (peak)" : ""}`)));
  const body = h("div", {});
  let diagram: WaitDiagram;
  const chosen = () => rungs.find((rung) => String(rung.connections ?? "") === select.value) ?? last;
  const link = (box: string) => writeLink("waits", { rung: select.value, open: box }, box !== "");
  const show = () => {
    const rung = chosen();
    diagram = waitDiagram(rung, functions, (opened) => flameLink(rung, opened), link);
    body.replaceChildren(h("p", { id: "waits-sum" }, sum(rung, named(rung))), bar(rung), diagram.element,
      notes(rung), folded("Figures as a table", () => figures(rung, functions)));
  };
  const restore = () => {
    const values = linkOf("waits");
    if (values === null || location.hash === "") return;
    const wanted = values.get("rung") ?? "";
    select.value = rungs.some((rung) => String(rung.connections ?? "") === wanted) ? wanted : String(last.connections ?? "");
    show();
    document.getElementById("waits")?.scrollIntoView();
    diagram.open(values.get("open") ?? "", true);
  };
  addEventListener("beforeprint", () => diagram.unfold());
  select.addEventListener("change", () => {
    show();
    link("");
  });
  onChoice((connections) => {
    if (!rungs.some((rung) => rung.connections === connections)) return;
    select.value = String(connections);
    show();
  });
  addEventListener("popstate", restore);
  queueMicrotask(restore);
  show();
  return section("waits", "Who waits for whom",
    h("p", { class: "lead" }, "Threads that serve the load, on the left, wait for the locks in the middle; on the right stands who held the lock when a wait began. ",
      "Only a mutex of the C library names its holder. Of condition variables, rw-locks and the server’s own latches only who woke the waiting threads can be seen: ",
      "a waker gave back something that they waited for, but need not be the one that held it all the time. A line is as wide as there are threads."),
    rungs.length > 1 ? h("p", { class: "search" }, h("label", { for: select.id }, "Rung "), select) : null, body);
}

function sum({ waiting, attribution: [holder, waker, neither], connections, seconds, measurements }: WaitRung, named: string): string {
  const all = waiting.value;
  const ofAll = connections ? `, ${percent(all / connections)} of them` : "";
  return `${about(waiting)[0]!.toUpperCase()}${about(waiting).slice(1)} wait for a lock on average ${named}${ofAll} (${number(seconds)} s of ${counted(measurements, "measurement")}${isKnown(waiting.high) ? ", 95 % interval" : ", too few for an interval"}). `
    + `Of their waiting the holder was seen for ${part(holder, all)}, only a waker for ${part(waker, all)}, neither for ${part(neither, all)}.`;
}

/** The same as a bar. */
function bar({ attribution: [holder, waker, neither] }: WaitRung): HTMLElement {
  const all = holder + waker + neither;
  const piece = (kind: string, value: number, words: string) => (value > 0
    ? h("span", { class: `wait-part ${kind}`, "data-share": value / all, title: `${words}: ${threads(value)}` }, value / all > 0.09 ? words : "") : null);
  const parts = h("div", { class: "wait-bar", "aria-hidden": "true" }, piece("held", holder, "holder seen"), piece("woken", waker, "only a waker"), piece("neither", neither, "neither"));
  // Widths by script: the page allows no style of an element in its markup.
  for (const one of parts.children) if (one instanceof HTMLElement) one.style.flexGrow = one.dataset["share"] ?? "0";
  return parts;
}

/** What leads from a call path to its time in the flame graph; nothing where there is no graph. */
function flameLink({ connections }: WaitRung, { title, path, states }: Opened): Child {
  const sought = [...path].reverse().find((name) => title !== "" && name.startsWith(title.split(" < ")[0] ?? "")) ?? path.at(-1);
  if (!sought || packedProfile() === null) return null;
  const pattern = `^${sought.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`;
  const values = new URLSearchParams({ ...(connections === null ? {} : { rung: String(connections), base: "none" }), ...(states === "" ? {} : { states }), search: pattern });
  return h("a", { href: `#flame:${values.toString()}` }, "Search it in the flame graph");
}

function notes(rung: WaitRung): HTMLElement {
  const lines = [
    rung.omitted.count ? `Omitted: ${counted(rung.omitted.count, "lock")} with fewer waiting threads, ${threads(rung.omitted.threads)} in all.` : "",
    rung.attribution[2] > 0 ? "Neither holder nor waker: the wait did not end within its second, its end was lost, or the recording does not name the waker." : "",
    rung.holders_by === "most_frequent_path" ? "This bundle stores one holder location per lock, the most frequent over whole measurements, and no holder state." : "",
    rung.holders_by === "unknown" ? "No holder of any lock was seen." : "",
    rung.locks.some((lock) => lock.holders.some((holder) => holder.waits_for.length)) ? "⤺ A holder that waits itself: for which lock is known from all waits at the same place in the code." : "",
    "A lock on the heap has no name: the waiting call path identifies it, so one such lock may be listed more than once.",
  ].filter(Boolean);
  return h("ul", { class: "notes" }, lines.map((line) => h("li", {}, line)));
}

function figures(rung: WaitRung, functions: string[]): HTMLElement {
  const share = (lock: WaitedLock, at: 0 | 1 | 2) => part(lock.attribution[at], lock.waiting.value);
  return table("Locks with the threads that wait for them", [
    { heading: "lock", words: true, cell: (lock) => lockWords(lock, functions) },
    { heading: "kind", words: true, cell: (lock) => kindWords(lock) },
    { heading: "waiting", unit: "threads", cell: (lock) => number(lock.waiting.value) },
    { heading: "±", unit: "95\u202f%", cell: ({ waiting: { value, high } }) => (isKnown(high) ? number(high - value) : "–") },
    { heading: "holder seen", unit: "of that", cell: (lock) => share(lock, 0) },
    { heading: "only a waker", unit: "of that", cell: (lock) => share(lock, 1) },
    { heading: "neither", unit: "of that", cell: (lock) => share(lock, 2) },
    { heading: "on a CPU", unit: "threads", cell: (lock) => number(lock.on_cpu) },
    { heading: "samples", cell: (lock) => count(lock.samples) },
  ], rung.locks);
}
