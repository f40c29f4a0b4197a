/** The change of throughput between the peak and a rung of the reader's choice, taken apart into the factors of the iron law. */

import type { Decomposition, Report, Rung } from "./data.ts";
import { h, s } from "./element.ts";
import { linkOf, writeLink } from "./flameLink.ts";
import { count, counted, isKnown, number, percent, si, signedPercent, times } from "./format.ts";
import { changeBetween, comparable, differs } from "./ironLawChange.ts";
import { reveal } from "./reveal.ts";
import { table } from "./table.ts";

interface Part {
  name: string;
  /** In a sentence, where it lost and where it gave throughput. */
  lost: string;
  gave: string;
  /** Whether throughput falls as the figure rises. */
  inverse?: boolean;
  /** Part of the change of ln X. */
  log: number;
  /** The figure at both rungs. */
  figures: string;
}

const id = "decomposition";

/** The waterfall and the sentence; nothing where there are no two rungs to compare. */
export function decomposition(report: Report): HTMLElement | null {
  const found = comparable(report);
  if (!found) return null;
  const { peak, others, first, why } = found;
  const select = h("select", { id: `${id}-rung` }, others.map((rung) => h("option", { value: rung.connections, selected: rung === first },
    `${counted(rung.connections, "connection")}${rung === first ? ` (the ${why} rung)` : ""}${rung.client_limited ? " (limited by the client)" : ""}`)));
  const body = h("div", { "aria-live": "polite" });
  const show = () => {
    const other = others.find((rung) => String(rung.connections) === select.value) ?? first;
    // From fewer connections to more, as the ladder goes.
    const [from, to] = other.connections > peak.connections ? [peak, other] : [other, peak];
    const change = changeBetween(from, to);
    if (change === null) return;
    const parts = partsOf(change, from, to);
    const named = (rung: Rung) => (rung === peak ? "Peak" : rung === first && why === "last" ? "Last" : rung === first ? "Most efficient" : "Rung");
    body.replaceChildren(
      h("h3", {}, `From ${count(change.from)} to ${count(change.to)} connections`),
      h("p", { class: "lead" }, sentence(change, parts, differs(from, to))),
      waterfall(change, parts, from, to, named));
  };
  const restore = () => {
    const values = linkOf(id);
    if (values === null) return;
    const wanted = values.get("rung") ?? "";
    select.value = String((others.find((rung) => String(rung.connections) === wanted) ?? first).connections);
    show();
    if (location.hash !== "") reveal(element);
  };
  select.addEventListener("change", () => {
    show();
    writeLink(id, { rung: select.value }, true);
  });
  addEventListener("popstate", restore);
  queueMicrotask(() => location.hash !== "" && restore());
  const words = why === "last" ? "" : `The peak, at ${counted(peak.connections, "connection")}, ${others.some((rung) => rung.connections > peak.connections && !rung.client_limited) ? "is not surely above the last rung that counts" : "is the last rung that counts"}, so it is compared with the most efficient one, which has the most throughput per connection.`;
  const element = h("div", { class: "waterfall", id },
    words ? h("p", { class: "notes" }, words) : null,
    others.length > 1 ? h("p", { class: "search" }, h("label", { for: select.id }, `The peak, at ${counted(peak.connections, "connection")}, compared with `), select) : null,
    body);
  show();
  return element;
}

function partsOf(change: Decomposition, from: Rung, to: Rung): Part[] {
  const figures = (of: (rung: Rung) => string) => `${of(from)} → ${of(to)}`;
  const law = (of: (law: NonNullable<Rung["iron_law"]>) => string) => figures((rung) => (rung.iron_law ? of(rung.iron_law) : "–"));
  const parts: Part[] = [{
    name: "CPUs used", lost: "CPUs that idle", gave: "busier CPUs", log: change.utilisation,
    figures: law(({ utilisation }) => percent(utilisation)),
  }];
  if (isKnown(change.instructions) && isKnown(change.cycles_per_instruction)) {
    parts.push({
      name: "Instructions per transaction", lost: "more instructions per transaction", gave: "fewer instructions per transaction",
      log: change.instructions, inverse: true, figures: law((one) => si(one.instructions_per_txn)),
    }, {
      name: "Cycles per instruction", lost: "slower instructions", gave: "faster instructions",
      log: change.cycles_per_instruction, inverse: true, figures: law((one) => number(one.cycles_per_instruction)),
    });
    if (isKnown(change.clock)) {
      parts.push({
        name: "Clock", lost: "a slower clock", gave: "a faster clock", log: change.clock,
        figures: law(({ clock_hz }) => si(clock_hz, "Hz")),
      });
    }
  } else {
    parts.push({
      name: "CPU time per transaction", lost: "more CPU time per transaction", gave: "less CPU time per transaction",
      log: change.cpu_seconds, inverse: true, figures: law((one) => `${number(one.cpu_seconds_per_txn * 1e6)}\u202fµs`),
    });
  }
  parts.push({ name: "Residual", lost: "not explained", gave: "something not explained", log: change.throughput - parts.reduce((sum, part) => sum + part.log, 0), figures: "" });
  return parts;
}

