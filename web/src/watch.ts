/** What the threads of a server did that was only watched: no load of ours, so nothing is per transaction. */

import type { Background, Report, StateSeconds, WatchedLock, WatchedThreads } from "./data.ts";
import { h, section } from "./element.ts";
import { count, isKnown, number, percent, signedPercent, unknown } from "./format.ts";
import { states } from "./ledger.ts";
import { imported } from "./subject.ts";
import { table, type Column } from "./table.ts";

interface Row { name: string; threads: number | null; times: StateSeconds; lifetime: number | null }

/** The section; nothing where a load of ours ran. */
export function watch({ manifest: { workload }, summary: { watch: found } }: Report): HTMLElement | null {
  if (!found) return null;
  const of = (name: string, { threads, seconds_per_second, lifetime_per_second }: WatchedThreads): Row =>
    ({ name, threads, times: seconds_per_second, lifetime: lifetime_per_second });
  const rows: Row[] = [
    of("serve clients", found.connections), ...(found.others.threads === 0 ? [] : [of("all others", found.others)]),
    ...found.background.map(({ name, threads, seconds_per_second }: Background) => ({ name: `of them ${name}`, threads, times: seconds_per_second, lifetime: null })),
  ];
  const used = states.filter(([state]) => rows.some(({ times }) => (times[state] ?? 0) > 0));
  return section("watch", "What the server’s threads did",
    h("p", { class: "lead" }, "Thread-seconds per second: how many threads were in each state on average. " +
      (imported(workload) ? "The number of transactions is unknown, so no figure is per transaction." : "The server ran under external load, so no figure is per transaction.")),
    table("Threads in each state on average", [
      { heading: "threads that", words: true, cell: (row) => row.name },
      { heading: "seen", cell: (row) => count(row.threads) },
      { heading: "alive", unit: "on average", cell: (row) => number(row.lifetime) },
      ...used.map(([state, name]): Column<Row> => ({ heading: name, unit: "threads", cell: (row) => number(row.times[state]) })),
    ], rows),
    h("ul", { class: "notes" },
      h("li", {}, `The server used ${isKnown(found.cpus_by_states) ? number(found.cpus_by_states) : "an unknown number of"} CPUs by the states of its threads and ${isKnown(found.cpus_by_scheduler) ? `${number(found.cpus_by_scheduler)} by the scheduler’s account (residual ${signedPercent(found.cpu_residual)})` : "an unknown number by the scheduler’s account"}.`),
      h("li", {}, `${count(found.samples)} samples, ${count(found.samples_lost)} lost; ${isKnown(found.complete_stacks_share) ? `${percent(found.complete_stacks_share)} of the stacks reach the thread’s first function` : "how far the stacks reach is not known"}.`)),
    found.locks.length ? [h("h3", {}, "Locks that were waited for longest"), locks(found.locks)] : null);
}

function locks(rows: WatchedLock[]): HTMLElement {
  return table("Locks that were waited for longest", [
    { heading: "lock", words: true, cell: (lock) => lock.name ?? { text: "(on the heap)", mark: "faint" } },
    { heading: "waiting", unit: "threads", cell: (lock) => number(lock.seconds_per_second.value) },
    { heading: "±", unit: "95\u202f%", cell: ({ seconds_per_second: { value, high } }) => (isKnown(high) ? number(high - value) : unknown) },
    { heading: "samples", cell: (lock) => count(lock.samples) },
  ], rows);
}
