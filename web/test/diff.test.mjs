// Reads what the page of a comparison really shows. REPORT names the file; what it must show is read from its data.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { faintTexts } from "./contrast.mjs";
import { lacking } from "./must.mjs";
import { charted, drawnFrames, drawnPixels, open, openAnew, report } from "./opened.mjs";

const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").replaceAll("×", "x").replace(/\s+/g, " ").trim();
const near = (one, other, within, words) => assert.ok(Math.abs(one - other) <= within * Math.max(Math.abs(one), Math.abs(other)), `${words}: ${one} and ${other}`);
const states = { cpu: "on a CPU", spin: "spinning", runq: "waiting for a CPU", lock: "waiting for a lock", io: "waiting for a disk", net: "waiting for the client", sleep: "asleep", other: "blocked otherwise", idle: "waiting for work" };
const courses = { new: "new, only B has it", gone: "gone, only A has it", scales_worse: "scales worse", scales_better: "scales better", slower_everywhere: "slower everywhere", faster_everywhere: "faster everywhere", slower: "slower here", faster: "faster here" };

describe("comparison", () => {
  let opened;
  let page;
  let data;
  let found;
  let sampled;
  let keys;
  const frames = () => drawnFrames(page);
  const drawn = () => page.waitForFunction(() => window.scaleprofFlames?.["flame-graph"]?.()[0]?.length > 0);
  const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const chosen = () => page.evaluate(() => ["flame-shown", "flame-base"].map((id) => document.getElementById(id)?.value ?? null));
  /** The page opened anew at that part of its address. */
  const go = async (hash) => {
    await openAnew(page, hash);
    await page.waitForSelector("#verdict");
    if (sampled) await drawn();
    await settled();
  };
  before(async () => {
    opened = await open();
    ({ page, data } = opened);
    found = data.comparison;
    sampled = (await page.textContent("#profile")).trim() !== "";
    if (sampled) await drawn();
    keys = sampled ? await page.locator("#flame-shown option").evaluateAll((options) => options.map((option) => option.value)) : [];
  });
  after(() => opened?.close());

  test("opens without a complaint and without the network, under a strict policy", async () => {
    assert.deepEqual(opened.complaints, []);
    assert.deepEqual(await page.evaluate(() => window.violations), []);
    assert.deepEqual(opened.requests.filter((url) => !/^(file|data):/.test(url)), []);
    const text = await readFile(report, "utf8");
    const policy = /Content-Security-Policy" content="([^"]+)"/.exec(text.slice(0, text.indexOf("<style>")))?.[1] ?? "";
    assert.match(policy, /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+';/);
    assert.doesNotMatch(policy, /unsafe|connect-src|https?:|\*/);
    const links = await page.evaluate(() => [...document.querySelectorAll("[src],[href]")].map((one) => one.getAttribute("src") ?? one.getAttribute("href")));
    assert.deepEqual(links.filter((link) => !/^(#|data:,)/.test(link)), []);
    const noscript = /<noscript>([\s\S]*?)<\/noscript>/.exec(text)?.[1] ?? "";
    assert.ok(noscript.includes("<pre>") && noscript.includes("Per rung, B over A"));
  });

  test("says the sentence, the two runs, the warnings and what is not the same", async () => {
    assert.equal(plain(await page.textContent("#verdict")), plain(found.sentence));
    const runs = page.locator(".runs > div");
    for (const [at, run] of data.runs.entries()) {
      const said = plain(await runs.nth(at).textContent());
      for (const part of [run.name, run.server.version, run.machine.kernel, run.workload.imported_as ?? run.workload.name]) assert.ok(said.includes(plain(part)), `${said}: ${part}`);
    }
    const head = plain(await page.textContent("header.verdict"));
    for (const warning of found.warnings) assert.ok(head.includes(plain(warning)), warning);
    const rest = plain(await page.textContent("#circumstances"));
    for (const { what, a, b } of found.differences) for (const part of [what, a, b]) assert.ok(part === null || rest.includes(plain(part)), part);
    const folds = page.locator("#circumstances details.folded");
    for (let at = 0; at < (await folds.count()); at++) await folds.nth(at).locator("summary").press("Enter");
    await settled();
    const all = plain(await page.textContent("#circumstances"));
    for (const { name } of found.settings) assert.ok(all.includes(plain(name)), name);
    for (let at = 0; at < (await folds.count()); at++) await folds.nth(at).locator("summary").press("Enter");
  });

  test("draws the throughput of both and their ratio", async () => {
    const [x, ...both] = await charted(page, "throughput");
    assert.deepEqual(x, [...new Set(data.runs.flatMap((run) => run.rungs.map((rung) => rung.connections)))].sort((a, b) => a - b));
    for (const [side, run] of data.runs.entries()) {
      assert.deepEqual(both[side], x.map((at) => run.rungs.find((rung) => rung.connections === at)?.throughput.value ?? null));
      // Of two that are the same the second covers the first.
      const isCovered = (at) => side === 0 && both[0][at] === both[1][at];
      for (const [at, pixels] of (await drawnPixels(page, "throughput", side + 1)).entries()) assert.ok(pixels === null || isCovered(at) || pixels > 12, `run ${side} at ${x[at]}: ${pixels} pixels`);
    }
    const known = found.rungs.filter((rung) => rung.throughput_ratio);
    const ratios = await charted(page, "ratio");
    assert.deepEqual(ratios, known.length ? [known.map((rung) => rung.connections), known.map((rung) => rung.throughput_ratio.value)] : null);
    const fold = page.locator("#throughput details.folded");
    await fold.locator("summary").press("Enter");
    await fold.locator("tbody tr").first().waitFor();
    assert.equal(await fold.locator("tbody tr").count(), data.runs[0].rungs.length + data.runs[1].rungs.length);
    await fold.locator("summary").press("Enter");
  });

  test("has the figures of every common rung and marks those that changed", async () => {
    const rows = page.locator("#figures tbody tr");
    assert.equal(await rows.count(), found.rungs.length);
    for (const [at, rung] of found.rungs.entries()) {
      const said = plain(await rows.nth(at).textContent());
      assert.equal(said.endsWith("changed"), rung.throughput_p !== null && rung.throughput_p <= 0.05, said);
    }
    for (const note of found.rungs.flatMap((rung) => rung.notes)) assert.ok(plain(await page.textContent("#figures")).includes(plain(note)), note);
    assert.equal(await page.locator("#told tbody tr").count(), found.rungs.filter((rung) => rung.unexplained && data.runs.every((run) => run.sampled.includes(rung.connections))).length);
  });

  test("sets the states side by side, or says why not", async () => {
    const rungs = found.rungs.filter((rung) => rung.states.length > 0);
    if (rungs.length === 0) return assert.match(plain(await page.textContent("#states")), /Not shown: /);
    const bars = await page.$$eval("#states .bar.stack", (all) => all.map((bar) => [...bar.querySelectorAll("rect")].reduce((sum, part) => sum + Number(part.getAttribute("width")), 0)));
    const whole = (rung, side) => rung.states.reduce((sum, one) => sum + (one.seconds_per_txn[side] ?? 0), 0);
    assert.equal(bars.length, 2 * rungs.length);
    for (const [at, rung] of rungs.entries()) near(bars[2 * at] / bars[2 * at + 1], whole(rung, "a") / whole(rung, "b"), 1e-6, `bars at ${rung.connections}`);
    return undefined;
  });

  test("lists the call paths of a chosen rung, by pointer, keyboard and link", async () => {
    if (!data.paired) assert.match(plain(await page.textContent(found.rungs.some((rung) => rung.code_kinds.length) ? "#kinds" : "#changes")), /two products/);
    for (const [side, run] of data.runs.entries()) if (!run.sampled.length) assert.ok(plain(await page.textContent("#flame")).includes(plain(run.missing.find(({ figure }) => ["ledger", "paths"].includes(figure))?.reason ?? "no stack")), `side ${side}`);
    if (!data.paired || data.runs.some((run) => !run.sampled.length)) return assert.equal(await page.locator("#changes li").count(), 0);
    await page.locator("#changes [role=radio][aria-checked=true]").focus();
    await page.keyboard.press("Home");
    for (const rung of found.rungs) {
      assert.equal(await page.evaluate(() => Number(document.activeElement.dataset.rung)), rung.connections);
      const paths = found.paths.filter((path) => path.connections === rung.connections);
      assert.equal(await page.locator("#changes ol.changes > li").count(), paths.length);
      for (const [at, path] of paths.entries()) {
        const entry = page.locator("#changes ol.changes > li").nth(at);
        assert.ok(plain(await entry.textContent()).includes(courses[path.course]));
        assert.deepEqual(await entry.locator("details li").allTextContents(), path.path);
      }
      assert.ok((await page.evaluate(() => location.hash)).startsWith(`#changes:rung=${rung.connections}`));
      await page.keyboard.press("ArrowRight");
    }
    const first = found.rungs[0].connections;
    await go(`#changes:rung=${first}`);
    return assert.equal(await page.locator("#changes [aria-checked=true]").getAttribute("data-rung"), String(first));
  });

  test("each call path leads to the flame graph, where it has the time that is told", async (t) => {
    if (found.paths.length === 0) return lacking(t, "paths", "no call path is listed");
    let compared = 0;
    for (const path of found.paths.slice(-12)) {
      await go(`#changes:rung=${path.connections}`);
      const place = found.paths.filter((one) => one.connections === path.connections).indexOf(path);
      await page.evaluate(() => document.querySelectorAll("#changes details.folded").forEach((one) => { one.open = true; }));
      await page.locator("#changes ol.changes > li").nth(place).getByText("Show it in the flame graph").click();
      await settled();
      const [wide, narrow] = path.course === "gone" ? ["a", "b"] : ["b", "a"];
      assert.deepEqual(await chosen(), [`${wide}${path.connections}`, `${narrow}${path.connections}`]);
      const matches = (await frames()).filter((one) => one.name === path.path.at(-1));
      assert.ok(matches.length > 0, `${path.path.join(" > ")} is drawn`);
      const at = matches.reduce((one, other) => (other.shown > one.shown ? other : one));
      if (!at.isInnermost || matches.length > 1) continue;
      near(at.shown, path.seconds_per_txn[wide], 1e-3, path.path.at(-1));
      near(at.base, path.seconds_per_txn[narrow], 1e-3, path.path.at(-1));
      compared++;
    }
    t.diagnostic(`${compared} of ${found.paths.length} call paths compared`);
    assert.ok(compared > 0, "no call path was compared");
    return undefined;
  });

  test("the flame graph compares A with B at any common rung: as wide as the states have it", async (t) => {
    const common = found.rungs.filter((rung) => keys.includes(`a${rung.connections}`) && keys.includes(`b${rung.connections}`) && rung.states.length > 0);
    if (!data.paired || common.length === 0) return lacking(t, "flame", "no rung with stacks in both");
    await go(`#flame:rung=b${common[0].connections}&base=a${common[0].connections}&states=${Object.keys(states).join(".")}`);
    await page.locator("#flame [role=radio][aria-checked=true]").focus();
    await page.keyboard.press("Home");
    for (const rung of common) {
      assert.deepEqual(await chosen(), [`b${rung.connections}`, `a${rung.connections}`]);
      const drawn = await frames();
      let compared = 0;
      for (const [state, words] of Object.entries(states)) {
        const frame = drawn.find((one) => one.row === 1 && one.name.startsWith(`${words}:`));
        const told = rung.states.find((one) => one.state === state)?.seconds_per_txn;
        if (!frame || !told) continue;
        near(frame.shown, told.b, 1e-3, `${state} of B at ${rung.connections}`);
        if (frame.base > 0) near(frame.base, told.a, 1e-3, `${state} of A at ${rung.connections}`);
        compared++;
      }
      assert.ok(compared > 0);
      await page.keyboard.press("ArrowRight");
    }
    return undefined;
  });

  test("any two rungs can be compared, swapped, and linked to; what only A has is listed", async (t) => {
    if (!sampled) return lacking(t, "flame", "no stack was sampled");
    if (!data.paired) return assert.equal(await page.locator("#flame-base").count(), 0, "two products are not compared");
    await go("#flame:");
    const [first, last] = [keys[0], keys.at(-1)];
    await page.selectOption("#flame-shown", last);
    await page.selectOption("#flame-base", first);
    await settled();
    const same = first.slice(1) === last.slice(1) ? 1 : 0;
    assert.equal(await page.locator("#flame [role=radio][aria-checked=true]").count(), same, "no common rung is chosen");
    const hash = await page.evaluate(() => location.hash);
    const before = await frames();
    await page.getByRole("button", { name: "swap" }).click();
    await settled();
    assert.deepEqual(await chosen(), [first, last]);
    near((await frames())[0].base, before[0].shown, 1e-9, "the other way round");
    await go(hash);
    assert.deepEqual(await chosen(), [last, first]);
    assert.deepEqual(await frames(), before);
    const gone = found.paths.filter((one) => one.course === "gone");
    if (gone.length === 0) return lacking(t, "gone", "only A has no call path");
    for (const path of gone.slice(0, 1)) {
      const leaf = path.path.at(-1);
      await go(`#flame:rung=b${path.connections}&base=a${path.connections}`);
      assert.ok(!(await frames()).some((one) => one.name === leaf && one.shown > 0));
      await page.locator("#flame .flame-gone summary").press("Enter");
      await page.locator("#flame .flame-gone tbody tr").first().waitFor();
      assert.ok((await page.textContent("#flame .flame-gone")).includes(leaf), "what is gone");
    }
    return undefined;
  });

  test("shows kinds of code where the products differ, and only there", async () => {
    const kinds = new Set(found.rungs.flatMap((rung) => rung.code_kinds.map((one) => one.kind)));
    assert.equal(await page.locator("#kinds tbody tr").count(), kinds.size);
    assert.equal(await page.locator("#kinds").count(), kinds.size > 0 ? 1 : 0);
  });

  test("the keyboard reaches everything and shows where it is", async () => {
    await go("#");
    const seen = new Set();
    for (let step = 0; step < 90; step++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const one = document.activeElement;
        return [one.id || one.getAttribute("role") || one.tagName, one === document.body || getComputedStyle(one).outlineStyle !== "none"];
      });
      seen.add(at[0]);
      assert.ok(at[1], `${at[0]} shows no focus`);
    }
    for (const wanted of ["theme", ...(sampled ? ["flame-shown", "flame-graph-pane-0"] : [])]) assert.ok(seen.has(wanted), wanted);
  });

  test("light, dark and paper have contrast", async () => {
    await page.evaluate(() => scrollTo(0, 0));
    const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    assert.deepEqual(await faintTexts(page, 4.5), []);
    const light = await paper();
    await page.click("#theme");
    assert.notEqual(await paper(), light);
    assert.deepEqual(await faintTexts(page, 4.5), []);
    await page.emulateMedia({ media: "print" });
    await settled();
    assert.equal(await paper(), "rgb(255, 255, 255)");
    assert.deepEqual(await faintTexts(page, 4.5), []);
    assert.ok((await page.pdf({ preferCSSPageSize: true })).length > 10_000);
    await page.emulateMedia({ media: "screen" });
    await page.click("#theme");
    assert.equal(await paper(), light);
  });

  test("fits a narrow screen", async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    // It draws anew for that, which takes a moment.
    const fits = page.waitForFunction(() => document.documentElement.scrollWidth <= 390);
    assert.ok(await fits.then(() => true, () => false), "the page must not scroll sideways");
    await page.setViewportSize({ width: 1180, height: 900 });
    assert.deepEqual(opened.complaints, []);
  });
});
