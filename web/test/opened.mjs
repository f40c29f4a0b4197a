// Opens a report in Chromium as a reader would, from a file, and watches what it asks for and complains about.
import { chromium } from "playwright-core";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const flags = [
  "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-quic",
];

/** The report that REPORT names. */
export const report = process.env.REPORT && resolve(process.env.REPORT);

/** A page with the report open; `complaints` and `requests` go on filling. */
export async function open(options = {}) {
  if (!report) throw new Error("set REPORT to the report.html to test");
  const folder = await mkdtemp(join(tmpdir(), "scaleprof-page-"));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: flags,
    viewport: { width: 1180, height: 900 },
    colorScheme: "light",
    ...options,
  });
  const page = context.pages()[0] ?? (await context.newPage());
  const complaints = [];
  const requests = [];
  page.on("console", (message) => {
    // Reading pixels back is the test's own doing.
    if (["error", "warning"].includes(message.type()) && !message.text().includes("willReadFrequently")) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
  });
  const started = Date.now();
  await page.goto(pathToFileURL(report).href);
  await page.waitForFunction(() => document.querySelector("#verdict") !== null);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const openedIn = Date.now() - started;
  const data = JSON.parse(await page.textContent("#data"));
  const close = async () => {
    await context.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { page, data, complaints, requests, openedIn, close };
}

/** What a flame graph draws in a pane: frames with their place, width and times. */
export async function drawnFrames(page, name = "flame-graph", pane = 0) {
  // As text: object by object, two thousand frames take a third of a second to come here.
  return JSON.parse(await page.evaluate(([name, pane]) => JSON.stringify(window.scaleprofFlames[name]()[pane]), [name, pane]));
}

/** Opens the report once more at that part of its address, with nothing left of what a reader did. */
export async function openAnew(page, hash = "") {
  // From another page it is one load. From the report itself a changed hash is first followed
  // there, which draws all anew.
  await page.goto("about:blank");
  await page.goto(pathToFileURL(report).href + hash);
}

/** The data that a chart holds, column by column; null where there is no such chart. */
export function charted(page, name) {
  return page.evaluate((name) => {
    const chart = window.scaleprofCharts[name];
    return chart ? chart.data.map((column) => Array.from(column)) : null;
  }, name);
}

/**
 * For each point of a chart's series, how many canvas pixels around it have the series' colour; null where there is no
 * value. It reads what is drawn, not what was asked for.
 */
export function drawnPixels(page, name, series) {
  return page.evaluate(([name, series]) => {
    const chart = window.scaleprofCharts[name];
    const context = chart.ctx;
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = typeof chart.series[series].stroke === "function" ? chart.series[series].stroke(chart, series) : chart.series[series].stroke;
    probe.fillRect(0, 0, 1, 1);
    const wanted = probe.getImageData(0, 0, 1, 1).data;
    const scale = chart.series[series].scale;
    return chart.data[series].map((value, at) => {
      if (value === null || value === undefined) return null;
      const x = Math.round(chart.valToPos(chart.data[0][at], "x", true));
      const y = Math.round(chart.valToPos(value, scale, true));
      const { data } = context.getImageData(x - 8, y - 8, 17, 17);
      let found = 0;
      for (let i = 0; i < data.length; i += 4) {
        const distance = Math.abs(data[i] - wanted[0]) + Math.abs(data[i + 1] - wanted[1]) + Math.abs(data[i + 2] - wanted[2]);
        if (data[i + 3] > 128 && distance < 60) found++;
      }
      return found;
    });
  }, [name, series]);
}
