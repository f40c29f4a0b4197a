/** A cache line drawn byte by byte: what lies in it, and what each part is to the others. */

import { h } from "./element.ts";
import type { Line, LinePlace } from "./lineData.ts";

/** What a role is called. */
export const roleNames: Record<LinePlace["role"], string> = {
  read_mostly: "only or mostly read", written: "written", lock: "a lock", address_passed: "address handed on", unused: "not touched while the server runs",
};

/** Pixels of a row. */
const row = 24;

/** A part of the line that a place covers; parts that overlap stand in rows below one another. */
export interface Part { place: LinePlace; number: number; from: number; to: number; row: number }

/** Where each place stands: its bytes within the line, and a row in which it covers nothing else. */
export function parts({ variables, bytes }: Pick<Line, "variables" | "bytes">): Part[] {
  const ends: number[] = [];
  return variables
    .map((place, number) => ({ place, number, from: Math.max(0, place.offset), to: Math.min(bytes, place.offset + Math.max(1, place.size)) }))
    .filter(({ from, to }) => to > from)
    .sort((a, b) => a.from - b.from || b.to - a.to)
    .map((part) => {
      const free = ends.findIndex((end) => end <= part.from);
      const at = free < 0 ? ends.length : free;
      ends[at] = part.to;
      return { ...part, row: at };
    });
}

/** The strip. `point` is called with the number of a place when the pointer is over it, and with null when it has left. */
export function strip(line: Line, point: (place: number | null) => void): HTMLElement {
  const drawn = parts(line);
  const share = (byte: number) => `${(byte / line.bytes) * 100}%`;
  const rows = Math.max(1, ...drawn.map((part) => part.row + 1));
  const boxes = drawn.map(({ place, number, from, to, row: at }) => {
    const box = h("span", {
      class: `line-part role-${place.role}`, "data-place": number, title: `${place.name}: ${place.size} bytes at ${signed(place.offset)}; ${roleNames[place.role]}`,
      pointerenter: () => point(number), pointerleave: () => point(null),
    }, place.name);
    box.style.left = share(from);
    box.style.width = share(to - from);
    box.style.top = `${at * row}px`;
    return box;
  });
  const numbers = Array.from({ length: line.bytes / 16 + 1 }, (_, at) => at * 16).map((byte) => {
    const number = h("span", { class: byte % 64 === 0 ? "line-number line-end" : "line-number" }, `+${byte}`);
    number.style.left = share(byte);
    return number;
  });
  const words = drawn.map(({ place }) => `${place.name} at ${signed(place.offset)}, ${roleNames[place.role]}`).join("; ");
  const element = h("div", { class: "line-strip", role: "img", "aria-label": `The ${line.bytes} bytes from ${line.address.toString(16)} on: ${words}` }, boxes, numbers);
  element.style.height = `${rows * row + 18}px`;
  return element;
}

/** Bytes from the start of the line, with a sign. */
export function signed(offset: number): string {
  return offset < 0 ? `−${-offset}` : `+${offset}`;
}
