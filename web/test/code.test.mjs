// The machine code and the cache lines of a report. REPORT names the file; what they must show is read from its data.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { inflateRawSync } from "node:zlib";
import { faintTexts } from "./contrast.mjs";
import { lacking } from "./must.mjs";
import { open, openAnew } from "./opened.mjs";

const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").replace(/\s+/g, " ").trim();

let opened;
let page;
let code;
let lines;
let sampled;
const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
/** The report opened anew at that part of its address. */
const go = async (hash) => {
  await openAnew(page, hash);
  await page.waitForSelector("#annotate .code-grid");
  await settled();
};
before(async () => {
  opened = await open();
  ({ page } = opened);
  const packed = async (id) => {
    const text = (await page.textContent(`#${id}`)).trim();
    return text === "" ? null : JSON.parse(inflateRawSync(Buffer.from(text, "base64")).toString());
  };
  // An element of the data and a section may not have one name: `#lines` and `#code` are the data.
  [code, lines] = [await packed("code"), await packed("lines")];
  sampled = (await page.textContent("#profile")).trim() !== "";
  if (code) await page.waitForSelector("#annotate .code-grid");
});
after(() => opened?.close());

describe("machine code", () => {
  const cost = (one, rung) => one.costs[rung][0];
  const growths = () => code.functions.map((one) => (code.base === null ? cost(one, code.rung) : cost(one, code.rung) - cost(one, code.base)));
  const rows = (one) => one.regions.flatMap((region) => region.rows);
  const selected = () => page.$eval("#annotate tr[aria-selected]", (row) => row.id.replace("code-", "")).catch(() => null);
  const heading = () => page.textContent("#annotate .code-head h3");

  test("is there where stacks were sampled, and says so where the bundle has none", async () => {
    assert.equal(await page.locator("#annotate").count(), sampled ? 1 : 0);
    if (sampled && !code) assert.ok(plain(await page.textContent("#annotate")).includes("Not in this bundle"));
  });

  test("ranks the functions by growth and opens the one that grew most", async (t) => {
    if (!code) return lacking(t, "code", "no machine code");
    const names = await page.locator("#annotate .code-list .code-name").allTextContents();
    assert.equal(names.length, code.functions.length);
    const byGrowth = code.functions.map((one, at) => [one.name, growths()[at]]).sort((a, b) => b[1] - a[1]);
    assert.deepEqual(names, byGrowth.map(([name]) => name));
    assert.ok((await heading()).startsWith(names[0]));
    assert.deepEqual(await page.locator("#annotate .code-name[aria-current=true]").allTextContents(), [names[0]]);
  });

  test("shows every instruction that the page has of a function, with bars as long as its costs", async (t) => {
    if (!code) return lacking(t, "code", "no machine code");
    const one = code.functions[0];
    await go(`#annotate:${new URLSearchParams({ function: one.name, module: one.module })}`);
    const shown = await page.$$eval("#annotate .code-grid tbody tr[data-place]", (lines) => lines.map((line) => ({
      address: line.id.replace("code-", ""), text: line.querySelector(".code-text").textContent, now: parseFloat(line.querySelector(".now").style.getPropertyValue("--share")) || 0,
      waits: line.classList.contains("waits"), source: line.querySelector(".code-source").textContent,
    })));
    assert.deepEqual(shown.map((line) => parseInt(line.address, 16)), rows(one).map((row) => row[0]));
    const at = (row, rung) => row[8].find((cost) => cost[0] === rung)?.[1] ?? 0;
    const most = Math.max(...rows(one).flatMap((row) => [at(row, code.rung), code.base === null ? 0 : at(row, code.base)]));
    rows(one).forEach((row, place) => {
      assert.ok(shown[place].text.startsWith(row[1]), row[1]);
      assert.equal(shown[place].waits, (row[5] & 1) !== 0);
      if (most > 0) assert.ok(Math.abs(shown[place].now - (100 * at(row, code.rung)) / most) < 0.11, `${shown[place].now} of ${at(row, code.rung)}`);
    });
    const words = code.strings;
    const first = rows(one).find((row) => row[2] > 0);
    if (first) assert.ok(shown.some((line) => line.source.includes(words[first[2] - 1])));
    const left = one.instructions - rows(one).length;
    const gaps = await page.locator("#annotate .code-gap").allTextContents();
    const told = gaps.map((text) => Number(/[\d ]+/.exec(plain(text))[0].replaceAll(" ", ""))).reduce((sum, number) => sum + number, 0);
    assert.equal(told, left, gaps.join(" "));
  });

  test("the keys move, go to the next hot instruction, follow a branch and lead back to the list", async (t) => {
    if (!code) return lacking(t, "code", "no machine code");
    const one = code.functions[0];
    await go(`#annotate:${new URLSearchParams({ function: one.name, module: one.module })}`);
    await page.focus("#annotate .code-grid");
    await page.keyboard.press("Home");
    const all = rows(one).map((row) => row[0].toString(16));
    assert.equal(await selected(), all[0]);
    await page.keyboard.press("ArrowDown");
    assert.equal(await selected(), all[Math.min(1, all.length - 1)]);
    await page.keyboard.press("ArrowUp");
    assert.equal(await selected(), all[0]);
    await page.keyboard.press("End");
    assert.equal(await selected(), all.at(-1));
    assert.equal(await page.getAttribute("#annotate .code-grid", "aria-activedescendant"), `code-${all.at(-1)}`);
    await page.keyboard.press("n");
    const hot = await page.$$eval("#annotate tr.hot, #annotate tr.hottest", (lines) => lines.map((line) => line.id.replace("code-", "")));
    if (hot.length) {
      const hottest = await selected();
      assert.ok(hot.includes(hottest), `${hottest} of ${hot}`);
      assert.ok(page.url().includes(`at=${hottest}`), page.url());
      await page.keyboard.press("p");
      assert.ok(hot.includes(await selected()));
    }
    const branch = rows(one).find((row) => (row[5] & 32) !== 0 && all.includes(row[6]?.toString(16)));
    if (branch) {
      await page.keyboard.press("Home");
      for (let step = all.indexOf(branch[0].toString(16)); step > 0; step--) await page.keyboard.press("ArrowDown");
      assert.equal(await selected(), branch[0].toString(16));
      await page.keyboard.press("Enter");
      assert.equal(await selected(), branch[6].toString(16));
    }
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement.classList.contains("code-name")), true);
    await page.keyboard.press("ArrowDown");
    const next = await page.evaluate(() => document.activeElement.textContent);
    await page.keyboard.press("Enter");
    assert.ok((await heading()).startsWith(next), next);
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "grid");
  });

  test("is searched by name, of what was built in too", async (t) => {
    if (!code) return lacking(t, "code", "no machine code");
    const wanted = code.functions.at(-1).name;
    const namesOf = (one) => [one.name, ...rows(one).map((row) => (row[4] > 0 ? code.strings[row[4] - 1] : ""))];
    const matches = (one, words) => namesOf(one).some((name) => name.toLowerCase().includes(words.toLowerCase()));
    await page.fill("#annotate-search", wanted.toUpperCase());
    const names = await page.locator("#annotate .code-list .code-name").allTextContents();
    const matching = code.functions.filter((one) => matches(one, wanted)).map((one) => one.name);
    assert.ok(names.includes(wanted));
    assert.deepEqual([...names].sort(), matching.sort());
    await page.keyboard.press("Enter");
    assert.ok((await heading()).startsWith(names[0]));
    await page.fill("#annotate-search", "no such function anywhere");
    assert.equal(await page.locator("#annotate .code-name").count(), 0);
    await page.fill("#annotate-search", "");
    const inside = code.functions.flatMap((one) => rows(one)).find((row) => row[4] > 0);
    if (!inside) return;
    await page.fill("#annotate-search", code.strings[inside[4] - 1]);
    const holders = code.functions.filter((one) => matches(one, code.strings[inside[4] - 1]));
    assert.equal(await page.locator("#annotate .code-list .code-name").count(), holders.length);
    await page.fill("#annotate-search", "");
  });

  test("a link brings back the function, the rungs and the instruction", async (t) => {
    if (!code || code.rungs.length < 2) return lacking(t, "code", "no two rungs");
    const one = code.functions.at(-1);
    const [first, second] = [code.rungs[0][0], code.rungs[1][0]];
    const address = rows(one)[0][0].toString(16);
    await go(`#annotate:${new URLSearchParams({ function: one.name, module: one.module, rung: first, base: second, at: address })}`);
    assert.ok((await heading()).startsWith(one.name));
    assert.deepEqual([await page.inputValue("#annotate-shown"), await page.inputValue("#annotate-base")], ["0", "1"]);
    assert.equal(await selected(), address);
    await page.selectOption("#annotate-base", "");
    assert.ok(page.url().includes("base=none"), page.url());
    assert.equal(await page.locator("#annotate .code-grid .before").count(), 0);
    await page.goBack();
    await settled();
    assert.equal(await page.inputValue("#annotate-base"), "1");
  });
});

