// Makes dist/page.html, a run's report, and dist/diff.html, which compares two: each one file with its script and style inside,
// both allowed by their hash and nothing else allowed.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";

const here = (path) => new URL(path, import.meta.url);

async function bundle(entry) {
  const result = await build({
    entryPoints: [here(entry).pathname],
    absWorkingDir: here(".").pathname,
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["chrome109", "firefox115", "safari16"],
    charset: "utf8",
    legalComments: "none",
    // Two canvas pixels for each of the page, whatever the screen: curves are sharp on paper too.
    define: { devicePixelRatio: "2" },
  });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

const licence = (await readFile(here("node_modules/uplot/LICENSE"), "utf8")).replaceAll("\r", "").trim();
if (licence.includes("--")) throw new Error("the licence would end its comment");

/** The page of that name: its script, style and template. */
async function make(name, [entry, sheet, frame]) {
  const [script, style, template] = await Promise.all([bundle(entry), bundle(sheet), readFile(here(frame), "utf8")]);
  if (/<\/(script|style)|<!--/i.test(script + style)) throw new Error("script or style would end its own element");
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const values = { POLICY: policy, STYLE: style, SCRIPT: script, LICENCE: licence };
  const page = template.replace(/%(POLICY|STYLE|SCRIPT|LICENCE)%/g, (_, key) => values[key]);
  await writeFile(here(`dist/${name}.html`), page);
  console.log(`dist/${name}.html: ${(page.length / 1024).toFixed(0)} KiB`);
}

await mkdir(here("dist"), { recursive: true });
await make("page", ["src/main.ts", "src/style.css", "src/page.html"]);
await make("diff", ["src/diff.ts", "src/diff.css", "src/diff.html"]);
