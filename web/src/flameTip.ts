/** The words beside the pointer or the keyboard's frame. */

import { h } from "./element.ts";

export interface FlameTip {
  element: HTMLElement;
  /** Says the same to a screen reader. */
  spoken: HTMLElement;
  hide(): void;
  /** Shows lines beside a frame, within a room; the first line is its name. Said aloud where the keyboard led there. */
  show(lines: string[], frame: DOMRect, room: DOMRect, byKeyboard: boolean): void;
}

export function flameTip(): FlameTip {
  const element = h("div", { class: "flame-tip", hidden: true, "aria-hidden": "true" });
  const spoken = h("p", { class: "hidden", "aria-live": "polite" });
  return {
    element, spoken,
    hide: () => { element.hidden = true; },
    show(lines, frame, room, byKeyboard) {
      element.hidden = false;
      element.replaceChildren(...lines.map((line, at) => h("div", { class: at === 0 ? "flame-name" : null }, line)));
      if (byKeyboard) spoken.textContent = lines.join(". ");
      const left = Math.min(frame.left + 12, room.right - element.offsetWidth);
      const below = frame.bottom + 8 + element.offsetHeight < innerHeight;
      element.style.left = `${Math.max(0, left - room.left)}px`;
      element.style.top = `${(below ? frame.bottom + 8 : frame.top - 8 - element.offsetHeight) - room.top}px`;
    },
  };
}
