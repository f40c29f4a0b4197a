// What is said of a long run: src/longRun.ts by itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const built = await build({ entryPoints: [new URL("../src/longRun.ts", import.meta.url).pathname], bundle: true, write: false, format: "esm" });
const { duration, longRunSentence } = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
const plain = (text) => text.replaceAll("\u202f", " ");

test("a time is told in its two largest units", () => {
  for (const [seconds, text] of [[0, "0 s"], [40, "40 s"], [420, "7 min"], [425, "7 min 5 s"], [7200, "2 h"], [14705, "4 h 5 min"]]) assert.equal(duration(seconds), text);
});

test("a run of hours is told with its decline, its jitter and its levels", () => {
  const level = (from_second, throughput) => ({ from_second, seconds: 1000, throughput });
  const run = {
    seconds: 14700, jitter: 0.034, jitter_window_seconds: 7200, change_per_hour: { value: -0.012, low: -0.015, high: -0.009 },
    levels: [level(0, 1000), level(5400, 960)],
  };
  assert.equal(plain(longRunSentence(64, 1, run)),
    "4 h 5 min at 64 connections: throughput changes by −1.2 % (−1.5 % to −0.9 %) an hour; halves of any 2 h differ by up to 3.4 % "
    + "(more than the 2 % that TPC-C lets pass); its levels: 1 000/s from 0 s, 960/s from 1 h 30 min.");
  const short = { ...run, seconds: 310, jitter: 0.004, jitter_window_seconds: 310, levels: [level(0, 1000)] };
  assert.match(plain(longRunSentence(1, 1, short)), /halves of it differ by up to 0\.4 % \(TPC-C’s rule is of two hours\)\.$/);
});
