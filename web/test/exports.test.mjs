// What speedscope and the Firefox Profiler make of what is exported for them, read by their own loaders. EXPORTS is a folder with
// one rung in three formats, all of the first repeat and in plain seconds: rung.speedscope.json, rung.firefox.json, and
// rung.folded, with which they must agree function by function. (That folded stacks say what the flame graph says is tested in
// Rust, as is the reader of pprof.)
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const exports = process.env.EXPORTS && resolve(process.env.EXPORTS);
if (!exports) throw new Error("set EXPORTS to the folder of the exports");
const require = createRequire(import.meta.url);
const run = promisify(execFile);

/** Seconds by function, in it alone and with all that it calls, and how many were added up. */
function add(sums, name, alone, withAll) {
  const sum = sums.get(name) ?? { alone: 0, withAll: 0, paths: 0 };
  sums.set(name, { alone: sum.alone + alone, withAll: sum.withAll + withAll, paths: sum.paths + 1 });
}

/** What folded stacks say, by the names of the other formats. */
async function folded() {
  const sums = new Map();
  for (const line of (await readFile(join(exports, "rung.folded"), "utf8")).trim().split("\n")) {
    const at = line.lastIndexOf(" ");
    const seconds = Number(line.slice(at)) / 1e6;
    const path = line.slice(0, at).split(";").map((name) => name.replace(/_\[k\]$/, " [k]"));
    for (const name of new Set(path)) add(sums, name, name === path.at(-1) ? seconds : 0, seconds);
  }
  return { sums };
}

let expected;
let folder;
before(async () => {
  expected = await folded();
  folder = await mkdtemp(join(tmpdir(), "scaleprof-exports-"));
});
after(() => rm(folder, { recursive: true, force: true }));

test("speedscope shows the functions with their times", async () => {
  const release = join(dirname(require.resolve("speedscope/package.json")), "dist/release/index.html");
  const file = await readFile(join(exports, "rung.speedscope.json"));
  const script = join(folder, "profile.js");
  // What speedscope's own command writes for its page.
  await writeFile(script, `speedscope.loadFileFromBase64("rung.speedscope.json", "${file.toString("base64")}")`);
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1180, height: 900 } });
    const complaints = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(`${pathToFileURL(release).href}#localProfilePath=${script}`);
    await page.waitForFunction(() => document.title.includes(" - speedscope"));
    await page.keyboard.press("3");
    const row = /([\d.]+)(s|ms|µs|ns) \([^)]*%\)\s+([\d.]+)(s|ms|µs|ns) \([^)]*%\)\s+(\S.*)/g;
    // The table's head is there before its rows are.
    const least = Math.min(10, expected.sums.size);
    const areThere = ({ row, least }) => [...(document.body.innerText.split("Symbol Name")[1] ?? "").matchAll(new RegExp(row, "g"))].length >= least;
    await page.waitForFunction(areThere, { row: row.source, least });
    const text = (await page.evaluate(() => document.body.innerText)).split("Symbol Name")[1];
    const scale = { s: 1, ms: 1e-3, µs: 1e-6, ns: 1e-9 };
    let rows = 0;
    for (const [, total, totalUnit, alone, aloneUnit, name] of text.matchAll(row)) {
      const known = expected.sums.get(name);
      assert.ok(known, `${name} is not in the folded stacks`);
      // It shows four figures; folded stacks have whole microseconds.
      const near = (shown, seconds) => assert.ok(Math.abs(shown - seconds) <= 0.01 * seconds + 50e-6, `${name}: ${shown} and ${seconds}`);
      near(total * scale[totalUnit], known.withAll);
      near(alone * scale[aloneUnit], known.alone);
      rows++;
    }
    assert.ok(rows >= least, `${rows} functions were shown`);
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
  }
});

describe("Firefox Profiler", () => {
  // Its command line is the profiler's own code without the page. It keeps the profile in a process of its own until `stop`.
  const command = join(dirname(require.resolve("@firefox-devtools/profiler-cli/package.json")), "dist/profiler-cli.js");
  const profiler = async (...words) => {
    const environment = { ...process.env, PROFILER_CLI_SESSION_DIR: folder, PROFILER_CLI_NO_SYMBOLICATE: "1" };
    const options = { env: environment, maxBuffer: 1 << 28, timeout: 60_000 };
    return (await run(process.execPath, [command, ...words], options)).stdout;
  };
  before(() => profiler("load", join(exports, "rung.firefox.json")));
  after(() => profiler("stop", "--all"));

  test("threads have the functions with their times and their states", async () => {
    const { threads } = JSON.parse(await profiler("thread", "list", "--json"));
    assert.ok(threads.length > 0);
    const sums = new Map();
    const functionsOf = new Map();
    for (const { threadHandle } of threads) {
      const words = ["--thread", threadHandle, "--include-idle", "--limit", "0", "--json"];
      const { functions, weightType } = JSON.parse(await profiler("thread", "functions", ...words));
      assert.equal(weightType, "tracing-ms");
      for (const one of functions) {
        add(sums, one.name, one.selfSamples / 1e3, one.totalSamples / 1e3);
        functionsOf.set(one.name, (functionsOf.get(one.name) ?? new Set()).add(one.functionHandle));
      }
    }
    assert.ok(sums.size >= expected.sums.size);
    for (const [name, known] of expected.sums) {
      const found = sums.get(name);
      assert.ok(found, `${name} is in no thread`);
      // Each path of the folded stacks is rounded by less than a microsecond, and it is in so many of them.
      const near = (one, other) => assert.ok(Math.abs(one - other) <= known.paths * 1e-6, `${name}: ${one} and ${other}`);
      near(found.alone, known.alone);
      // Overloads from two source files are two functions there, which may call one another.
      if (functionsOf.get(name).size === 1) near(found.withAll, known.withAll);
      else assert.ok(found.withAll >= known.withAll - known.paths * 1e-6, `${name}: ${found.withAll} and ${known.withAll}`);
    }
    const shown = await profiler("thread", "samples", "--thread", threads[0].threadHandle);
    assert.match(shown, /On a CPU|Waiting for/);
  });
});
