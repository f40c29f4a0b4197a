/** The change of throughput between two rungs by the factors of the iron law: the rule of crates/analysis/src/decomposition.rs. */

import type { Decomposition, Report, Rung } from "./data.ts";
import type { Figure } from "./format.ts";

/** ln of the ratio; null where one of the two is not above 0. */
function change(from: Figure, to: Figure): number | null {
  const ratio = (to ?? NaN) / (from ?? NaN);
  return ratio > 0 && Number.isFinite(ratio) ? Math.log(ratio) : null;
}

/** The parts of ln X(to) − ln X(from); null where one of the rungs lacks its factors. */
export function changeBetween(from: Rung, to: Rung): Decomposition | null {
  const [a, b] = [from.iron_law, to.iron_law];
  if (!a || !b) return null;
  const throughput = change(from.throughput.value, to.throughput.value);
  const utilisation = change(a.utilisation * a.cpus, b.utilisation * b.cpus);
  const cpu = change(a.cpu_seconds_per_txn, b.cpu_seconds_per_txn);
  if (throughput === null || utilisation === null || cpu === null) return null;
  const [clock, instructions, cycles] = [
    change(a.clock_hz, b.clock_hz), change(a.instructions_per_txn, b.instructions_per_txn), change(a.cycles_per_instruction, b.cycles_per_instruction),
  ];
  const known = clock !== null && instructions !== null && cycles !== null;
  return {
    from: from.connections, to: to.connections, throughput, utilisation,
    clock: known ? clock : null, instructions: known ? -instructions : null, cycles_per_instruction: known ? -cycles : null,
    cpu_seconds: -cpu, residual: throughput - utilisation + cpu,
  };
}

/** What the peak can be compared with. */
export interface Comparable {
  peak: Rung;
  others: Rung[];
  /** The one that is compared at first, and why it is that one. */
  first: Rung;
  why: "last" | "most efficient";
}

/** From this change on it counts where intervals do not tell whether it is one. */
const plain = Math.log(1.25);

/** Whether throughput at two rungs differs beyond chance: their intervals lie apart, or without intervals the difference is plain. */
export function differs(a: Rung, b: Rung): boolean {
  const [one, other] = [a.throughput, b.throughput];
  if (one.low === null || one.high === null || other.low === null || other.high === null) return Math.abs(Math.log(other.value / one.value)) >= plain;
  return one.high < other.low || other.high < one.low;
}

/**
 * The rungs with factors beside the peak; null where there is none. At first it is the last one, or where throughput does not surely fall
 * up to that the one with the best throughput per connection.
 */
export function comparable({ summary: { rungs, verdict } }: Report): Comparable | null {
  const peak = rungs.find((rung) => rung.connections === verdict?.peak_connections);
  if (!peak) return null;
  const others = rungs.filter((rung) => rung !== peak && changeBetween(peak, rung) !== null);
  const counting = others.filter((rung) => !rung.client_limited);
  const among = counting.length ? counting : others;
  const last = among.at(-1);
  if (!last) return null;
  if (last.connections > peak.connections && differs(peak, last)) return { peak, others, first: last, why: "last" };
  const efficiency = (rung: Rung) => rung.throughput.value / rung.connections;
  const first = among.reduce((best, one) => (efficiency(one) > efficiency(best) ? one : best));
  return { peak, others, first, why: "most efficient" };
}
