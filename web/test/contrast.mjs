// Contrast of all text that can be seen, by the formula of WCAG 2.

/** Texts whose contrast with what is behind them is below the limit, each once. */
export function faintTexts(page, limit) {
  return page.evaluate((limit) => {
    const parse = (colour) => {
      const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
      return { r, g, b, a };
    };
    const luminance = ({ r, g, b }) => {
      const [x, y, z] = [r, g, b].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const contrast = (one, other) => {
      const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
      return (high + 0.05) / (low + 0.05);
    };
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = parse(getComputedStyle(at).backgroundColor);
        if (colour.a === 1) return colour;
      }
      return { r: 255, g: 255, b: 255, a: 1 };
    };
    const faint = new Map();
    for (const element of document.querySelectorAll("body *")) {
      const words = [...element.childNodes].filter((node) => node.nodeType === 3 && node.textContent.trim());
      if (!words.length || !element.checkVisibility() || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName)) continue;
      const found = contrast(parse(getComputedStyle(element).color), behind(element));
      if (found < limit) faint.set(`${element.tagName}.${element.className}`, `${found.toFixed(2)} “${words[0].textContent.trim().slice(0, 30)}”`);
    }
    const style = getComputedStyle(document.documentElement);
    const canvas = document.createElement("canvas").getContext("2d");
    const named = (name) => {
      canvas.fillStyle = style.getPropertyValue(name).trim();
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
      return { r, g, b };
    };
    for (const name of ["--text", "--muted", "--blue", "--vermilion", "--green", "--purple", "--amber"]) {
      for (const ground of ["--paper", "--shade"]) {
        const found = contrast(named(name), named(ground));
        if (found < limit) faint.set(`${name} on ${ground}`, found.toFixed(2));
      }
    }
    return [...faint].map(([what, why]) => `${what}: ${why}`);
  }, limit);
}
