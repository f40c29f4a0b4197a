// What the report makes of the run, and where each of it can be linked to: findings, lost threads, the iron law, seconds. REPORT
// names the file; what it must show is read from its data.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { lacking } from "./must.mjs";
import { charted, drawnFrames, open, openAnew } from "./opened.mjs";
import { parentsOf, samplesOf } from "./samples.mjs";

const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").replaceAll("×", "x").replace(/\s+/g, " ").trim();
const names = { cpu: "on a CPU", spin: "spinning", runq: "waiting for a CPU", lock: "waiting for a lock", io: "waiting for a disk", net: "waiting for the client", sleep: "asleep", other: "blocked otherwise", idle: "waiting for work" };

describe("what the report says", () => {
  let opened;
  let page;
  let data;
  let findings;
  const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const hash = () => page.evaluate(() => location.hash);
  const go = async (to) => {
    await openAnew(page, to);
    await page.waitForSelector("#verdict");
    if ((await page.textContent("#profile")).trim()) await page.waitForFunction(() => window.scaleprofFlames?.["flame-graph"]?.()[0]?.length > 0);
    await settled();
    await settled();
  };
  /** Where a link leads the page scrolls to, which takes a moment. */
  const isInView = (selector) => page.waitForFunction((selector) => {
    const box = document.querySelector(selector).getBoundingClientRect();
    return box.top >= -1 && box.top < innerHeight;
  }, selector).then(() => true, () => false);
  before(async () => {
    opened = await open();
    ({ page, data } = opened);
    ({ findings } = data.summary);
  });
  after(() => opened?.close());

  test("every finding stands in its order with its share, its place, its evidence and what to try", async (t) => {
    assert.equal(await page.locator("#findings .findings > li").count(), findings.length);
    if (!findings.length) return lacking(t, "findings", "no finding");
    for (const [at, finding] of findings.entries()) {
      const one = page.locator(`#finding-${at + 1}`);
      assert.equal(plain(await one.locator("h3").textContent()), plain(finding.title));
      const share = plain(await one.locator(".share").textContent());
      const percent = finding.lost_share.value * 100;
      assert.ok(Math.abs(parseFloat(share) - percent) <= 0.51 && share.includes(`at ${String(finding.rungs[1]).replace(/(\d)(?=\d{3}$)/, "$1 ")} connection`), share);
      const fold = one.locator("details.evidence");
      assert.equal(await one.locator("details.evidence > ul").isVisible(), false, "long evidence is folded");
      await fold.locator("summary").press("Enter");
      assert.equal(await one.locator("details.evidence > ul").isVisible(), finding.evidence.length > 0);
      assert.deepEqual(await one.locator(".path code").allTextContents(), finding.path);
      assert.deepEqual(await fold.locator("> ul > li").allTextContents(), finding.evidence);
      assert.deepEqual(await fold.locator(".try li").allTextContents(), finding.try);
      await fold.locator("summary").press("Enter");
    }
  });

  test("the verdict, the curve and the titles of the findings are on the first screen", async (t) => {
    if (!data.summary.rungs.length) return t.skip("no rung");
    await page.setViewportSize({ width: 1280, height: 800 });
    await go("#");
    const boxes = await page.evaluate(() => ["#verdict", "#throughput canvas", ...[...document.querySelectorAll("#findings .findings h3")].slice(0, 3).map((_, at) => `#finding-${at + 1} h3`)]
      .map((selector) => [selector, document.querySelector(selector).getBoundingClientRect().bottom]));
    await page.setViewportSize({ width: 1180, height: 900 });
    for (const [selector, bottom] of boxes) assert.ok(bottom > 0 && bottom <= 800, `${selector} ends at ${bottom}`);
    const order = await page.$$eval("main section", (sections) => sections.map(({ id }) => id));
    if (findings.length) assert.ok(order.indexOf("throughput") < order.indexOf("findings"));
  });

  test("a finding has an address of its own, which opens it", async (t) => {
    if (!findings.length) return lacking(t, "findings", "no finding");
    const last = `finding-${findings.length}`;
    await page.locator(`#${last} h3 a`).press("Enter");
    assert.equal(await hash(), `#${last}`);
    await go(`#${last}`);
    assert.equal(await page.locator(`#${last} details.evidence`).getAttribute("open"), "");
    assert.equal(await page.locator("#findings details.evidence[open]").count(), 1);
    assert.ok(await isInView(`#${last}`));
  });

  test("a finding leads to its path in the flame graph", async (t) => {
    const samples = samplesOf(await page.textContent("#profile"));
    const at = findings.findIndex(({ path }) => path.length > 1);
    if (!samples || at < 0) return lacking(t, "findings", "no finding with a path");
    const { path, rungs: [base, shown] } = findings[at];
    const { depth, function: functionOf } = samples.columns;
    const parents = parentsOf(depth);
    let [inner, there] = [-1, 0];
    for (const name of path) {
      inner = depth.findIndex((one, node) => one === there && parents[node] === inner && samples.header.functions[functionOf[node]] === name);
      if (inner < 0) break;
      there++;
    }
    assert.ok(there > 0, "some of the path was sampled");
    t.diagnostic(`${there} of ${path.length} functions of the path were sampled so`);
    await go(`#finding-${at + 1}`);
    await page.locator(`#finding-${at + 1} .finding-links a`).first().press("Enter");
    await page.waitForFunction(() => location.hash.startsWith("#flame:"));
    await settled();
    await settled();
    assert.equal(await page.locator("#flame-shown").inputValue(), String(shown));
    if (base !== shown) assert.equal(await page.locator("#flame-base").inputValue(), String(base));
    const frames = await drawnFrames(page);
    const whole = frames.find(({ row }) => row === 0);
    for (const [row, name] of path.slice(0, Math.min(there, path.length - 1)).entries()) {
      const frame = frames.find((one) => one.row === row + 1);
      assert.equal(frame?.name, name);
      assert.ok(Math.abs(frame.width - whole.width) < 1e-6, `${name} is as wide as the canvas`);
    }
    if (there === path.length) assert.ok(frames.some((one) => one.row === path.length && one.name === path.at(-1)), "the innermost function is there");
    assert.match(plain(await page.textContent("#flame-graph .flame-matched")), /^[1-9]\d* functions?: (?!0\.0 %)/);
    assert.ok(await isInView("#flame"));
  });

  test("a finding leads to the machine code of the innermost function that has a listing", async (t) => {
    const listed = async (finding) => {
      const found = await page.locator("#annotate .code-name").allTextContents();
      return finding.path.findLast((name) => found.some((one) => plain(one).startsWith(plain(name))));
    };
    if ((await page.textContent("#code")).trim() === "") {
      assert.equal(await page.locator(".finding-links a[href^='#annotate']").count(), 0);
      return lacking(t, "code", "no machine code");
    }
    for (const [at, finding] of findings.entries()) {
      const wanted = await listed(finding);
      if (wanted === undefined) continue;
      await go(`#finding-${at + 1}`);
      await page.locator(`#finding-${at + 1} .finding-links a[href^='#annotate']`).press("Enter");
      await page.waitForFunction(() => location.hash.startsWith("#annotate:"));
      await settled();
      return assert.ok(plain(await page.textContent("#annotate .code-head h3")).startsWith(plain(wanted)));
    }
    lacking(t, "findings", "no finding in listed code");
  });

  test("threads that are lost are drawn as long as they are, and every path that loses some is told", async (t) => {
    const { scaling } = data.summary;
    if (!scaling?.rungs.length) {
      assert.equal(await page.locator("#lost").count(), 0);
      return t.skip("no lost threads");
    }
    const bars = await page.$$eval("#lost .bar.stack", (all) => all.map((bar) => [...bar.querySelectorAll("rect")].map((part) => [part.dataset.state, Number(part.getAttribute("x")), Number(part.getAttribute("width"))])));
    assert.equal(bars.length, scaling.rungs.length);
    for (const [at, rung] of scaling.rungs.entries()) {
      const length = ([state]) => (state === "effective" ? rung.effective_threads : Math.max(0, rung.lost_threads[state]?.value ?? 0));
      const whole = bars[at].reduce((sum, part) => sum + length(part), 0);
      const [all] = bars[at].slice(-1).map(([, x, width]) => x + width);
      let end = 0;
      for (const part of bars[at]) {
        assert.ok(Math.abs(part[1] - end) < 1e-6, "one begins where the one before it ends");
        assert.ok(Math.abs(part[2] / all - length(part) / whole) < 1e-9, `${part[0]} at ${rung.connections}`);
        end = part[1] + part[2];
      }
      for (const [state, { value }] of Object.entries(rung.lost_threads)) if (value > 0.005 * rung.connections) assert.ok(bars[at].some(([one]) => one === state), `${state} is drawn`);
    }
    const last = scaling.rungs.at(-1);
    const said = plain(await page.textContent("#lost"));
    assert.ok(said.includes(`at the efficiency of ${scaling.base_connections}`), said.slice(0, 200));
    const heaviest = Object.entries(last.lost_threads).sort((a, b) => b[1].value - a[1].value)[0];
    if (heaviest[1].value > 0.005 * last.connections) assert.ok(plain(await page.textContent("#lost .key")).includes(names[heaviest[0]]));
    const rows = page.locator("#lost-paths table").first().locator("tbody tr");
    assert.equal(await rows.count(), scaling.paths.length);
    for (const [at, path] of scaling.paths.slice(0, 3).entries()) {
      assert.ok(plain(await rows.nth(at).textContent()).startsWith(path.state));
      await rows.nth(at).locator("summary").press("Enter");
      assert.deepEqual(await rows.nth(at).locator("ol li").allTextContents(), path.path);
      await rows.nth(at).locator("summary").press("Enter");
    }
    const told = plain(await page.textContent("#lost"));
    for (const { path } of scaling.saturated) assert.ok(told.includes(plain(path.at(-1))), "what one thread is always in");
  });

  test("any rung can be compared with the peak by the factors of the iron law", async (t) => {
    const { rungs, verdict } = data.summary;
    const peak = rungs.find(({ connections }) => connections === verdict?.peak_connections);
    const others = rungs.filter((rung) => rung !== peak && rung.iron_law);
    if (!peak?.iron_law || !others.length) return t.skip("no two rungs with factors");
    const cells = async () => (await page.$$eval("#decomposition tbody tr", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)))).map((row) => row.map(plain));
    const factor = (text) => Number(text.replace("x", "").replace("−", "-"));
    const select = page.locator("#decomposition-rung");
    for (const other of others.slice(-3)) {
      await go("#");
      if (others.length > 1) {
        await select.selectOption(String(other.connections));
        assert.equal(await hash(), `#decomposition:rung=${other.connections}`);
      }
      const [from, to] = other.connections > peak.connections ? [peak, other] : [other, peak];
      const rows = await cells();
      const at = (words) => {
        const row = rows.find(([name]) => name.startsWith(words));
        assert.ok(row, words);
        return factor(row[3]);
      };
      const near = (one, wanted, words) => assert.ok(Math.abs(one / wanted - 1) < 0.06, `${words}: ${one} and ${wanted}`);
      const ratio = (of) => of(to) / of(from);
      near(at("CPUs used"), ratio(({ iron_law }) => iron_law.utilisation * iron_law.cpus), "CPUs");
      const byCounters = rows.some(([name]) => name.startsWith("Instructions"));
      if (byCounters) near(at("Instructions"), 1 / ratio(({ iron_law }) => iron_law.instructions_per_txn), "instructions");
      else near(at("CPU time"), 1 / ratio(({ iron_law }) => iron_law.cpu_seconds_per_txn), "CPU time");
      near(rows.slice(1, -1).reduce((product, row) => product * factor(row[3]), 1), ratio(({ throughput }) => throughput.value), "the whole");
      if (others.length > 1) {
        await go(await hash());
        assert.equal(await select.inputValue(), String(other.connections));
        assert.deepEqual(await cells(), rows, "the address brings the same view back");
        assert.ok(await isInView("#decomposition"));
      }
    }
    await go("#");
    const counting = others.filter(({ client_limited: limited }) => !limited);
    const efficient = [...counting].sort((a, b) => b.throughput.value / b.connections - a.throughput.value / a.connections)[0];
    const isLast = verdict.decomposition === null;
    // What does not surely fall up to the last rung is compared with the most efficient one.
    const last = rungs.find(({ connections }) => connections === verdict.decomposition?.to);
    const differs = ({ throughput: a }, { throughput: b }) => [a.low, a.high, b.low, b.high].includes(null)
      ? Math.abs(Math.log(b.value / a.value)) >= Math.log(1.25) : a.high < b.low || b.high < a.low;
    const first = (last && differs(peak, last) ? last : efficient)?.connections;
    if (others.length > 1 && first) assert.equal(await select.inputValue(), String(first));
    if (isLast && efficient) assert.match(plain(await page.textContent("#decomposition")), /is the last rung that counts, so it is compared with the most efficient one/);
  });

  test("the address keeps the rung and the counters whose seconds are shown", async (t) => {
    const rungs = [...new Set(data.measurements.map(({ connections }) => connections))].sort((a, b) => a - b);
    if (rungs.length < 2 || data.summary.watch) return t.skip("no two rungs of a load of ours");
    await go("#");
    await page.focus(".rungs [aria-checked=true]");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    assert.match(await hash(), new RegExp(`^#seconds:rung=${rungs[1]}$`));
    const counter = page.locator("#counter-2");
    const hasCounters = (await counter.count()) > 0;
    if (hasCounters) await counter.selectOption({ index: 0 });
    const shown = async () => {
      // A chart is drawn once the page gives it a width, all of a section together; a busy machine takes a while.
      await page.waitForFunction(() => window.scaleprofCharts["seconds-throughput"]);
      await settled();
      return [await charted(page, "seconds-throughput"), hasCounters && await charted(page, "seconds-counter-2"), hasCounters && await counter.inputValue()];
    };
    const before = await shown();
    await go(await hash());
    assert.deepEqual(await shown(), before);
    assert.equal(await page.locator(".rungs [aria-checked=true]").getAttribute("data-rung"), String(rungs[1]));
    assert.ok(await isInView("#seconds"));
    await page.focus(".rungs [aria-checked=true]");
    await page.keyboard.press("ArrowLeft");
    await page.goBack();
    await settled();
    assert.equal(await page.locator(".rungs [aria-checked=true]").getAttribute("data-rung"), String(rungs[1]), "the way back");
  });

  test("the address keeps the rung whose call paths are shown", async (t) => {
    const sampled = data.summary.rungs.filter(({ paths }) => paths.length);
    if (sampled.length < 2) return t.skip("no two rungs with call paths");
    await go("#");
    await page.selectOption("#paths-rung", String(sampled[0].connections));
    await go(await hash());
    assert.equal(await page.locator("#paths-rung").inputValue(), String(sampled[0].connections));
    assert.equal(await page.locator("#paths table").first().locator("tbody tr").count(), sampled[0].paths.length);
    assert.ok(await isInView("#paths"));
  });

  test("complains of nothing", () => assert.deepEqual(opened.complaints, []));
});