function sentence(change: Decomposition, parts: Part[], isSure: boolean): string {
  const whole = signedPercent(Math.expm1(change.throughput));
  if (!isSure) return `Throughput differs by ${whole}, which may be chance: there is nothing that the factors below would explain.`;
  if (Math.abs(change.throughput) < 0.02) return `Throughput is the same within 2\u202f% (${whole}); the factors below cancel one another.`;
  const share = (part: Part) => part.log / change.throughput;
  const figure = (part: Part) => times(Math.exp(part.inverse ? -part.log : part.log));
  const sorted = [...parts].sort((a, b) => share(b) - share(a)).filter((part) => Math.abs(share(part)) >= 0.005 && figure(part) !== times(1));
  const falls = change.throughput < 0;
  const words = (part: Part) => (part.log < 0 ? part.lost : part.gave);
  const towards = sorted.filter((part) => share(part) > 0).map((part) => `${percent(share(part), 0)} is ${words(part)} (${figure(part)})`);
  const against = sorted.filter((part) => share(part) < 0).map((part) => `${words(part)} (${figure(part)})`);
  const rest = against.length ? `; ${against.join(" and ")} worked against it` : "";
  return `Of the ${whole}, ${towards.join(", ")}${rest}. Shares are of the change of ln X, in which factors add up${falls ? "" : "; a share above 0 raised throughput"}.`;
}

/** Bars from the throughput before a factor to the one after it, on a log scale, so that equal factors are equally long. */
function waterfall(change: Decomposition, parts: Part[], from: Rung, to: Rung, named: (rung: Rung) => string): HTMLElement {
  let log = 0;
  const steps = parts.map((part) => {
    const step = { ...part, before: log, after: log + part.log };
    log = step.after;
    return step;
  });
  const edges = [0, change.throughput, ...steps.map((step) => step.after)];
  const [low, high] = [Math.min(...edges), Math.max(...edges)];
  const span = Math.max(high - low, 0.05);
  const place = (value: number) => 4 + ((value - low) / span) * 292;
  const rows = [
    { name: `${named(from)}, ${counted(change.from, "connection")}`, figures: "", before: 0, after: 0, log: 0, total: from },
    ...steps.map((step) => ({ ...step, total: null })),
    { name: `${named(to)}, ${counted(change.to, "connection")}`, figures: "", before: change.throughput, after: change.throughput, log: 0, total: to },
  ];
  const bar = (row: (typeof rows)[number]) => {
    const [left, right] = [place(Math.min(row.before, row.after)), place(Math.max(row.before, row.after))];
    return s("svg", { viewBox: "0 0 300 18", width: 300, height: 18, "aria-hidden": "true", class: "bar" },
      s("line", { x1: place(0), x2: place(0), y1: 0, y2: 18, class: "zero" }),
      row.total
        ? s("circle", { cx: place(row.before), cy: 9, r: 4, class: "total" })
        : s("rect", { x: left, y: 3, width: Math.max(1, right - left), height: 12, class: row.log < 0 ? "lost" : "gave" }));
  };
  return table("Change of throughput by factor", [
    { heading: "factor", words: true, cell: (row) => row.name },
    { heading: "throughput", unit: "log scale", words: true, cell: bar },
    { heading: "figure", words: false, cell: (row) => (row.total ? h("b", {}, `${number(row.total.throughput.value)}/s`) : row.figures) },
    { heading: "throughput", unit: "factor", cell: (row) => (row.total ? "" : times(Math.exp(row.log))) },
    { heading: "share", unit: "of the change", cell: (row) => (row.total || Math.abs(change.throughput) < 0.02 ? "" : percent(row.log / change.throughput, 0)) },
  ], rows, (row) => (row.total ? "total" : null));
}
