/** Costs of machine code: what they are at a rung, how they grew, and how they are written. */

import type { Code, CodeFunction, Row } from "./codeData.ts";
import { counted, number } from "./format.ts";

/** A time with half of its 95 % interval; null where there is none. */
export interface Taken { value: number; half: number | null }

const nothing: Taken = { value: 0, half: 0 };

/** What a function takes at a rung. */
export function ofFunction(one: CodeFunction, rung: number | null): Taken {
  const cost = rung === null ? undefined : one.costs[rung];
  return cost ? { value: cost[0], half: cost[1] } : nothing;
}

/** What an instruction takes at a rung; nothing where no thread was seen there. */
export function ofRow(row: Row, rung: number | null): Taken {
  const cost = row[8].find(([at]) => at === rung);
  return cost ? { value: cost[1], half: cost[2] } : nothing;
}

/** Time in the kernel that was entered at an instruction. */
export function inKernel(row: Row, rung: number): number {
  return row[8].find(([at]) => at === rung)?.[3] ?? 0;
}

/** How much dearer something got; the two rungs are independent of one another, so their errors add up as squares. */
export function growthOf(base: Taken, shown: Taken): Taken {
  return { value: shown.value - base.value, half: base.half === null || shown.half === null ? null : Math.hypot(base.half, shown.half) };
}

/** Whether a growth may be nothing but chance. */
export function isUnsure({ value, half }: Taken): boolean {
  return half === null || Math.abs(value) <= half;
}

/** What times are divided by, and the rungs with their connections. */
export type Measured = Pick<Code, "per" | "rungs">;

/** A unit for a table of costs. */
export interface CostUnit { name: string; show: (micros: number) => string }

/** One that suits the largest of them. */
export function unitFor(of: Measured, largest: number): CostUnit {
  const per = of.per === "transaction" ? "tx" : "s";
  if (largest >= 10_000) return { name: `ms/${per}`, show: (micros) => number(micros / 1000) };
  if (largest >= 10) return { name: `µs/${per}`, show: number };
  return { name: `ns/${per}`, show: (micros) => number(micros * 1000) };
}

/** A growth with its sign, and a mark where it may be chance; nothing where nothing changed. */
export function growthText(growth: Taken, unit: CostUnit): string {
  if (growth.value === 0) return "";
  return `${growth.value > 0 ? "+" : ""}${unit.show(growth.value)}${isUnsure(growth) ? "?" : ""}`;
}

/** A time with its interval. */
export function withInterval({ value, half }: Taken, unit: CostUnit): string {
  const between = half === null ? "" : ` (${unit.show(Math.max(0, value - half))} – ${unit.show(value + half)})`;
  return `${unit.show(value)}${between} ${unit.name}`;
}

/** Where something was measured: at a rung, or in the watch. */
export function place(of: Measured, rung: number): string {
  return typeof of.rungs[rung]?.[0] === "number" ? `at ${rungName(of, rung)}` : "in the watch";
}

/** A rung by its name. */
export function rungName(of: Measured, rung: number): string {
  const connections = of.rungs[rung]?.[0];
  return typeof connections === "number" ? counted(connections, "connection") : "the watch";
}
