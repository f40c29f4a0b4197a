/** The lines of the diagram of waits: as wide as there are threads, from box to box wherever these stand. */

import { s } from "./element.ts";

/** A line between two boxes; `weight` is 1 for the most threads at any lock. */
export interface Edge { from: string; to: string; weight: number; kind: "waits" | "held" | "woken" | "neither" | "chain" }

const widest = 20;
const narrowest = 1.25;

/** An SVG behind the boxes that is drawn anew whenever these move. */
export function edges(within: HTMLElement, boxOf: (id: string) => HTMLElement | null, lines: Edge[]): SVGElement {
  const drawing = s("svg", { class: "wait-edges", "aria-hidden": "true" });
  const draw = () => {
    const frame = within.getBoundingClientRect();
    if (frame.width === 0) return;
    drawing.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
    drawing.setAttribute("width", String(frame.width));
    drawing.setAttribute("height", String(frame.height));
    const ports = new Map<string, number>();
    const place = (id: string, onRight: boolean, width: number, other: string): [number, number] | null => {
      const rect = boxOf(id)?.getBoundingClientRect();
      if (!rect?.width) return null;
      const x = (onRight ? rect.right : rect.left) - frame.left;
      if (!id.endsWith("l")) return [x, rect.top - frame.top + rect.height / 2];
      // Lines that meet at a lock lie beside one another, in the order of what they lead to.
      const key = `${id}${onRight}`;
      const all = lines.filter((line) => line.kind !== "chain" && (line.from === id || line.to === id) && isRight(line, id) === onRight);
      const needed = all.reduce((sum, line) => sum + wide(line), 0);
      const start = ports.get(key) ?? rect.top - frame.top + Math.max(0, (rect.height - needed) / 2);
      ports.set(key, start + width);
      return other === "" ? null : [x, start + width / 2];
    };
    drawing.replaceChildren(...lines.flatMap((line) => {
      const width = wide(line);
      if (line.kind === "chain") return chain(line, frame, boxOf);
      const waits = line.kind === "waits";
      // Left to right, whichever way the arrow of the wait goes.
      const [left, right] = waits || line.kind === "held" ? [line.from, line.to] : [line.to, line.from];
      const begin = place(left, true, width, right);
      const end = place(right, false, width, left);
      if (!begin || !end) return [];
      const middle = (begin[0] + end[0]) / 2;
      return [s("path", { class: `wait-edge ${line.kind}`, "data-from": line.from, "data-to": line.to, "stroke-width": width,
        d: `M${begin[0]} ${begin[1]}C${middle} ${begin[1]} ${middle} ${end[1]} ${end[0]} ${end[1]}` })];
    }));
  };
  new ResizeObserver(draw).observe(within);
  return drawing;
}

function isRight(line: Edge, lock: string): boolean {
  return line.kind !== "waits" && (line.from === lock || line.to === lock);
}

function wide(line: Edge): number {
  return Math.max(narrowest, line.weight * widest);
}

/** From a holder back to the lock that it waits for itself, with an arrow. */
function chain(line: Edge, frame: DOMRect, boxOf: (id: string) => HTMLElement | null): SVGElement[] {
  const [holder, lock] = [boxOf(line.from)?.getBoundingClientRect(), boxOf(line.to)?.getBoundingClientRect()];
  if (!holder?.width || !lock?.width) return [];
  const [x, y] = [holder.left - frame.left, holder.bottom - frame.top - 7];
  const [toX, toY] = [lock.right - frame.left, (holder.top > lock.top ? lock.bottom - 9 : lock.top + 9) - frame.top];
  const middle = (x + toX) / 2;
  return [
    s("path", { class: "wait-edge chain", "data-from": line.from, "data-to": line.to, d: `M${x} ${y}C${middle} ${y} ${middle} ${toY} ${toX + 7} ${toY}` }),
    s("path", { class: "wait-arrow", d: `M${toX + 1} ${toY}l8 -4v8z` }),
  ];
}
