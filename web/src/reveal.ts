/** Brings a part of the page into view when its link was followed. */

import { profile } from "./flame.ts";

/** Once the parts above it are as high as they will be: they are filled when the samples are unpacked. */
export function reveal(element: HTMLElement): void {
  const show = () => element.scrollIntoView({ behavior: "instant" });
  // The heat map comes a frame later than the flame graph.
  const drawn = () => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(show)));
  Promise.resolve(profile()).then(drawn, drawn);
}

/** What a reader does who wants to be somewhere else. */
const ownWay = ["wheel", "touchstart", "pointerdown", "keydown"];

/**
 * Keeps the part that the address names where the browser scrolled to while parts above it are still filled or first laid out, in whatever
 * order they come: until the reader moves, or all is there. The way back leads to where he was, not to the part's beginning.
 */
export function holdPlace(): void {
  let stop = hold();
  let followed = false;
  addEventListener("click", ({ target }) => { followed = target instanceof Element && target.closest('a[href^="#"]') !== null; });
  addEventListener("hashchange", () => {
    stop();
    if (followed) stop = hold();
    followed = false;
  });
}

function hold(): () => void {
  const named = document.getElementById(location.hash.slice(1));
  if (!named) return () => {};
  const sizes = new ResizeObserver(() => named.scrollIntoView({ behavior: "instant" }));
  const { style } = document.documentElement;
  const stop = () => {
    clearTimeout(timer);
    sizes.disconnect();
    style.overflowAnchor = "";
    for (const one of ownWay) removeEventListener(one, stop);
  };
  // The browser's own way to keep what is seen where it is would move the page once more.
  style.overflowAnchor = "none";
  sizes.observe(document.body);
  for (const one of ownWay) addEventListener(one, stop, { passive: true });
  const timer = setTimeout(stop, 20_000);
  return stop;
}
