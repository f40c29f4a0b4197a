/** The flame graph: where a transaction's time goes at a rung, call path by call path, and what of it grew since another. */

import type { Report } from "./data.ts";
import { h, section } from "./element.ts";
import { cutOfRung } from "./flameCut.ts";
import { packedProfile, unpack, type Profile, type ProfiledRung } from "./flameData.ts";
import { linkOf, writeLink } from "./flameLink.ts";
import { isOnCpu } from "./flameKey.ts";
import { flameView } from "./flameView.ts";
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
  return profile.rungs.filter((rung) => rung.visits.some(({ starts }) => starts.at(-1)! > starts[0]!));
}

function graph(profile: Profile, report: Report): Node[] {
  const sampled = sampledRungs(profile);
  const last = sampled.at(-1);
  if (!last) return [];
  const numbers = sampled.map((rung) => rung.connections).filter((one) => one !== null);
  const best = cheapest(report, numbers.slice(0, -1));
  const select = (id: string, none: boolean) => h("select", { id },
    none ? h("option", { value: "" }, "nothing") : null,
    numbers.map((connections) => h("option", { value: connections }, counted(connections, "connection"))));
  const shown = select("flame-shown", false);
  const base = select("flame-base", true);
  const swap = h("button", { type: "button", title: "The other way round: what is gone has a width then", click: () => {
    if (base.value === "") return;
    [shown.value, base.value] = [base.value, shown.value];
    update(true);
  } }, "swap");
  const busy = areBusy(report, last.connections);
  const rung = (value: string): ProfiledRung | undefined => sampled.find((one) => String(one.connections) === value);
  const named = (one: ProfiledRung) => (one.connections === null ? "this server" : counted(one.connections, "connection"));
  const view = flameView(profile, "flame-graph", usualStates(busy), (step) => link(step));
  const link = (step: boolean) => writeLink("flame", { rung: shown.value, base: base.value || "none", ...view.values() }, step);
  const draw = () => {
    const [one, other] = [rung(shown.value) ?? last, rung(base.value)];
    const compared = other && other !== one ? cutOfRung(profile, other, named(other)) : null;
    view.show(cutOfRung(profile, one, named(one)), compared, profile.per);
  };
  const update = (step: boolean) => {
    draw();
    link(step);
  };
  const restore = () => {
    const values = linkOf("flame");
    if (values === null) return;
    const [one, other] = [values.get("rung") ?? "", values.get("base") ?? String(best ?? "")];
    shown.value = rung(one) ? one : String(last.connections ?? "");
    base.value = rung(other) ? other : "";
    draw();
    view.restore(values);
    if (location.hash !== "") document.getElementById("flame")?.scrollIntoView();
  };
  shown.value = String(last.connections ?? "");
  base.value = String(best ?? "");
  for (const one of [shown, base]) one.addEventListener("change", () => update(true));
  addEventListener("popstate", restore);
  const first = busy ? ` CPUs were busy at ${counted(last.connections ?? 0, "connection")}: waiting loses nothing then, since somebody else runs meanwhile, so only time on a CPU is shown at first.` : "";
  const words = profile.per === "transaction"
    ? "Width is time per transaction of the threads that serve the load; colour is what became of it since the rung that it is compared with. The frames of a state add up to the ledger above."
    : "Width is thread-seconds per second: how many threads were there on average.";
  queueMicrotask(() => {
    draw();
    if (location.hash !== "") restore();
    requestAnimationFrame(() => performance.mark("flame graph drawn"));
  });
  return [
    h("p", { class: "lead" }, words + first),
    numbers.length > 1 ? h("div", { class: "flame-bar" }, h("label", { for: shown.id }, "Width: time at"), shown, h("label", { for: base.id }, "Colour: growth since"), base, swap) : "",
    view.element,
  ].filter((one): one is HTMLElement => one !== "");
}

/** What is shown at first: with busy CPUs what uses them, else all but waits for the client. */
export function usualStates(busy: boolean): (present: string[]) => string[] {
  return (present) => {
    const chosen = present.filter((state) => (busy ? isOnCpu(state) : state !== "net"));
    return chosen.length > 0 ? chosen : present;
  };
}

/** From this part of the CPUs on they count as busy, as in crates/analysis/src/findings.rs. */
const busyShare = 0.9;

/** Whether CPUs were busy at a rung, by the machine's account or by the server's. */
export function areBusy({ summary: { rungs } }: Report, connections: number | null): boolean {
  const rung = rungs.find((one) => one.connections === connections);
  return Math.max(rung?.busy_share ?? 0, rung?.iron_law?.utilisation ?? 0) >= busyShare;
}

/** The rung with the best throughput per connection. */
function cheapest({ summary: { rungs } }: Report, among: number[]): number | null {
  const of = (connections: number) => (rungs.find((rung) => rung.connections === connections)?.throughput.value ?? 0) / connections;
  return among.reduce<number | null>((best, one) => (best === null || of(one) > of(best) ? one : best), null);
}
