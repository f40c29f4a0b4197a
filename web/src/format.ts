/** Figures as people read them: thousands set apart, as many digits as the figure deserves, units beside them. */

/** Stands for a figure that is not known. */
export const unknown = "–";
const thin = "\u202f";

export type Figure = number | null | undefined;

export function isKnown(value: Figure): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function grouped(digits: string): string {
  const [whole = "", fraction] = digits.replace("-", "−").split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+(?!\d))/g, thin);
  return fraction === undefined ? spaced : `${spaced}.${fraction}`;
}

/** About three significant digits, four from a thousand up: 13 300, 412, 4.07, 0.0312. */
export function number(value: Figure): string {
  if (!isKnown(value)) return unknown;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 999.5) {
    const unit = 10 ** Math.max(0, Math.floor(Math.log10(size)) - 3);
    return grouped((Math.round(value / unit) * unit).toFixed(0));
  }
  const decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : size >= 0.09995 ? 3 : size >= 0.009995 ? 4 : 5;
  const text = value.toFixed(decimals);
  return Number(text) === 0 ? "0" : grouped(text);
}

/** A mark of an axis: no zeros at its end. */
export function tick(text: string): string {
  return text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");
}

/** A whole number, every digit of it. */
export function count(value: Figure): string {
  return isKnown(value) ? grouped(Math.round(value).toString()) : unknown;
}

/** With an SI prefix and a unit: 310 k, 1.24 MB/s. */
export function si(value: Figure, unit = ""): string {
  if (!isKnown(value)) return unknown;
  const steps: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const size = Math.abs(value);
  const [divisor, prefix] = size < 9999.5 && !unit.startsWith("B") ? [1, ""] as const
    : steps.find(([step]) => size >= step * 0.9995) ?? [1, ""] as const;
  const tail = prefix + unit;
  return number(value / divisor) + (tail ? thin + tail : "");
}

/** An amount: every digit up to 100 000, a prefix from there. */
export function amount(value: Figure): string {
  return isKnown(value) && Math.abs(value) >= 1e5 ? si(value) : number(value);
}

/** A share as a percentage, one decimal where it is small. */
export function percent(share: Figure, decimals?: number): string {
  if (!isKnown(share)) return unknown;
  const value = share * 100;
  const text = value.toFixed(decimals ?? (Math.abs(value) < 9.995 ? 1 : 0));
  return grouped(Number(text) === 0 ? text.replace("-", "") : text) + thin + "%";
}

/** A change as a percentage with its sign. */
export function signedPercent(share: Figure): string {
  if (!isKnown(share)) return unknown;
  return (share > 0 ? "+" : "") + percent(share);
}

/** A ratio: ×2.08. */
export function times(ratio: Figure): string {
  return isKnown(ratio) ? `×${ratio.toFixed(ratio >= 9.95 ? 1 : 2)}` : unknown;
}

/** Memory: 16 GiB. */
export function bytes(value: Figure): string {
  if (!isKnown(value)) return unknown;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10)));
  return number(value / 1024 ** power) + thin + units[power];
}

/** A latency given in milliseconds, in the unit that suits it. */
export function milliseconds(value: Figure): string {
  if (!isKnown(value)) return unknown;
  if (value >= 9_999.5) return number(value / 1000) + thin + "s";
  if (value > 0 && value < 0.0995) return number(value * 1000) + thin + "µs";
  return number(value) + thin + "ms";
}

/** The time of day and day of an RFC 3339 time, in UTC. */
export function moment(text: string): string {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  return at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" }) + " UTC";
}

/** How long it took between two RFC 3339 times. */
export function between(from: string, to: string): string {
  const seconds = Math.round((Date.parse(to) - Date.parse(from)) / 1000);
  if (!Number.isFinite(seconds)) return unknown;
  return seconds < 120 ? `${seconds}${thin}s` : `${Math.round(seconds / 60)}${thin}min`;
}

/** A word in the right number: 1 rung, 2 rungs. */
export function counted(value: number, word: string, plural = `${word}s`): string {
  return `${count(value)} ${value === 1 ? word : plural}`;
}
