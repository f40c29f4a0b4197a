/** Brings a part of the page into view when its link was followed. */

import { profile } from "./flame.ts";

/** Once the parts above it are as high as they will be: they are filled when the samples are unpacked. */
export function reveal(element: HTMLElement): void {
  const show = () => element.scrollIntoView({ behavior: "instant" });
  const drawn = () => requestAnimationFrame(() => requestAnimationFrame(show));
  Promise.resolve(profile()).then(drawn, drawn);
}
