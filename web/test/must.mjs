// What a page must have: MUST names it, such as MUST=code,lines. Who tests a page that may lack it passes over what is about it.
import assert from "node:assert/strict";

const must = new Set((process.env.MUST ?? "").split(",").filter(Boolean));
const known = ["code", "findings", "flame", "gone", "lines", "paths", "thinned", "waits"];
for (const what of must) if (!known.includes(what)) throw new Error(`MUST names ${what}, which no test asks for: ${known.join(", ")}`);

/** Passes over a test of something that the page has not; an error where it must have that. */
export function lacking(t, what, why) {
  assert.ok(known.includes(what), what);
  assert.ok(!must.has(what), `this page must have ${what}: ${why}`);
  t.skip(why);
}
