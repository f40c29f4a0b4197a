// Figures are written alike everywhere: src/format.ts by itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const built = await build({ entryPoints: [new URL("../src/format.ts", import.meta.url).pathname], bundle: true, write: false, format: "esm" });
const format = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
const thin = "\u202f";

test("digits follow the size of a figure", () => {
  const cases = [[13287.6, `13${thin}290`], [1234567, `1${thin}235${thin}000`], [412.3, "412"], [99.97, "100"], [4.067, "4.07"], [0.0312, "0.0312"], [0, "0"], [-1500, `−1${thin}500`], [1e-9, "0"], [null, "–"], [NaN, "–"]];
  for (const [value, text] of cases) assert.equal(format.number(value), text);
});

test("units and prefixes", () => {
  assert.equal(format.si(310000), `310${thin}k`);
  assert.equal(format.si(2.85e9, "Hz"), `2.85${thin}GHz`);
  assert.equal(format.si(4200, "B/s"), `4.20${thin}kB/s`);
  assert.equal(format.bytes(16 * 2 ** 30), `16.0${thin}GiB`);
  assert.equal(format.milliseconds(0.0123), `12.3${thin}µs`);
  assert.equal(format.milliseconds(12345), `12.3${thin}s`);
  assert.equal(format.percent(0.0041), `0.4${thin}%`);
  assert.equal(format.percent(0.49), `49${thin}%`);
  assert.equal(format.percent(-0.0001), `0.0${thin}%`);
  assert.equal(format.signedPercent(-0.511), `−51${thin}%`);
  assert.equal(format.times(2.081), "×2.08");
});

test("marks of an axis end in no zero", () => {
  const cases = [["1.00", "1"], ["0.500", "0.5"], ["100", "100"], [`10.0${thin}ms`, `10${thin}ms`], [`14${thin}000`, `14${thin}000`], [`2.50${thin}GHz`, `2.5${thin}GHz`]];
  for (const [text, mark] of cases) assert.equal(format.tick(text), mark);
});
