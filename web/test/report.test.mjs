// Reads what a report really shows. REPORT names the file; any report will do, what it must show is read from its data.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, describe, test } from "node:test";
import { faintTexts } from "./contrast.mjs";
import { lacking } from "./must.mjs";
import { charted, drawnPixels, open, openAnew, report } from "./opened.mjs";

const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ").replaceAll("×", "x").replace(/\s+/g, " ").trim();

describe("report", () => {
  let opened;
  let page;
  let data;
  let rungs;
  before(async () => {
    opened = await open();
    ({ page, data } = opened);
    rungs = data.summary.rungs;
  });
  after(() => opened?.close());

  /** As at first, not where the reader was. */
  const asAtFirst = async () => {
    await openAnew(page);
    await page.waitForSelector("#verdict");
  };

  // How quickly is measured by opening.mjs: what else runs on the machine must not decide a test.
  test("opens without a complaint and without the network", async (t) => {
    t.diagnostic(`opened in ${opened.openedIn} ms`);
    assert.deepEqual(opened.complaints, []);
    assert.deepEqual(await page.evaluate(() => window.violations), []);
    assert.deepEqual(opened.requests.filter((url) => !/^(file|data):/.test(url)), []);
  });

  test("is one file under a strict policy", async () => {
    const text = await readFile(report, "utf8");
    const head = text.slice(0, text.indexOf("<style>"));
    const policy = /Content-Security-Policy" content="([^"]+)"/.exec(head)?.[1] ?? "";
    assert.match(policy, /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+';/);
    assert.doesNotMatch(policy, /unsafe|connect-src|https?:|\*/);
    const links = await page.evaluate(() => [...document.querySelectorAll("[src],[href]")].map((one) => one.getAttribute("src") ?? one.getAttribute("href")));
    assert.deepEqual(links.filter((link) => !/^(#|data:,)/.test(link)), []);
    await page.evaluate(() => { const script = document.createElement("script"); script.textContent = "window.broken = true"; document.body.append(script); script.remove(); });
    assert.equal(await page.evaluate(() => window.broken), undefined, "a script that is not ours must not run");
    assert.ok((await page.evaluate(() => window.violations)).length > 0);
    opened.complaints.length = 0;
  });

  test("lays out the rest once the flame graph is there, and where its samples are damaged", async () => {
    const folder = await mkdtemp(join(tmpdir(), "scaleprof-damaged-"));
    const damaged = join(folder, "report.html");
    const text = await readFile(report, "utf8");
    await writeFile(damaged, text.replace(/(<script id="profile" type="text\/plain">)[^<]{9}/, "$1!damaged!"));
    const other = await page.context().newPage();
    const held = (one) => one.evaluate(() => [...document.querySelectorAll("main section")]
      .filter((section) => getComputedStyle(section).contentVisibility === "hidden").map((section) => section.id));
    try {
      for (const [url, isDamaged] of [[page.url(), false], [pathToFileURL(damaged).href, !text.includes(`"profile" type="text/plain"></script>`)]]) {
        await other.goto(url);
        await other.waitForSelector("main:not(.opening)");
        assert.deepEqual(await held(other), []);
        assert.equal(await other.locator("#flame .incomplete").count(), isDamaged ? 1 : 0);
      }
    } finally {
      await other.close();
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("lets nothing wait where a link leads into it, where it is opened anew, or on paper", async () => {
    const other = await page.context().newPage();
    await other.addInitScript(() => {
      window.waited = [];
      new MutationObserver(() => {
        const main = document.querySelector("main");
        if (main && window.waited.length === 0) window.waited.push(main.classList.contains("opening"));
      }).observe(document, { childList: true, subtree: true });
    });
    const hasWaited = async () => {
      await other.waitForSelector("#verdict");
      return other.evaluate(() => window.waited[0]);
    };
    const url = page.url().split("#")[0];
    try {
      await other.goto(url);
      assert.equal(await hasWaited(), (await other.locator("#throughput, #findings").count()) > 0);
      await other.reload();
      assert.equal(await hasWaited(), false);
      await other.goto("about:blank");
      await other.goto(`${url}#settings`);
      assert.equal(await hasWaited(), false);
      await other.evaluate(() => document.querySelector("main").classList.add("opening"));
      await other.emulateMedia({ media: "print" });
      assert.deepEqual(await other.evaluate(() => [...document.querySelectorAll("main section")]
        .filter((section) => getComputedStyle(section).contentVisibility === "hidden").map((section) => section.id)), []);
    } finally {
      await other.close();
    }
  });

  test("says the verdict and how the run stands", async () => {
    const said = plain(await page.textContent("#verdict"));
    if (data.summary.verdict) assert.equal(said, plain(data.summary.verdict.sentence));
    else assert.match(said, /no verdict/);
    const alert = await page.$(".incomplete");
    assert.equal(alert !== null, data.manifest.state !== "complete");
    if (alert && data.manifest.problem) assert.ok((await alert.textContent()).includes(data.manifest.problem));
    assert.ok(plain(await page.textContent(".subject")).includes(data.summary.watch ? data.manifest.server.binary : data.manifest.server.version));
    for (const warning of data.summary.warnings) assert.ok((await page.textContent("#caveats")).includes(warning));
    for (const { reason } of data.summary.missing) assert.ok((await page.textContent("#caveats")).includes(reason));
  });

  test("draws throughput at every rung", async (t) => {
    if (!rungs.length) return t.skip("no rung");
    const [x, y] = await charted(page, "throughput");
    assert.deepEqual(x, rungs.map((rung) => rung.connections));
    assert.deepEqual(y, rungs.map((rung) => rung.throughput.value));
    for (const [at, pixels] of (await drawnPixels(page, "throughput", 1)).entries()) assert.ok(pixels > 20, `rung ${x[at]}: ${pixels} pixels`);
  });

  test("draws the factors that were measured, and says why where not", async (t) => {
    if (!rungs.length) return t.skip("no rung");
    const factors = {
      utilisation: (rung) => rung.iron_law?.utilisation, cpu: (rung) => rung.iron_law?.cpu_seconds_per_txn,
      instructions: (rung) => rung.iron_law?.instructions_per_txn, cpi: (rung) => rung.iron_law?.cycles_per_instruction,
      clock: (rung) => rung.iron_law?.clock_hz, switches: (rung) => rung.context_switches_per_txn,
    };
    let missing = 0;
    for (const [name, of] of Object.entries(factors)) {
      const known = rungs.filter((rung) => typeof of(rung) === "number").length;
      const chart = await charted(page, `factor-${name}`);
      assert.equal(chart !== null, known > 0, name);
      if (!chart) { missing++; continue; }
      const pixels = (await drawnPixels(page, `factor-${name}`, 1)).filter((count) => count !== null);
      assert.equal(pixels.length, known);
      assert.ok(pixels.every((count) => count > 20), `${name}: ${pixels}`);
    }
    assert.equal(await page.locator("#iron-law ul.notes li").count(), missing);
    const peak = data.summary.verdict?.peak_connections;
    const others = rungs.filter((rung) => rung.iron_law && rung.connections !== peak).length;
    assert.equal(await page.locator("#decomposition").count(), others && rungs.some((rung) => rung.iron_law && rung.connections === peak) ? 1 : 0);
  });

  test("stacks the connections' time by state, and says why where it was not measured", async (t) => {
    if (!rungs.length) return t.skip("no rung");
    const measured = rungs.filter((rung) => rung.ledger);
    if (!measured.length) {
      const said = plain(await page.textContent("#ledger"));
      const { reason } = data.summary.missing.find(({ figure }) => figure === "ledger") ?? { reason: "not watched" };
      return assert.ok(said.includes(plain(reason)), said);
    }
    const drawn = await page.$$eval("#ledger .bar.stack", (bars) => bars.map((bar) => ({
      whole: Number(bar.querySelector(".whole").getAttribute("x1")),
      parts: [...bar.querySelectorAll("rect")].map((part) => [part.dataset.state, Number(part.getAttribute("x")), Number(part.getAttribute("width"))]),
    })));
    assert.equal(drawn.length, measured.length);
    for (const [at, { whole, parts }] of drawn.entries()) {
      const { seconds_per_txn: times, connections_over_throughput: all, residual } = measured[at].ledger;
      let end = 0;
      for (const [state, x, width] of parts) {
        assert.ok(Math.abs(x - end) < 1e-6, `${state} begins where the one before it ends`);
        assert.ok(Math.abs(width / whole - (times[state] ?? 0) / all) < 1e-9, state);
        end = x + width;
      }
      assert.ok(Math.abs(end / whole - 1 - residual) < 1e-6, `the bar of ${measured[at].connections} ends at its residual`);
    }
    const fold = page.locator("#ledger > details.folded");
    await fold.locator("summary").press("Enter");
    await fold.locator("tbody tr").first().waitFor();
    assert.equal(await fold.locator("tbody tr").count(), measured.length);
    await fold.locator("summary").press("Enter");
    assert.equal(await page.locator("#background tbody tr").count(), measured.at(-1).ledger.background.length);
  });

  test("says of each finding what its share is a part of, and what no finding explains", async (t) => {
    const { findings, explained, base_rungs: compared } = data.summary;
    if (!findings.length) return lacking(t, "findings", "no finding");
    const entries = page.locator("#findings ol.findings > li");
    assert.equal(await entries.count(), findings.length);
    const wholes = { cpu_time: "a transaction’s CPU time", connection_time: "the connections’ time", transactions: "the transactions", rungs: "the rungs", throughput: "the throughput" };
    for (const [at, finding] of findings.entries()) {
      const share = plain(await entries.nth(at).locator(".share").textContent());
      assert.ok(share.includes(`of ${wholes[finding.share_of]}`), share);
    }
    const said = plain(await page.textContent("#findings"));
    for (const account of explained) assert.ok(said.includes(plain(account.sentence)), account.sentence);
    if (compared) assert.ok(said.includes(plain(compared)), compared);
  });

  test("shows the heaviest call paths and locks of a chosen rung", async (t) => {
    const sampled = rungs.filter((rung) => rung.paths.length);
    if (!sampled.length) {
      assert.equal(await page.locator("#paths").count(), 0);
      return lacking(t, "flame", "no stack was sampled");
    }
    for (const rung of [sampled[0], sampled.at(-1)]) {
      await page.selectOption("#paths-rung", String(rung.connections));
      const tables = page.locator("#paths table");
      assert.equal(await tables.first().locator("tbody tr").count(), rung.paths.length);
      assert.equal(await tables.count(), rung.locks.length ? 2 : 1);
      const path = tables.first().locator("details").first();
      assert.equal(await path.locator("ol").isVisible(), false);
      await path.locator("summary").press("Enter");
      await path.locator("li").first().waitFor();
      const busy = data.summary.scaling?.rungs.some((one) => one.connections === rung.connections && one.cpus_busy);
      const first = rung.paths.find((one) => !(busy && one.state === "runq")) ?? rung.paths[0];
      assert.deepEqual(await path.locator("li").allTextContents(), first.path, "waiting for a CPU is no cause while all are busy");
      await path.locator("summary").press("Enter");
      if (rung.locks[0]?.name) assert.ok(plain(await tables.last().textContent()).includes(rung.locks[0].name));
    }
  });

  test("draws the percentiles of latency", async (t) => {
    const measured = ["p50", "p95", "p99", "p999", "max"].filter((key) => rungs.some((rung) => rung.latency_ms[key] > 0));
    if (!measured.length) return t.skip("no latency");
    // What is further down is drawn when the reader comes there.
    await page.locator("#latency").scrollIntoViewIfNeeded();
    await page.waitForFunction(() => "latency-service" in window.scaleprofCharts);
    const columns = await charted(page, "latency-service");
    assert.equal(columns.length, measured.length + 1);
    for (const [at, key] of measured.entries()) {
      assert.deepEqual(columns[at + 1], rungs.map((rung) => rung.latency_ms[key] || null));
      // Of few transactions the slowest of a thousand is the slowest of all: the line that is drawn later covers the other.
      const covered = (rung) => measured.slice(at + 1).some((later) => rung.latency_ms[later] < 1.1 * rung.latency_ms[key]);
      assert.ok((await drawnPixels(page, "latency-service", at + 1))
        .every((count, rung) => count === null || count > 4 || covered(rungs[rung])), key);
    }
    assert.equal((await charted(page, "latency-response")) !== null, rungs.some((rung) => rung.response_ms));
  });

  test("the arrow keys go from rung to rung and the seconds follow", async (t) => {
    const choices = [...new Set(data.measurements.map((measurement) => measurement.connections))].sort((a, b) => a - b);
    if (!choices.length || data.summary.watch) return t.skip("no seconds of a load of ours");
    const shown = async () => (await charted(page, "seconds-throughput"))?.[1].filter((value) => value !== null);
    const wanted = (connections) => data.measurements.filter((measurement) => measurement.connections === connections)
      .sort((a, b) => a.repeat - b.repeat).flatMap((measurement) => measurement.seconds.transactions);
    const chosen = () => page.evaluate(() => Number(document.querySelector(".rungs [aria-checked=true]").dataset.rung));
    await page.focus(".rungs [aria-checked=true]");
    await page.keyboard.press("Home");
    for (const connections of choices.slice(0, 4)) {
      assert.equal(await chosen(), connections);
      assert.equal(await page.evaluate(() => Number(document.activeElement.dataset.rung)), connections);
      assert.deepEqual(await shown(), wanted(connections));
      assert.ok(plain(await page.textContent("#series-heading")).startsWith(plain(connections.toLocaleString("en").replaceAll(",", " "))));
      await page.keyboard.press("ArrowRight");
    }
    await page.keyboard.press("End");
    assert.deepEqual(await shown(), wanted(choices.at(-1)));
    assert.equal(await page.locator(".rungs [tabindex='0']").count(), 1);
  });

  test("a counter can be chosen", async (t) => {
    const select = page.locator("#counter-1");
    if (!(await select.count())) return t.skip("no counters");
    const names = await select.locator("option").evaluateAll((options) => options.map((option) => option.value));
    const rung = await page.evaluate(() => Number(document.querySelector(".rungs [aria-checked=true]").dataset.rung));
    const measurements = data.measurements.filter((measurement) => measurement.connections === rung).sort((a, b) => a.repeat - b.repeat);
    const name = names.findLast((one) => measurements.some((measurement) => measurement.counters[one])) ?? names[0];
    await select.selectOption(name);
    const shown = (await charted(page, "seconds-counter-1"))[1].filter((value) => value !== null);
    assert.deepEqual(shown, measurements.flatMap((measurement) => measurement.counters[name] ?? []).filter((value) => value !== null));
  });

  test("every chart says in words what it shows and has its figures in a table", async () => {
    const labels = await page.$$eval(".chart", (charts) => charts.map((chart) => [chart.getAttribute("role"), chart.getAttribute("aria-label").length]));
    assert.ok(labels.length > 0 || !rungs.length);
    assert.ok(labels.every(([role, length]) => role === "img" && length > 20));
    const figures = await page.locator("#throughput figure, #iron-law figure, #latency figure").count();
    const folds = page.locator("#throughput details, #iron-law details, #latency details");
    assert.equal(await folds.count(), figures);
    for (let at = 0; at < figures; at++) {
      await folds.nth(at).locator("summary").press("Enter");
      await folds.nth(at).locator("tbody tr").first().waitFor();
      assert.equal(await folds.nth(at).locator("tbody tr").count(), rungs.length);
      await folds.nth(at).locator("summary").press("Enter");
    }
    if (rungs.length) assert.equal(await page.locator("#figures .scroll").first().locator("tbody tr").count(), rungs.length);
  });

  test("settings are found by their words", async (t) => {
    if (!data.settings.length) return t.skip("no settings");
    const [name, value] = data.settings.at(-1);
    await page.fill("#settings-search", name);
    const row = page.locator("#settings tbody tr", { hasText: name }).first();
    assert.equal(plain(await row.locator("td").textContent()), plain(value));
    await page.fill("#settings-search", "no such setting anywhere");
    assert.equal(await page.locator("#settings tbody tr").count(), 0);
    await page.fill("#settings-search", "");
    assert.equal(await page.locator("#settings tbody tr").count(), data.settings.length);
  });

  test("the keyboard reaches everything and shows where it is", async () => {
    await asAtFirst();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    const seen = new Set();
    for (let step = 0; step < 240; step++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const one = document.activeElement;
        return [one.id || one.getAttribute("role") || one.tagName, one === document.body || getComputedStyle(one).outlineStyle !== "none"];
      });
      seen.add(at[0]);
      assert.ok(at[1], `${at[0]} shows no focus`);
    }
    for (const wanted of ["theme", ...(data.measurements.length && !data.summary.watch ? ["radio"] : []), ...(data.settings.length ? ["settings-search"] : [])]) assert.ok(seen.has(wanted), wanted);
  });

  test("light and dark have contrast, and the curves change with them", async () => {
    const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    assert.deepEqual(await faintTexts(page, 4.5), []);
    const light = await paper();
    await page.click("#theme");
    assert.notEqual(await paper(), light);
    assert.deepEqual(await faintTexts(page, 4.5), []);
    if (rungs.length) assert.ok((await drawnPixels(page, "throughput", 1)).every((count) => count > 20));
    await page.click("#theme");
    assert.equal(await paper(), light);
  });

  test("prints what was never on the screen", async (t) => {
    if (!rungs.some((rung) => rung.latency_ms.p50 > 0)) return t.skip("no latency");
    await asAtFirst();
    assert.equal(await charted(page, "latency-service"), null);
    await page.pdf({ preferCSSPageSize: true });
    assert.notEqual(await charted(page, "latency-service"), null);
  });

  test("prints light, whatever the screen shows", async () => {
    await page.click("#theme");
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), "rgb(255, 255, 255)");
    assert.equal(await page.isVisible(".top"), false);
    assert.deepEqual(await faintTexts(page, 4.5), []);
    if (rungs.length) {
      assert.equal(await page.evaluate(() => window.scaleprofCharts.throughput.series[1].stroke(window.scaleprofCharts.throughput, 1)), "#0b5c9e");
      const tooWide = await page.$$eval(".chart-box", (boxes) => boxes.filter((box) => box.clientWidth > 690 || box.querySelector("canvas")?.clientWidth > 690).length);
      assert.equal(tooWide, 0);
    }
    assert.ok((await page.pdf({ preferCSSPageSize: true })).length > 10_000);
    await page.emulateMedia({ media: "screen" });
    await page.click("#theme");
    assert.equal(await page.isVisible(".top"), true);
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

test("follows a system that is dark, and a reader without JavaScript still reads the figures", async () => {
  const dark = await open({ colorScheme: "dark" });
  const paper = await dark.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  assert.ok(paper.match(/\d+/g).map(Number).every((part) => part < 60), paper);
  await dark.close();
  const text = await readFile(report, "utf8");
  const noscript = /<noscript>([\s\S]*?)<\/noscript>/.exec(text)?.[1] ?? "";
  assert.ok(noscript.includes("<pre>") && noscript.length > 100);
});
