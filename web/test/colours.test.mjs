// What the flame graph says by colour and place: growth, the kernel, what is gone, and which way up. REPORT names the file.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { lacking } from "./must.mjs";
import { drawnFrames, open, openAnew } from "./opened.mjs";
import { ownTimes, samplesOf, withCallees } from "./samples.mjs";

const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").replace(/\s+/g, " ").trim();
const rowHeight = 18;
const all = "cpu.spin.runq.lock.io.net.sleep.other";

describe("flame graph's colours", () => {
  let opened;
  let page;
  let samples;
  let rungs;
  const frames = () => drawnFrames(page);
  const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const go = async (hash) => {
    await openAnew(page, hash);
    await page.waitForFunction(() => window.scaleprofFlames?.["flame-graph"]?.()[0]?.length > 0);
    await settled();
  };
  /** The colour of a frame on the canvas, from its top row of pixels and from its bottom one, where no text stands. */
  const pixels = (some, upwards = false) => page.evaluate(([some, upwards, rowHeight]) => {
    const canvas = document.querySelector("#flame-graph-pane-0 canvas");
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const rows = canvas.height / 2 / rowHeight;
    const at = (x, y) => [...context.getImageData(Math.round(x * 2), Math.round(y * 2), 1, 1).data].slice(0, 3);
    return some.map(({ x, width, row }) => {
      const top = (upwards ? rows - 1 - row : row) * rowHeight;
      return { top: at(x + width - 4, top + 1), bottom: at(x + width - 4, top + rowHeight - 2) };
    });
  }, [some, upwards, rowHeight]);
  const inks = () => page.evaluate(() => {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => [1, 3, 5].map((at) => parseInt(style.getPropertyValue(name).trim().slice(at, at + 2), 16));
    return { same: read("--flame-same"), more: read("--flame-more"), less: read("--flame-less"), mark: read("--flame-mark") };
  });
  const alike = (one, other) => one.every((part, at) => Math.abs(part - other[at]) <= 3);
  const wide = (some) => some.filter(({ width, row }) => width > 14 && row > 0);
  before(async () => {
    opened = await open();
    ({ page } = opened);
    samples = samplesOf(await page.textContent("#profile"));
    rungs = samples?.header.rungs.filter((rung) => rung.measurements.some(({ all }) => all.some((count) => count > 0))).map(({ connections }) => connections) ?? [];
  });
  after(() => opened?.close());

  test("say how much dearer a frame got, and nothing where that may be chance", async (t) => {
    if (rungs.length < 2) return lacking(t, "flame", "no two rungs with samples");
    await go(`#flame:rung=${rungs.at(-1)}&base=${rungs[0]}&states=${all}`);
    const ink = await inks();
    const some = wide(await frames());
    const read = await pixels(some);
    const seen = { more: 0, less: 0, same: 0 };
    for (const [at, frame] of some.entries()) {
      const change = frame.shown - frame.base;
      const share = Math.abs(change) > (frame.half ?? 0) ? change / Math.max(frame.shown, frame.base) : 0;
      const step = Math.round(share * 24) / 24;
      const expected = ink.same.map((part, one) => Math.round(part + ((step < 0 ? ink.less : ink.more)[one] - part) * Math.abs(step)));
      assert.ok(alike(read[at].top, expected), `${frame.name}: ${read[at].top}, not ${expected}, for ${frame.base} and ${frame.shown}`);
      seen[step > 0 ? "more" : step < 0 ? "less" : "same"]++;
    }
    t.diagnostic(JSON.stringify(seen));
    assert.ok(seen.more > 0, "something grew from the first rung to the last");
    await page.getByRole("button", { name: "colour by growth" }).click();
    await settled();
    const named = await pixels(some);
    assert.ok(some.some((_, at) => !alike(named[at].top, read[at].top)), "colours by name are others");
    assert.match(await page.evaluate(() => location.hash), /colour=name/);
  });

  test("mark what the kernel does, and nothing else", async (t) => {
    if (!samples) return lacking(t, "flame", "no stack was sampled");
    await go(`#flame:states=${all}&split=no&search=`);
    const ink = await inks();
    const some = wide(await frames());
    const read = await pixels(some);
    for (const [at, { name }] of some.entries()) assert.equal(alike(read[at].bottom, ink.mark), name.endsWith(" [k]"), name);
    if (!samples.header.functions.some((name) => name.endsWith(" [k]"))) return lacking(t, "flame", "no function of the kernel");
    // Wide enough to be looked at, if need be by zooming to the kernel's part.
    const inKernel = (await frames()).filter(({ name, row }) => row > 0 && name.endsWith(" [k]")).sort((a, b) => b.width - a.width)[0];
    assert.ok(inKernel, "some frame of the kernel is drawn");
    await page.locator("#flame-graph-pane-0 canvas").click({ position: { x: inKernel.x + inKernel.width / 2, y: inKernel.row * rowHeight + 9 } });
    await settled();
    const zoomed = wide(await frames()).filter(({ name }) => name.endsWith(" [k]"));
    assert.ok(zoomed.length > 0);
    for (const [at, one] of (await pixels(zoomed)).entries()) assert.ok(alike(one.bottom, ink.mark), zoomed[at].name);
  });

  test("flipped, the outermost function stands below, and a click finds the frame that is there", async (t) => {
    if (!samples) return lacking(t, "flame", "no stack was sampled");
    await go("#flame:split=no");
    const before = await frames();
    await page.getByRole("button", { name: "flip" }).click();
    await settled();
    assert.equal(await page.getByRole("button", { name: "flip" }).getAttribute("aria-pressed"), "true");
    const flipped = await frames();
    assert.deepEqual(flipped.map(({ frame, x, width, row }) => [frame, x, width, row]), before.map(({ frame, x, width, row }) => [frame, x, width, row]));
    const rows = await page.evaluate((rowHeight) => document.querySelector("#flame-graph-pane-0 canvas").height / 2 / rowHeight, rowHeight);
    const wanted = wide(flipped).filter(({ row, width }) => row > 1 && width < flipped[0].width * 0.8 && row !== rows - 1 - row).sort((a, b) => b.width - a.width)[0];
    if (!wanted) return lacking(t, "flame", "one call path only");
    await page.locator("#flame-graph-pane-0 canvas").click({ position: { x: wanted.x + wanted.width / 2, y: (rows - 1 - wanted.row) * rowHeight + 9 } });
    await settled();
    const zoomed = (await frames()).find(({ frame }) => frame === wanted.frame);
    assert.ok(Math.abs(zoomed.width - flipped[0].width) < 1e-6, "as wide as the canvas");
    const hash = await page.evaluate(() => location.hash);
    assert.match(hash, /flip=yes/);
    const now = await frames();
    await go(hash);
    assert.deepEqual(await frames(), now, "the address brings the same view back");
    assert.equal(await page.getByRole("button", { name: "flip" }).getAttribute("aria-pressed"), "true");
  });

  test("frames that are gone are told, each once and with what is within it", async (t) => {
    if (rungs.length < 2) return lacking(t, "flame", "no two rungs with samples");
    const times = ownTimes(samples);
    const of = (connections) => times.find((rung) => rung.connections === connections);
    const amount = (connections) => samples.header.rungs.find((rung) => rung.connections === connections).counted.reduce((sum, [, , one]) => sum + one, 0);
    const { depth, function: functionOf } = samples.columns;
    let told = 0;
    for (const [shown, base] of [[rungs[0], rungs.at(-1)], [rungs.at(-1), rungs[0]]]) {
      const expected = [];
      samples.header.states.forEach((_, state) => {
        const [now, then] = [shown, base].map((one) => withCallees(samples, of(one).states[state]));
        if (!now.some((time) => time > 0)) {
          if (then.some((time) => time > 0)) expected.push({ name: null, time: then.reduce((sum, time, node) => sum + (depth[node] === 0 ? time : 0), 0) / amount(base) });
          return;
        }
        for (let node = 0; node < depth.length; node++) {
          if (now[node] > 0 || then[node] === 0) continue;
          expected.push({ name: samples.header.functions[functionOf[node]], time: then[node] / amount(base) });
          const outer = depth[node];
          while (node + 1 < depth.length && depth[node + 1] > outer) node++;
        }
      });
      await go(`#flame:rung=${shown}&base=${base}&states=${all}`);
      const fold = page.locator("#flame-graph .flame-gone");
      assert.equal(await fold.isVisible(), expected.length > 0);
      if (expected.length === 0) continue;
      told++;
      const words = plain(await fold.locator("summary").textContent());
      assert.ok(words.replace(/(\d) (\d)/g, "$1$2").includes(`: ${expected.length} call path`), `${words}, expected ${expected.length}`);
      await fold.locator("summary").press("Enter");
      await fold.locator("tbody tr").first().waitFor();
      assert.equal(await fold.locator("tbody tr").count(), Math.min(40, expected.length));
      const heaviest = expected.sort((a, b) => b.time - a.time)[0];
      if (heaviest.name) assert.equal(plain(await fold.locator("tbody tr").first().locator("th").textContent()), plain(heaviest.name));
    }
    t.diagnostic(`${told} of 2 comparisons have call paths that are gone`);
    if (told === 0) lacking(t, "gone", "no call path is gone");
  });

  test("says how many samples are kept where not all are, and only there", async (t) => {
    if (!samples) return lacking(t, "flame", "no stack was sampled");
    const measurements = samples.header.rungs.flatMap((rung) => rung.measurements);
    const sum = (of) => measurements.flatMap(of).reduce((one, other) => one + other, 0);
    const [kept, taken] = [sum(({ samples: some }) => some), sum(({ all: some }) => some)];
    assert.equal(await page.locator("#thinning").count(), kept < taken ? 1 : 0);
    t.diagnostic(`${kept} of ${taken} samples are kept`);
    if (kept === taken) return lacking(t, "thinned", "all samples are kept");
    assert.ok(kept <= 400_000, `${kept}`);
    const said = plain(await page.textContent("#thinning")).replace(/(\d) (?=\d{3}\b)/g, "$1");
    assert.ok(said.includes(`${kept} of ${taken} samples are kept`), said);
    await go(`#heatmap:range=100-160&count=${all}`);
    assert.match(plain(await page.textContent("#heatmap-range")), /of [\d ]+ samples are kept/);
  });

  test("complains of nothing", () => assert.deepEqual(opened.complaints, []));
});
