/** Which rungs are judged. */

import type { Rung, Summary } from "./data.ts";

/** Without those that the client limited, which tell of the client; all where no other is left, as in crates/bundle/src/summary.rs. */
export function judgedRungs({ rungs }: Pick<Summary, "rungs">): Rung[] {
  const judged = rungs.filter((rung) => !rung.client_limited);
  return judged.length > 0 ? judged : rungs;
}
