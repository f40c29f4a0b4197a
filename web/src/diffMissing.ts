/** Why a comparison lacks something, run by run. */

import { called, type Diff } from "./diffData.ts";

/** Why a run has no call paths. */
export function whyNoStacks(diff: Diff, side: 0 | 1): string {
  return `${called(diff, side)} has no call paths: ${reason(diff, side, ["ledger", "paths"]) ?? "no stack of a connection thread was sampled"}.`;
}

/** Why there are no states at any rung. */
export function whyNoStates(diff: Diff): string {
  const reasons = ([0, 1] as const).flatMap((side) => {
    const why = reason(diff, side, ["ledger"]);
    return why === undefined ? [] : [`${called(diff, side)}: ${why}`];
  });
  return `Not shown: ${reasons.length > 0 ? reasons.join("; ") : "the server’s threads were not watched in both runs"}.`;
}

function reason({ runs }: Diff, side: 0 | 1, figures: string[]): string | undefined {
  return figures.flatMap((figure) => runs[side].missing.find((one) => one.figure === figure) ?? [])[0]?.reason;
}
