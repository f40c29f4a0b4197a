/** What is said of locks, of those who wait for them, and of those who hold them. */

import type { Estimate } from "./data.ts";
import { count, counted, isKnown, number, percent } from "./format.ts";
import type { Holder, LockName, Rest, Waker, WaitRung } from "./waitData.ts";

/** A mean number of threads: 12.3 threads. */
export function threads(value: number): string {
  return `${number(value)} ${number(value) === "1" ? "thread" : "threads"}`;
}

/** The same with its interval. */
export function about({ value, low, high }: Estimate): string {
  return isKnown(low) && isKnown(high) ? `${threads(value)} (${number(low)} – ${number(high)})` : threads(value);
}

/** A lock in a few words. */
export function lockWords(lock: LockName, functions: string[]): string {
  if (lock.name !== null) return lock.name;
  if (!lock.is_seen) return "not seen for what";
  const where = functions[lock.waited_for_in[0] ?? -1];
  return where ? `a lock on the heap, for ${bare(where)}` : "a lock on the heap";
}

/** Which kind of lock it is, as far as its operations tell. */
export function kindWords(lock: LockName): string {
  if (!lock.is_seen) return "waits that began before the watch, or of which a recording tells no more";
  const kernel = lock.operations.find((operation) => operation.startsWith("kernel "));
  if (kernel) return `${kernel.replace("kernel ", "")} of the kernel`;
  return lock.module ?? "";
}

const doing: Record<string, string> = {
  cpu: "was on a CPU", spin: "was on a CPU, spinning", runq: "was queued for a CPU", lock: "waited for another lock", io: "waited for the disk",
  net: "waited for its client", sleep: "slept", other: "was blocked otherwise",
};

/** What a holder was doing. */
export function holderWords({ state, place }: Holder, by: WaitRung["holders_by"]): string {
  if (state !== null) return doing[state] ?? state;
  if (place === null) return "where it was could not be read";
  return by === "per_wait" ? "what it did is not known" : "what it did was not kept";
}

/** What ended waits. */
export function wakerWords({ kind, place }: Waker): string {
  if (kind === "kernel") return "the kernel: a timer or a device";
  if (kind === "other_process") return "another process";
  return place === null ? "a thread of the server, its place unknown" : "a thread of the server";
}

/** By what a function waits for a lock or gives it back: what it calls for that, and what that ends in. */
export function viaWords(path: string[], taker: string): string {
  const how = path.slice(path.lastIndexOf(taker) + 1);
  const [outer, inner] = [how[0], how.at(-1)];
  if (taker === "" || !outer || !inner) return "";
  return outer === inner ? `by ${bare(outer)}` : `by ${bare(outer)} … ${bare(inner)}`;
}

/** C++ without its parameters: what a few words can spare. */
export function bare(name: string): string {
  const kernel = name.endsWith(" [k]") ? " [k]" : "";
  const whole = name.slice(0, name.length - kernel.length).replace(/ const$/, "");
  if (!whole.endsWith(")")) return name;
  let depth = 0;
  for (let at = whole.length - 1; at > 0; at--) {
    if (whole[at] === ")") depth++;
    else if (whole[at] === "(") depth--;
    if (depth === 0) return whole.slice(0, at) + kernel;
  }
  return name;
}

/** A part of the waiting, in whole percent: little is not nothing. */
export function part(value: number, all: number): string {
  if (all <= 0) return percent(null);
  return value > 0 && value / all < 0.005 ? "< 1\u202f%" : percent(value / all, 0);
}

/** The three parts of waiting in words. */
export function knownWords([holder, waker, neither]: [number, number, number]): string {
  const all = holder + waker + neither;
  return `holder seen ${part(holder, all)}, only a waker ${part(waker, all)}, neither ${part(neither, all)}`;
}

/** What was left out: and 3 more (0.2 threads). */
export function restWords({ count: left, threads: mean }: Rest, one: string, several: string): string {
  return left > 0 ? `and ${counted(left, `more ${one}`, `more ${several}`)}: ${threads(mean)}` : "";
}

/** How many samples are behind a figure. */
export function sampleWords(samples: number): string {
  return `${count(samples)} ${samples === 1 ? "wait" : "waits"} sampled`;
}
