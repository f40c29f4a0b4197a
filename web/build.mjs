// Makes dist/page.html: one file with its script and style inside, each allowed by its hash and nothing else allowed.
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

const [script, style, template, licence] = await Promise.all([
  bundle("src/main.ts"),
  bundle("src/style.css"),
  readFile(here("src/page.html"), "utf8"),
  readFile(here("node_modules/uplot/LICENSE"), "utf8"),
]);
if (/<\/(script|style)|<!--/i.test(script + style) || licence.includes("--")) throw new Error("script or style would end its own element");

const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
const values = { POLICY: policy, STYLE: style, SCRIPT: script, LICENCE: licence.replaceAll("\r", "").trim() };
const page = template.replace(/%(POLICY|STYLE|SCRIPT|LICENCE)%/g, (_, name) => values[name]);
await mkdir(here("dist"), { recursive: true });
await writeFile(here("dist/page.html"), page);
console.log(`dist/page.html: ${(page.length / 1024).toFixed(0)} KiB`);
