/** Light, dark and paper: which colours are in force, and who wants to know when they change. */

import { h } from "./element.ts";

/** Colours for the canvases, read from the style sheet. */
export interface Ink {
  paper: string; text: string; muted: string; rule: string; shade: string;
  blue: string; vermilion: string; green: string; purple: string; amber: string;
}

const names: (keyof Ink)[] = ["paper", "text", "muted", "rule", "shade", "blue", "vermilion", "green", "purple", "amber"];
const listeners = new Set<() => void>();
const root = document.documentElement;
const kept = "scaleprof-theme";

/** The colours in force. */
export function ink(): Ink {
  const style = getComputedStyle(root);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as unknown as Ink;
}

/** Calls back after the colours or the width of the page have changed. */
export function onRedraw(listener: () => void): void {
  listeners.add(listener);
}

function redraw(): void {
  for (const listener of listeners) listener();
}

function isDark(): boolean {
  const chosen = root.dataset["theme"];
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The button that changes between light and dark. */
export function themeButton(): HTMLElement {
  const button = h("button", { type: "button", class: "theme", id: "theme", click: () => choose(isDark() ? "light" : "dark") });
  const tell = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to ${isDark() ? "light" : "dark"} colours`);
  };
  onRedraw(tell);
  tell();
  return button;
}

function choose(theme: string): void {
  root.dataset["theme"] = theme;
  try {
    localStorage.setItem(kept, theme);
  } catch {
    // A page that was opened from a file may have no storage: the choice then lasts as long as the page.
  }
  redraw();
}

/** Follows the reader's choice, the system's and the printer's. */
export function startTheme(): void {
  try {
    const chosen = localStorage.getItem(kept);
    if (chosen === "dark" || chosen === "light") root.dataset["theme"] = chosen;
  } catch {
    // As above.
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const paper = matchMedia("print");
  const follow = (printing: boolean) => {
    if (root.classList.contains("printing") !== printing) {
      root.classList.toggle("printing", printing);
      redraw();
    }
  };
  paper.addEventListener("change", () => follow(paper.matches));
  addEventListener("beforeprint", () => follow(true));
  addEventListener("afterprint", () => follow(paper.matches));
  follow(paper.matches);
}