describe("cache lines", () => {
  const entries = "#cache-lines details.cache-line";

  test("are there where stacks were sampled, and say so where the bundle does not tell who touches what", async (t) => {
    assert.equal(await page.locator("#cache-lines").count(), sampled ? 1 : 0);
    if (sampled && !lines) assert.ok(plain(await page.textContent("#cache-lines")).includes("Not in this bundle"));
    if (lines) assert.equal(await page.locator(entries).count(), lines.lines.length);
    else lacking(t, "lines", "no accesses");
  });

  test("are drawn byte by byte, with who touches them, the evidence and the cost at every rung", async (t) => {
    if (!lines?.lines.length) return lacking(t, "lines", "no line");
    for (const [at, line] of lines.lines.slice(0, 4).entries()) {
      const entry = page.locator(entries).nth(at);
      if (!(await entry.evaluate((one) => one.open))) await entry.locator("summary").first().press("Enter");
      await entry.locator(".line-strip").waitFor();
      const drawn = await entry.locator(".line-part").evaluateAll((parts) => parts.map((part) => ({
        place: Number(part.dataset.place), left: part.offsetLeft, right: part.offsetLeft + part.offsetWidth, top: part.offsetTop, whole: part.parentElement.clientWidth,
      })));
      const covers = ({ offset, size }) => Math.min(line.bytes, offset + Math.max(1, size)) > Math.max(0, offset);
      assert.equal(drawn.length, line.variables.filter(covers).length);
      for (const part of drawn) {
        const place = line.variables[part.place];
        const [from, to] = [Math.max(0, place.offset), Math.min(line.bytes, place.offset + Math.max(1, place.size))];
        assert.ok(Math.abs(part.left - (from / line.bytes) * part.whole) <= 1 && Math.abs(part.right - (to / line.bytes) * part.whole) <= 2, place.name);
        for (const other of drawn) {
          if (other !== part && other.top === part.top) assert.ok(other.right <= part.left + 2 || other.left >= part.right - 2, "parts of one row do not cover one another");
        }
      }
      assert.ok(plain(await entry.textContent()).includes(plain(line.evidence[0][1])));
      assert.equal(await entry.locator(".line-columns tbody tr").count(), lines.rungs.length);
      assert.equal(await entry.locator(".line-bar").count(), line.costs.filter(Boolean).length);
      const touchers = await entry.locator("tr[data-place]").evaluateAll((rows) => rows.map((row) => [Number(row.dataset.place), row.textContent.startsWith("writes")]));
      assert.deepEqual(touchers, line.touchers.map((one) => [one.place, one.writes]));
    }
  });

  test("a function leads to its machine code", async (t) => {
    if (!lines?.lines.length || !code) return lacking(t, "lines", "no line");
    const link = page.locator("#cache-lines a[href^='#annotate:']").first();
    if (!(await link.count())) return lacking(t, "lines", "none of them is listed");
    const name = await link.textContent();
    await link.click();
    await settled();
    assert.ok((await page.textContent("#annotate .code-head h3")).startsWith(name));
    assert.ok(await page.$("#annotate tr[aria-selected]"), "at its instruction");
  });

  test("a link opens a line", async (t) => {
    if (!lines?.lines.length || !code) return lacking(t, "lines", "no line");
    const line = lines.lines.at(-1);
    await go(`#cache-lines:line=${line.address.toString(16)}&bytes=${line.bytes}`);
    await page.waitForFunction((selector) => [...document.querySelectorAll(selector)].at(-1)?.open, entries);
  });

  test("both can be read in dark and on a narrow screen", async () => {
    assert.deepEqual(await faintTexts(page, 4.5), []);
    await page.click("#theme");
    assert.deepEqual(await faintTexts(page, 4.5), []);
    await page.click("#theme");
    await page.setViewportSize({ width: 390, height: 800 });
    await settled();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), "the page must not scroll sideways");
    await page.setViewportSize({ width: 1180, height: 900 });
    assert.deepEqual(opened.complaints, []);
  });
});
