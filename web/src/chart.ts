/** Charts that follow the width and the colours of the page, and say in words what they show. */

import uPlot from "uplot";
import { h, type Child } from "./element.ts";
import { ink, onRedraw, type Ink } from "./theme.ts";

/** What a chart draws; asked for again when colours or data change. */
export interface Plot {
  data: uPlot.AlignedData;
  options: Omit<uPlot.Options, "width" | "height">;
  /** What stands under the pointer, in words. */
  readout?: (index: number) => string;
}

/** A chart on the page. */
export interface Chart {
  element: HTMLElement;
  /** Draws it anew, with another description where given. */
  redraw(label?: string): void;
}

/** The charts by name, for tests that read what is drawn: `window.scaleprofCharts`. */
const drawn: Record<string, uPlot> = {};
Object.assign(window, { scaleprofCharts: drawn });

const all = new Set<() => void>();
onRedraw(() => all.forEach((draw) => draw()));

/** A chart of that height. It is drawn once the page gives it a width. */
export function chart(name: string, label: string, height: number, plot: (ink: Ink) => Plot | null): Chart {
  const canvas = h("div", { class: "chart", role: "img", "aria-label": label });
  const readout = h("p", { class: "readout", "aria-hidden": "true" });
  const element = h("div", { class: "chart-box" }, canvas, readout);
  let instance: uPlot | undefined;
  let width = 0;

  const draw = () => {
    if (width === 0) return;
    instance?.destroy();
    delete drawn[name];
    readout.textContent = "";
    const wanted = plot(ink());
    canvas.hidden = wanted === null;
    if (wanted === null) return;
    const told = wanted.readout;
    const setCursor = (u: uPlot) => {
      const index = u.cursor.idx;
      readout.textContent = told && index !== null && index !== undefined ? told(index) : "";
    };
    const options: uPlot.Options = {
      ...wanted.options,
      width,
      height,
      legend: { show: false },
      hooks: { ...wanted.options.hooks, setCursor: [setCursor] },
    };
    instance = new uPlot(options, wanted.data, canvas);
    drawn[name] = instance;
  };
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry?.contentRect.width ?? 0);
    if (now === width || now === 0) return;
    width = now;
    if (instance) instance.setSize({ width, height });
    else draw();
  }).observe(element);
  const measureAndDraw = () => {
    width = Math.floor(element.clientWidth) || width;
    draw();
  };
  all.add(measureAndDraw);
  return {
    element,
    redraw(text?: string) {
      if (text !== undefined) canvas.setAttribute("aria-label", text);
      draw();
    },
  };
}

/** A chart with its title above and, folded, its figures as a table below. */
export function figure(title: Child, body: Chart, table: () => HTMLElement, ...notes: Child[]): HTMLElement {
  return h("figure", {}, h("figcaption", {}, title), body.element, notes, folded("Figures as a table", table));
}

/** Something that is made only when the reader opens it. */
export function folded(title: string, make: () => HTMLElement): HTMLElement {
  const details = h("details", { class: "folded" }, h("summary", {}, title));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(make());
  });
  return details;
}
