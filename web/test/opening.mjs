// How long reports take to open and draw their flame graph in Chromium, and how large they are: `npm run opening -- FILE...`.
// Each is opened five times in a browser of its own; times are from the start of navigation, by the page's own clock.
import { chromium } from "playwright-core";
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const rounds = 5;

async function openOnce(file) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const page = await browser.newPage({ viewport: { width: 1180, height: 900 } });
    await page.goto(pathToFileURL(resolve(file)).href);
    await page.waitForFunction(() => performance.getEntriesByName("flame graph drawn").length > 0);
    return await page.evaluate(() => ({
      painted: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
      drawn: performance.getEntriesByName("flame graph drawn")[0].startTime,
    }));
  } finally {
    await browser.close();
  }
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

for (const file of process.argv.slice(2)) {
  const times = [];
  for (let round = 0; round < rounds; round++) times.push(await openOnce(file));
  const show = (key) => `${median(times.map((one) => one[key])).toFixed(0)} ms (${times.map((one) => one[key].toFixed(0)).join(", ")})`;
  console.log(`${file}: ${((await stat(file)).size / 1e6).toFixed(2)} MB; first paint ${show("painted")}; flame graph drawn ${show("drawn")}`);
}
