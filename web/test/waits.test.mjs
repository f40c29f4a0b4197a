// Who waits for whom, and what was seen of the threads. REPORT names the file; what it must show is read from its data.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { faintTexts } from "./contrast.mjs";
import { lacking } from "./must.mjs";
import { open, openAnew } from "./opened.mjs";

const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").replace(/\s+/g, " ").trim();
const near = (one, other, within, words) => assert.ok(Math.abs(one - other) <= within * Math.max(Math.abs(one), Math.abs(other), 1e-9), `${words}: ${one} and ${other}`);

describe("waits", () => {
  let opened;
  let page;
  let data;
  let waits;
  const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const value = (rung) => String(rung.connections ?? "");
  const box = (id) => page.locator(`#waits [data-box="${id}"]`);
  const show = async (rung) => {
    if (waits.rungs.length > 1) await page.selectOption("#waits-rung", value(rung));
    const more = page.locator("#waits .wait-more");
    if (await more.isVisible()) await more.click();
    await settled();
  };
  before(async () => {
    opened = await open();
    ({ page, data } = opened);
    ({ waits } = data);
  });
  after(() => opened?.close());

  test("are there where a thread was seen to wait for a lock, and only there", async () => {
    assert.equal(await page.locator("#waits").count(), waits ? 1 : 0);
  });

  test("all waiting is that of the ledger, and each wait counts once", (t) => {
    if (!waits) return lacking(t, "waits", "nobody waits");
    for (const rung of waits.rungs) {
      near(rung.attribution.reduce((sum, one) => sum + one, 0), rung.waiting.value, 1e-9, "known, woken and neither");
      const told = rung.locks.reduce((sum, lock) => sum + lock.waiting.value, 0);
      assert.ok(told + rung.omitted.threads >= rung.waiting.value * (1 - 1e-9));
      for (const lock of rung.locks) {
        near(lock.attribution.reduce((sum, one) => sum + one, 0), lock.waiting.value, 1e-6, "a lock's");
        near(lock.holders.reduce((sum, one) => sum + one.threads, 0) + lock.omitted_holders.threads, lock.attribution[0], 1e-6, "holders");
        near(lock.wakers.reduce((sum, one) => sum + one.threads, 0) + lock.omitted_wakers.threads, lock.attribution[1], 1e-6, "wakers");
      }
      const summary = data.summary.rungs.find((one) => one.connections === rung.connections);
      const exact = summary?.ledger?.seconds_per_txn.lock;
      // The ledger of a made-up run has the throughput that it was made from, not the one that came of it.
      if (exact) near(rung.waiting.value, exact * summary.connections / summary.ledger.connections_over_throughput, 0.02, "threads in the ledger's state lock");
    }
  });

  test("draws a box for everyone and a line between those who wait and are waited for", async (t) => {
    if (!waits) return lacking(t, "waits", "nobody waits");
    for (const rung of waits.rungs.slice(-2)) {
      await show(rung);
      const expected = rung.locks.flatMap((lock, at) => [`${at}l`, ...lock.waiters.map((_, one) => `${at}w${one}`), ...lock.holders.map((_, one) => `${at}h${one}`),
        ...lock.wakers.map((_, one) => `${at}k${one}`), ...(lock.attribution[2] > 0 && lock.attribution[2] >= 0.02 * lock.waiting.value ? [`${at}n`] : [])]);
      const boxes = await page.$$eval("#waits .wait-box", (all) => all.map((one) => one.dataset.box));
      assert.deepEqual([...boxes].sort(), [...expected].sort());
      const lines = await page.$$eval("#waits .wait-edge", (all) => all.map((one) => {
        const frame = one.ownerSVGElement.getBoundingClientRect();
        const rect = (id) => { const { left, right, top, bottom } = document.querySelector(`#waits [data-box="${id}"]`).getBoundingClientRect(); return { left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top }; };
        const [begin, end] = [one.getPointAtLength(0), one.getPointAtLength(one.getTotalLength())];
        return { kind: one.classList[1], width: Number(one.getAttribute("stroke-width")), from: one.dataset.from, to: one.dataset.to, begin: [begin.x, begin.y], end: [end.x, end.y], rects: [rect(one.dataset.from), rect(one.dataset.to)] };
      }));
      const chains = rung.locks.flatMap((lock) => lock.holders.flatMap((holder) => holder.waits_for.filter((to) => to.lock !== null)));
      assert.equal(lines.filter(({ kind }) => kind === "chain").length, chains.length);
      assert.equal(lines.length, expected.length - rung.locks.length + chains.length);
      const touches = ([x, y], { left, right, top, bottom }) => x > left - 9 && x < right + 9 && y > top - 12 && y < bottom + 12;
      for (const line of lines) assert.ok(line.rects.every((rect) => touches(line.begin, rect) || touches(line.end, rect)), `${line.from} – ${line.to} joins its boxes`);
      const widest = lines.filter(({ kind }) => kind === "waits").map(({ width }) => width);
      assert.ok(Math.max(...widest) <= 20.001 && Math.min(...widest) > 1);
    }
  });

  test("says in words what is known and what is not", async (t) => {
    if (!waits) return lacking(t, "waits", "nobody waits");
    const rung = waits.rungs.at(-1);
    await show(rung);
    const said = plain(await page.textContent("#waits-sum"));
    assert.match(said, /wait for a lock on average/);
    const share = rung.attribution[2] / rung.waiting.value;
    assert.ok(said.endsWith(`neither for ${share > 0 && share < 0.005 ? "< 1" : (share * 100).toFixed(0)} %.`), said);
    const worst = plain(await box("0l").getAttribute("aria-label"));
    if (rung.locks[0].name) assert.ok(worst.includes(rung.locks[0].name), worst);
    const text = plain(await page.textContent("#waits"));
    if (rung.omitted.count) assert.ok(text.includes(`Omitted: ${rung.omitted.count} lock`), "what was left out");
    for (const tag of await page.$$eval("#waits .woken .wait-tag", (all) => all.map((one) => one.textContent))) assert.equal(tag, "woken by", "a waker is no holder");
  });

  test("the arrow keys go from box to box, and a box opens into its call path", async (t) => {
    if (!waits) return lacking(t, "waits", "nobody waits");
    const rung = waits.rungs.at(-1);
    await show(rung);
    assert.equal(await page.locator("#waits .wait-box[tabindex='0']").count(), 1);
    const now = () => page.evaluate(() => document.activeElement.dataset.box);
    await box("0l").focus();
    if (rung.locks.length > 1) {
      await page.keyboard.press("ArrowDown");
      assert.equal(await now(), "1l");
      await page.keyboard.press("Home");
    }
    await page.keyboard.press("ArrowLeft");
    assert.equal(await now(), "0w0");
    await page.keyboard.press("Enter");
    const details = page.locator("#wait-0w0-details");
    assert.equal(await details.isVisible(), true);
    const waiter = rung.locks[0].waiters[0];
    assert.deepEqual(await details.locator("li").allTextContents(), waiter.place.path.map((one) => waits.functions[one]));
    const hash = await page.evaluate(() => location.hash);
    assert.match(hash, /^#waits:.*open=0w0/);
    await page.keyboard.press("Escape");
    assert.equal(await details.isVisible(), false);
    await openAnew(page, hash);
    await page.waitForSelector("#wait-0w0-details:not([hidden])");
    const link = details.locator("a");
    if (await link.count()) {
      await link.click();
      await page.waitForFunction(() => window.scaleprofFlames?.["flame-graph"]?.()[0]?.length > 0);
      await settled();
      assert.match(plain(await page.textContent("#flame-graph .flame-matched")), /^[1-9]\d* functions?: (?!0\.0 %)/);
      if (rung.connections !== null && (await page.locator("#flame-shown").count())) assert.equal(await page.locator("#flame-shown").inputValue(), value(rung));
    }
  });

  test("has its figures in a table, in light and dark and on paper", async (t) => {
    if (!waits) return lacking(t, "waits", "nobody waits");
    await show(waits.rungs.at(-1));
    const fold = page.locator("#waits details.folded");
    await fold.locator("summary").press("Enter");
    await fold.locator("tbody tr").first().waitFor();
    assert.equal(await fold.locator("tbody tr").count(), waits.rungs.at(-1).locks.length);
    for (let theme = 0; theme < 2; theme++) {
      assert.deepEqual(await faintTexts(page, 4.5), []);
      await page.click("#theme");
    }
    await page.setViewportSize({ width: 390, height: 800 });
    await settled();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), "the page must not scroll sideways");
    await page.setViewportSize({ width: 1180, height: 900 });
  });

  test("what was seen of the threads has a figure or a reason", async (t) => {
    if (!data.quality.length) return t.skip("no rung");
    const said = plain(await page.textContent("#probe-quality"));
    for (const { figures } of data.quality) {
      for (const { name, value: known, reason } of figures) {
        assert.equal(known === null, reason !== null, name);
        if (reason !== null) assert.ok(said.includes(plain(reason)), reason);
      }
    }
    const rows = await page.locator("#probe-quality tbody tr").count();
    const anything = data.quality.some(({ figures }) => figures.some((figure) => figure.value !== null));
    if (anything) assert.equal(rows, data.summary.watch ? 1 : data.summary.rungs.length);
    const last = data.quality.at(-1)?.figures.find((figure) => figure.name === "samples_on_cpu")?.value;
    if (last !== null && last !== undefined) assert.ok(plain(await page.locator("#probe-quality tbody tr").last().textContent()).replaceAll(" ", "").includes(String(last)));
  });

  test("complains of nothing", () => assert.deepEqual(opened.complaints, []));
});
