/** Where the connections' time goes in both runs: the states of the thread ledger side by side. */

import { folded } from "./chart.ts";
import { costUnit, isWatched, signedMicros, type Diff, type RungChange, type StateChange } from "./diffData.ts";
import { whyNoStates } from "./diffMissing.ts";
import { h, s, section } from "./element.ts";
import { count, isKnown, unknown } from "./format.ts";
import { micros, states as all } from "./ledger.ts";
import { table, type Column } from "./table.ts";

type Side = "a" | "b";

/** Two bars a rung on one scale, and the figures. */
export function bothStates(diff: Diff): HTMLElement {
  const rungs = diff.comparison.rungs.filter((rung) => rung.states.length > 0);
  const title = "Where the connections’ time goes";
  const at = isWatched(diff) ? "" : " at every rung";
  if (rungs.length === 0) return section("states", title, h("p", { class: "notes" }, whyNoStates(diff)));
  const used = all.filter(([state]) => rungs.some((rung) => of(rung, state)));
  const pair = (rung: RungChange, state: string) => {
    const found = of(rung, state)?.seconds_per_txn;
    return found ? `${micros(found.a)} → ${micros(found.b)}` : unknown;
  };
  const change = (rung: RungChange, state: string) => {
    const found = of(rung, state)?.change;
    if (!found) return unknown;
    return signedMicros(found.value) + (isKnown(found.low) && isKnown(found.high) ? ` (${signedMicros(found.low)} to ${signedMicros(found.high)})` : "");
  };
  const columns = (cell: (rung: RungChange, state: string) => string): Column<RungChange>[] => [
    ...(isWatched(diff) ? [] : [{ heading: "connections", cell: (rung: RungChange) => count(rung.connections) }]),
    ...used.map(([state, name]): Column<RungChange> => ({ heading: name, unit: costUnit(diff), cell: (rung) => cell(rung, state) })),
  ];
  return section("states", title,
    h("p", { class: "lead" }, isWatched(diff) ? "Every thread that serves a client is always in one of these states. Both bars share one scale."
      : "Every connection is always in one of these states, so their times add up to connections ÷ throughput. The bars of a rung share one scale."),
    h("p", { class: "key", "aria-hidden": "true" }, used.map(([state, name]) => h("span", {}, s("svg", { viewBox: "0 0 10 10", width: 10, height: 10, class: "bar swatch" }, s("rect", { width: 10, height: 10, class: `state-${state}` })), ` ${name}`))),
    bars(diff, rungs),
    h("h3", {}, `Time per ${diff.comparison.per}, A → B`),
    table(`Time per ${diff.comparison.per} in each state${at}, A to B`, columns(pair), rungs),
    folded("Changes with their 95\u202f% intervals as a table", () => table(`Change of the time per ${diff.comparison.per} in each state${at}, B less A`, columns(change), rungs)));
}

function of(rung: RungChange, state: string): StateChange | undefined {
  return rung.states.find((one) => one.state === state);
}

/** A bar for A and one below it for B. */
function bars(diff: Diff, rungs: RungChange[]): HTMLElement {
  const width = 560;
  const whole = (rung: RungChange, side: Side) => rung.states.reduce((sum, one) => sum + (one.seconds_per_txn[side] ?? 0), 0);
  const bar = (rung: RungChange, side: Side) => {
    const scale = width / Math.max(whole(rung, "a"), whole(rung, "b"));
    let at = 0;
    const parts = all.map(([state]) => {
      const [x, length] = [at, (of(rung, state)?.seconds_per_txn[side] ?? 0) * scale];
      at += length;
      return s("rect", { x, y: 2, width: Math.max(0, length), height: 14, class: `state-${state}`, "data-state": state });
    });
    return s("svg", { viewBox: `0 0 ${width} 18`, preserveAspectRatio: "none", class: "bar stack", "aria-hidden": "true" }, parts);
  };
  const rows = rungs.flatMap((rung) => (["a", "b"] as const).map((side) => ({ rung, side })));
  const ofRungs: Column<{ rung: RungChange; side: Side }>[] = isWatched(diff) ? [] : [{ heading: "connections", cell: ({ rung, side }) => (side === "a" ? count(rung.connections) : "") }];
  return table(`The connections’ time in each state${isWatched(diff) ? "" : " at every rung"}, of A and of B`, [
    ...ofRungs,
    { heading: "run", words: true, cell: ({ side }) => side.toUpperCase() },
    { heading: "all states", unit: costUnit(diff), cell: ({ rung, side }) => micros(whole(rung, side)) },
    { heading: "time in each state", words: true, cell: ({ rung, side }) => bar(rung, side) },
  ], rows, ({ side }) => (side === "a" ? "before" : "after"));
}
