/** What a frame's colour says: how much dearer it got, or whose code it is. */

/** The inks of a graph, read from the style sheet. */
export interface FlameInk {
  paper: string; text: string; line: string; same: string; more: string; less: string; hit: string; user: string; kernel: string; mark: string;
}

const names: Record<keyof FlameInk, string> = {
  paper: "--paper", text: "--text", line: "--paper", same: "--flame-same", more: "--flame-more", less: "--flame-less", hit: "--purple",
  user: "--flame-user", kernel: "--flame-kernel", mark: "--flame-mark",
};

export function flameInk(): FlameInk {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(Object.entries(names).map(([key, name]) => [key, style.getPropertyValue(name).trim()])) as unknown as FlameInk;
}

/**
 * From -1 (all of it is gone) over 0 (the same) to 1 (all of it is new): the change over the larger of the two. 0 where the
 * change is within `doubt`.
 */
export function growth(base: number, shown: number, doubt = 0): number {
  const larger = Math.max(base, shown);
  return larger > 0 && Math.abs(shown - base) > doubt ? (shown - base) / larger : 0;
}

const steps = 24;

/** Colours of growth, of which there are few, so that a canvas need not read thousands of them. */
export function growthColours(ink: FlameInk): (growth: number) => string {
  const scale = Array.from({ length: 2 * steps + 1 }, (_, at) => {
    const share = (at - steps) / steps;
    return mix(ink.same, share < 0 ? ink.less : ink.more, Math.abs(share));
  });
  return (growth) => scale[Math.round(growth * steps) + steps] ?? ink.same;
}

/** Colours by function: the same name is always the same shade, of the user's or of the kernel's colour. */
export function nameColours(ink: FlameInk): (name: string, isKernel: boolean) => string {
  const shades = (colour: string) => Array.from({ length: 8 }, (_, at) => mix(colour, ink.same, at / 12));
  const [user, kernel] = [shades(ink.user), shades(ink.kernel)];
  return (name, isKernel) => (isKernel ? kernel : user)[numberOf(name) % 8] ?? ink.same;
}

/** A number for a name, the same everywhere (FNV-1a, 32 bits). */
export function numberOf(name: string): number {
  let number = 0x811c9dc5;
  for (let at = 0; at < name.length; at++) number = Math.imul(number ^ name.charCodeAt(at), 0x01000193);
  return number >>> 0;
}

/** Between two colours, both written as #rrggbb. */
export function mix(from: string, to: string, share: number): string {
  const part = (colour: string, at: number) => parseInt(colour.slice(at, at + 2), 16);
  const mixed = [1, 3, 5].map((at) => Math.round(part(from, at) + (part(to, at) - part(from, at)) * share));
  return `#${mixed.map((one) => one.toString(16).padStart(2, "0")).join("")}`;
}
