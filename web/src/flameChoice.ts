/** What the reader chose in a flame graph, and how a link says it. */

export type View = "callees" | "callers" | "around";

/** All that the reader chose in a graph. */
export interface Choice {
  view: View;
  /** The function whose callers and callees are shown. */
  around: string;
  /** Which of two panes is zoomed, and the path in it. */
  zoomedPane: number;
  zoom: string;
  words: string;
  states: Set<string>;
  split: boolean;
  upwards: boolean;
  colour: "growth" | "name";
}

/** What is chosen at first. */
export function atFirst(states: Set<string>): Choice {
  return { view: "callees", around: "", zoomedPane: 0, zoom: "", words: "", states, split: true, upwards: false, colour: "growth" };
}

/** The choice as values of a link: what is as at first is left out. */
export function valuesOf(choice: Choice, usual: Set<string>): Record<string, string> {
  return {
    view: choice.view === "callees" ? "" : choice.view,
    around: choice.view === "around" ? choice.around : "",
    zoom: choice.zoom && `${choice.zoomedPane}${choice.zoom}`,
    search: choice.words,
    states: same(choice.states, usual) ? "" : [...choice.states].join("."),
    split: choice.split ? "" : "no",
    flip: choice.upwards ? "yes" : "",
    colour: choice.colour === "growth" ? "" : choice.colour,
  };
}

/** The choice that a link says; functions and states that are not there are left out. */
export function choiceOf(values: URLSearchParams, functions: string[], present: string[], usual: Set<string>): Choice {
  const view = values.get("view");
  const zoom = values.get("zoom") ?? "";
  const states = values.get("states");
  return {
    view: view === "callers" || (view === "around" && functions.includes(values.get("around") ?? "")) ? view : "callees",
    around: values.get("around") ?? "", zoomedPane: zoom.startsWith("1") ? 1 : 0, zoom: zoom.slice(1), words: values.get("search") ?? "",
    states: states === null ? usual : new Set(states.split(".").filter((state) => present.includes(state))),
    split: values.get("split") !== "no", upwards: values.get("flip") === "yes", colour: values.get("colour") === "name" ? "name" : "growth",
  };
}

function same(one: Set<string>, other: Set<string>): boolean {
  return one.size === other.size && [...one].every((value) => other.has(value));
}
