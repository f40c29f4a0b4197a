/** Names and units of counters, from the names the bundle gives them. */

import { amount, number, si } from "./format.ts";

/** How a counter is shown. */
export interface Counter { name: string; title: string; unit: string; show: (value: number) => string }

const groups: Record<string, string> = {
  server: "Server", client: "Client", machine: "Machine", other: "Other programs", hw: "Hardware", disk: "Disk", net: "Network", status: "Server status",
};

/** The group a counter stands in. */
export function groupOf(name: string): string {
  const prefix = name.split(".")[0] ?? "";
  return groups[prefix] ?? prefix;
}

/** Whether a counter counts seconds. */
function isTime(name: string): boolean {
  return /_seconds(_by_\w+)?$/.test(name);
}

/** What a counter is called and its unit as a rate (or level) in a second. */
export function counterBySecond(name: string): Counter {
  const level = name.endsWith("_level");
  const bare = name.replace(/^[a-z]+\./, "").replace(/_level$/, "");
  const words = (text: string) => (name.startsWith("status.") ? text : text.replaceAll("_", " ").replace(/\bcpu\b/g, "CPU").replace(/^./, (first) => first.toUpperCase()));
  if (isTime(bare)) {
    return { name, title: words(bare.replace(/_seconds(?=$|_by_)/, "")), unit: level ? "seconds" : "CPUs (seconds per second)", show: number };
  }
  if (/(^|_)bytes$/.test(bare)) {
    const unit = level ? "B" : "B/s";
    return { name, title: words(bare), unit: level ? "bytes" : "bytes per second", show: (value) => si(value, unit) };
  }
  return { name, title: words(bare), unit: level ? "level" : "per second", show: amount };
}

/** What a counter is called and its unit for one transaction. */
export function counterByTransaction(name: string): Counter {
  const found = counterBySecond(name);
  if (isTime(name)) return { ...found, unit: "µs/tx", show: (value) => number(value * 1e6) };
  if (/(^|[._])bytes$/.test(name)) return { ...found, unit: "per tx", show: (value) => si(value, "B") };
  return { ...found, unit: "per tx" };
}
