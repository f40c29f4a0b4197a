// The flame graph and the heat map of a report. REPORT names the file; what they must show is read from its data.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { lacking } from "./must.mjs";
import { drawnFrames, open, openAnew } from "./opened.mjs";
import { ownTimes, samplesOf, shareOf } from "./samples.mjs";

const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").replace(/\s+/g, " ").trim();
const near = (one, other, within, words) => assert.ok(Math.abs(one - other) <= within * Math.max(Math.abs(one), Math.abs(other)), `${words}: ${one} and ${other}`);
const states = { cpu: "on a CPU", spin: "spinning", runq: "waiting for a CPU", lock: "waiting for a lock", io: "waiting for a disk", net: "waiting for the client", sleep: "asleep", other: "blocked otherwise", idle: "waiting for work" };

describe("flame graph", () => {
  let opened;
  let page;
  let data;
  let sampled;
  const frames = (name = "flame-graph", pane = 0) => drawnFrames(page, name, pane);
  const drawn = () => page.waitForFunction(() => window.scaleprofFlames?.["flame-graph"]?.()[0]?.length > 0);
  const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const click = async (frame, options = {}) => {
    const box = await page.locator("#flame-graph-pane-0 canvas").boundingBox();
    await page.locator("#flame-graph-pane-0 canvas").click({ position: { x: frame.x + frame.width / 2, y: frame.row * 18 + 9 }, ...options });
    assert.ok(box.height > 0);
    await settled();
  };
  /** The report opened anew at that part of its address. */
  const go = async (hash) => {
    await openAnew(page, hash);
    await drawn();
    await settled();
  };
  before(async () => {
    opened = await open();
    ({ page, data } = opened);
    sampled = (await page.textContent("#profile")).trim() !== "";
    if (sampled) await drawn();
  });
  after(() => opened?.close());

  test("is there where stacks were sampled, and only there", async () => {
    assert.equal(await page.locator("#flame").count(), sampled ? 1 : 0);
    assert.equal(await page.locator("#heatmap").count(), sampled ? 1 : 0);
  });

  test("shows every state as wide as the ledger has it, at each rung", async (t) => {
    const rungs = data.summary.rungs.filter((rung) => rung.ledger);
    if (!sampled || !rungs.length) return lacking(t, "flame", "no ledger");
    await go(`#flame:rung=${rungs[0].connections}&base=none&states=${Object.keys(states).join(".")}`);
    for (const rung of rungs.slice(0, 4)) {
      await page.selectOption("#flame-shown", String(rung.connections)).catch(() => null);
      const [whole, ...rest] = await frames();
      let sum = 0;
      for (const [state, words] of Object.entries(states)) {
        const frame = rest.find((one) => one.row === 1 && one.name.startsWith(`${words}:`));
        if (!frame) continue;
        near(frame.shown, rung.ledger.seconds_per_txn[state], 5e-4, `${state} at ${rung.connections}`);
        near(frame.width / whole.width, frame.shown / whole.shown, 1e-6, "width");
        sum += frame.shown;
      }
      assert.ok(sum <= whole.shown * (1 + 1e-9) && sum > whole.shown * 0.98);
    }
  });

  test("frames lie within their callers and are drawn where they are said to be", async (t) => {
    if (!sampled) return lacking(t, "flame", "no stack was sampled");
    await go("#flame:");
    const found = await frames();
    const rows = new Map();
    for (const frame of found) rows.set(frame.row, [...(rows.get(frame.row) ?? []), frame]);
    for (const frame of found.filter((one) => one.row > 0)) {
      const caller = rows.get(frame.row - 1).find((one) => one.x <= frame.x + 1e-6 && one.x + one.width >= frame.x + frame.width - 1e-6);
      assert.ok(caller, `${frame.name} in row ${frame.row} has a caller`);
      assert.ok(frame.width >= 0.5);
    }
    for (const [row, some] of rows) for (const [at, frame] of some.entries()) if (at > 0) assert.ok(frame.x >= some[at - 1].x + some[at - 1].width - 1e-6, `row ${row}`);
    const wide = found.filter((one) => one.width > 12).slice(0, 300);
    const bare = await page.evaluate(([wide]) => {
      const context = document.querySelector("#flame-graph-pane-0 canvas").getContext("2d", { willReadFrequently: true });
      return wide.filter(({ x, width, row }) => context.getImageData((x + width / 2) * 2, row * 36 + 6, 1, 1).data[3] !== 255).length;
    }, [wide]);
    assert.equal(bare, 0, "frames without a pixel");
  });

  test("times and intervals of whole paths are those of the analysis", async (t) => {
    const rung = data.summary.rungs.findLast((one) => one.paths.length > 0);
    const other = data.summary.rungs.find((one) => one.paths.length > 0);
    if (!sampled || !rung || rung === other) return lacking(t, "flame", "no two rungs with call paths");
    await go(`#flame:rung=${rung.connections}&base=${other.connections}&states=${Object.keys(states).join(".")}`);
    const found = await frames();
    let compared = 0;
    for (const path of rung.paths) {
      let at = found.find((one) => one.row === 1 && one.name.startsWith(`${states[path.state]}:`));
      for (const name of path.path) {
        const outer = at;
        at = outer && found.find((one) => one.row === outer.row + 1 && one.name === name && one.x >= outer.x - 1e-6 && one.x + one.width <= outer.x + outer.width + 1e-6);
      }
      if (!at?.isInnermost) continue;
      near(at.shown, path.seconds_per_txn.value, 1e-3, path.path.at(-1));
      const half = path.seconds_per_txn.high - path.seconds_per_txn.value;
      const before = other.paths.find((one) => one.state === path.state && one.path.join() === path.path.join());
      // The interval of a change is never narrower than that of its end.
      if (at.half !== null) assert.ok(at.half >= half * 0.999, `${at.half} and ${half}`);
      if (at.half !== null && before) near(at.half, Math.hypot(half, before.seconds_per_txn.high - before.seconds_per_txn.value), 2e-3, "interval");
      compared++;
    }
    t.diagnostic(`${compared} of ${rung.paths.length} call paths compared`);
    assert.ok(compared > 0, "no call path could be compared");
  });

  test("a search tells its share of the whole and moves nothing", async (t) => {
    if (!sampled) return lacking(t, "flame", "no stack was sampled");
    const samples = samplesOf(await page.textContent("#profile"));
    const times = ownTimes(samples);
    const rungs = times.filter((rung) => rung.states.some((state) => state.size > 0));
    const [base, shown] = rungs.length > 1 ? [rungs[0], rungs.at(-1)] : [null, rungs[0]];
    await go(`#flame:rung=${shown.connections}&base=${base?.connections ?? "none"}&split=no&states=${Object.keys(states).join(".")}`);
    const before = await frames();
    const wanted = before.filter((one) => one.row > 5 && one.width > 40).sort((a, b) => b.row - a.row)[0] ?? before.at(-1);
    await page.keyboard.press("Tab");
    await page.locator("#flame-graph-pane-0").press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "flame-graph-search");
    await page.keyboard.type(`^${wanted.name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`);
    await settled();
    const said = plain(await page.textContent("#flame-graph .flame-matched"));
    assert.match(said, /^1 function: /);
    // From the samples and not from the frames, of which the narrowest are not drawn.
    const expected = [shown, base].filter(Boolean).map((rung) => shareOf(samples, rung, wanted.name));
    const percents = [...said.matchAll(/([\d.]+) %/g)].map(([, digits]) => Number(digits) / 100);
    assert.equal(percents.length, expected.length, said);
    percents.forEach((percent, at) => assert.ok(Math.abs(percent - expected[at]) <= (percent < 0.1 ? 0.0006 : 0.006), `${said}, expected ${expected[at]}`));
    assert.deepEqual((await frames()).map(({ x, width }) => [x, width]), before.map(({ x, width }) => [x, width]));
    await page.keyboard.press("Enter");
    assert.ok(plain(await page.textContent("#flame-graph .flame-tip")).startsWith(plain(wanted.name)), "the first match is pointed at");
    await page.fill("#flame-graph-search", "([");
    assert.match(plain(await page.textContent("#flame-graph .flame-matched")), /^no regular expression/);
    await page.fill("#flame-graph-search", "");
  });

  test("a click zooms in, the address keeps it, and the way back leads out", async (t) => {
    if (!sampled) return lacking(t, "flame", "no stack was sampled");
    await go("#flame:split=no&flip=");
    const before = await frames();
    const wanted = before.filter((one) => one.row > 2 && one.width < before[0].width * 0.8).sort((a, b) => b.width - a.width)[0];
    if (!wanted) return lacking(t, "flame", "one call path only");
    await click(wanted);
    const zoomed = await frames();
    const same = zoomed.find((one) => one.frame === wanted.frame);
    near(same.width, before[0].width, 1e-9, "as wide as the canvas");
    assert.equal(same.shown, wanted.shown);
    const hash = await page.evaluate(() => location.hash);
    assert.match(hash, /zoom=/);
    await go(hash);
    assert.deepEqual(await frames(), zoomed, "the address brings the same view back");
    await page.locator("#flame-graph-pane-0").focus();
    await page.keyboard.press("Escape");
    assert.deepEqual(await frames(), before);
    await page.goBack();
    await settled();
    assert.deepEqual(await frames(), zoomed);
    await openAnew(page);
    await drawn();
    const first = await frames();
    await page.selectOption("#flame-graph-view", "callers");
    assert.notDeepEqual(await frames(), first);
    await page.goBack();
    await settled();
    assert.deepEqual(await frames(), first, "back to what was there at first");
  });

  test("works by keyboard and says where it is", async (t) => {
    if (!sampled) return lacking(t, "flame", "no stack was sampled");
    await go("#flame:");
    const before = await frames();
    await page.locator("#flame-graph-pane-0").focus();
    for (let step = 0; step < 4; step++) await page.keyboard.press("ArrowDown");
    const spoken = plain(await page.textContent("#flame-graph [aria-live].hidden"));
    // The arrow leads to the widest of what is called.
    const inner = before.filter((one) => one.row === 3).sort((a, b) => b.width - a.width);
    const at = inner.find((one) => spoken.startsWith(plain(one.name)));
    assert.ok(at, spoken);
    assert.match(spoken, /of the whole/);
    await page.keyboard.press("Enter");
    const zoomed = await frames();
    near(zoomed.find((one) => one.frame === at.frame).width, before[0].width, 1e-9, "zoomed");
    await page.keyboard.press("Escape");
    assert.deepEqual(await frames(), before);
  });

  test("callers and callees of a function have its whole time", async (t) => {
    if (!sampled) return lacking(t, "flame", "no stack was sampled");
    await go("#flame:split=no");
    const before = await frames();
    const wanted = before.filter((one) => one.row > 4 && one.width > 30).sort((a, b) => a.row - b.row)[0] ?? before.at(-1);
    const outermost = before.filter((one) => one.name === wanted.name)
      .filter((one, _, all) => !all.some((other) => other.row < one.row && other.x <= one.x + 1e-6 && other.x + other.width >= one.x + one.width - 1e-6));
    const total = outermost.reduce((sum, one) => sum + one.shown, 0);
    await click(wanted, { modifiers: ["Shift"] });
    for (const pane of [0, 1]) {
      const [function_, ...others] = await frames("flame-graph", pane);
      assert.equal(function_.name, wanted.name);
      assert.ok(function_.shown >= total * (1 - 1e-9), `${function_.shown} and ${total}`);
      near(function_.shown, total, 0.05, "its time");
      const next = others.filter((one) => one.row === 1);
      assert.ok(next.reduce((sum, one) => sum + one.shown, 0) <= function_.shown * (1 + 1e-9));
    }
    const [both, alone] = [await frames("flame-graph", 0), await frames("flame-graph", 1)];
    const hash = await page.evaluate(() => location.hash);
    await go(hash);
    assert.deepEqual([await frames("flame-graph", 0), await frames("flame-graph", 1)], [both, alone]);
    await page.selectOption("#flame-graph-view", "callers");
    const inverted = await frames();
    near(inverted[0].shown, before[0].shown, 1e-9, "the whole is the same from the other side");
  });

  test("states are switched by their buttons, and the tables follow", async (t) => {
    if (!sampled) return lacking(t, "flame", "no stack was sampled");
    await go("#flame:");
    const before = (await frames())[0].shown;
    const pressed = page.locator("#flame-graph .flame-state[aria-pressed=true]");
    if ((await pressed.count()) < 2) return lacking(t, "flame", "one state only");
    const first = pressed.first();
    const state = await first.getAttribute("data-state");
    const words = states[state];
    const its = (await frames()).find((one) => one.row === 1 && one.name.startsWith(`${words}:`)).shown;
    await first.click();
    near((await frames())[0].shown, before - its, 1e-6, "the rest");
    assert.ok(!(await frames()).some((one) => one.name.startsWith(`${words}:`)));
    const fold = page.locator("#flame-graph .flame-functions summary");
    await fold.press("Enter");
    await page.locator("#flame-graph .flame-functions tbody tr").first().waitFor();
    await page.locator("#flame-graph .flame-open").first().click();
    assert.equal(await page.locator("#flame-graph-view").inputValue(), "around");
  });

  test("a time range of the heat map gives a flame graph of its whole time, and a second one the difference", async (t) => {
    if (!sampled) return lacking(t, "flame", "no stack was sampled");
    await go("#heatmap:");
    const heat = await page.evaluate(() => { const { threads, rows, where } = window.scaleprofHeatmap(); return { threads, rows, corners: [0, 1, 2, 3].map((part) => where(Math.floor((threads.length - 1) * (0.2 + part * 0.2)))) }; });
    const cells = [0, 1, 2, 3].map((part) => Math.floor((heat.threads.length - 1) * (0.2 + part * 0.2)));
    const canvas = page.locator("#heatmap-pane canvas");
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    const to = (part) => page.mouse.move(box.x + heat.corners[part].x, box.y + heat.corners[part].y);
    const mean = ([first, last]) => heat.threads.slice(first, last + 1).reduce((sum, one) => sum + one, 0) / (last - first + 1);
    await to(0);
    await page.mouse.down();
    await to(1);
    await page.mouse.up();
    await settled();
    const [whole] = await frames("heatmap-graph");
    near(whole.shown, mean([cells[0], cells[1]]), 1e-5, "the range's time");
    assert.equal(whole.base, 0);
    await page.locator("#heatmap").getByText("compare with another time range").click();
    const moved = await canvas.boundingBox();
    for (const part of [2, 3]) await page.mouse.click(moved.x + heat.corners[part].x, moved.y + heat.corners[part].y);
    await settled();
    const [both] = await frames("heatmap-graph");
    near(both.shown, mean([cells[0], cells[1]]), 1e-5, "the range's time");
    near(both.base, mean([cells[2], cells[3]]), 1e-5, "the other range's time");
    const hash = await page.evaluate(() => location.hash);
    const before = await frames("heatmap-graph");
    await go(hash);
    assert.deepEqual(await frames("heatmap-graph"), before);
    await page.locator("#heatmap-pane").focus();
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#heatmap-graph").isVisible(), false);
    for (const key of ["ArrowRight", "ArrowRight", "Enter", "ArrowUp", "ArrowUp", "Enter"]) await page.keyboard.press(key);
    near((await frames("heatmap-graph"))[0]?.shown ?? 0, mean([heat.rows, heat.rows + 2]), 1e-5, "chosen by keyboard");
  });

  test("complains of nothing", () => assert.deepEqual(opened.complaints, []));
});
