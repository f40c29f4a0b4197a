/** The flame graph: where a transaction's time goes at a rung, call path by call path, and what of it grew since another. */

import type { Report } from "./data.ts";
import { h, section } from "./element.ts";
import { packedProfile, unpack, type Profile, type ProfiledRung } from "./flameData.ts";
import { isOnCpu } from "./flameKey.ts";
import { flamePair } from "./flamePair.ts";
import { counted } from "./format.ts";

/** The samples, unpacked once for all who show them; null where the page holds none. */
let unpacked: Promise<Profile> | null = null;
export function profile(): Promise<Profile> | null {
  const text = unpacked === null ? packedProfile() : null;
  if (text !== null) unpacked = unpack(text);
  return unpacked;
}

/** Fills a part of the page once the samples are unpacked, or says why that cannot be. */
export function filled(into: HTMLElement, ready: Promise<Profile>, make: (profile: Profile) => Node[]): HTMLElement {
  ready.then((found) => into.append(...make(found))).catch((problem: unknown) => {
    console.error(into.id, problem);
    into.append(h("p", { class: "incomplete" }, `This part could not be shown: ${problem instanceof Error ? problem.message : String(problem)}`));
  });
  return into;
}

/** The section; nothing where no stack was sampled. */
export function flame(report: Report): HTMLElement | null {
  const ready = profile();
  if (ready === null) return null;
  const title = report.summary.watch ? "Flame graph of the threads that serve clients" : "Flame graph of a transaction’s time";
  return filled(section("flame", title), ready, (found) => graph(found, report));
}

/** The rungs with samples. */
export function sampledRungs(profile: Profile): ProfiledRung[] {
  return profile.rungs.filter((rung) => rung.measurements.some(({ starts }) => starts.at(-1)! > starts[0]!));
}

function graph(profile: Profile, report: Report): Node[] {
  const sampled = sampledRungs(profile);
  const last = sampled.at(-1);
  if (!last) return [];
  const numbers = sampled.map((rung) => rung.connections).filter((one) => one !== null);
  const key = (connections: number | null) => String(connections ?? "");
  const named = (one: ProfiledRung) => (one.connections === null ? "this server" : counted(one.connections, "connection"));
  const busy = areBusy(report, last.connections);
  const first = busy ? ` CPUs were busy at ${counted(last.connections ?? 0, "connection")}: waiting loses nothing then, since somebody else runs meanwhile, so only time on a CPU is shown at first.` : "";
  const words = profile.per === "transaction"
    ? "Width is time per transaction of the threads that serve the load; colour is what became of it since the rung that it is compared with. The frames of a state add up to the ledger above."
    : "Width is thread-seconds per second: how many threads were there on average.";
  const all = sampled.map((rung) => ({ key: key(rung.connections), words: named(rung), rung }));
  const pair = flamePair(profile, all, all,
    { shown: key(last.connections), base: key(usualBase(report, numbers)) }, usualStates(busy));
  return [h("p", { class: "lead" }, words + first), ...pair.elements];
}

/** What is shown at first: with busy CPUs what uses them, else all but waits for the client. */
export function usualStates(busy: boolean): (present: string[]) => string[] {
  return (present) => {
    const chosen = present.filter((state) => (busy ? isOnCpu(state) : state !== "net"));
    return chosen.length > 0 ? chosen : present;
  };
}

/** From this part of the CPUs on they count as busy, and above this one what other programs took is more than interrupts, as in crates/analysis/src/findings.rs. */
const [busyShare, othersShare] = [0.9, 0.05];

/** Whether server and client kept the CPUs busy at a rung: as the scaling profile has it, or without one by the same rule. */
export function areBusy({ summary: { rungs, scaling } }: Report, connections: number | null): boolean {
  const told = scaling?.rungs.find((one) => one.connections === connections);
  if (told) return told.cpus_busy;
  const rung = rungs.find((one) => one.connections === connections);
  const others = rung?.noise_cpu_share ?? 0;
  return Math.max((rung?.busy_share ?? 0) - (others > othersShare ? others : 0), rung?.iron_law?.utilisation ?? 0) >= busyShare;
}

/** What the last rung is compared with at first: as the gravest finding that compares it does, else with the cheapest one before it. */
function usualBase(report: Report, numbers: number[]): number | null {
  const last = numbers.at(-1);
  const compared = report.summary.findings.find(({ rungs: [from, to] }) => from !== to && to === last && numbers.includes(from));
  return compared?.rungs[0] ?? cheapest(report, numbers.slice(0, -1));
}

/** The rung with the best throughput per connection. */
function cheapest({ summary: { rungs } }: Report, among: number[]): number | null {
  const of = (connections: number) => (rungs.find((rung) => rung.connections === connections)?.throughput.value ?? 0) / connections;
  return among.reduce<number | null>((best, one) => (best === null || of(one) > of(best) ? one : best), null);
}
