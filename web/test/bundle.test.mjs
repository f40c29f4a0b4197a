// A bundle in DuckDB: every table is read by it, and the queries of docs/bundle.md give what they say. BUNDLE is the folder of a run.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { resolve } from "node:path";
import { before, describe, test } from "node:test";
import { DuckDBInstance } from "@duckdb/node-api";

const bundle = process.env.BUNDLE && resolve(process.env.BUNDLE);
if (!bundle) throw new Error("set BUNDLE to the folder of a run");
const docs = await readFile(new URL("../../docs/bundle.md", import.meta.url), "utf8");
const tables = (await readdir(bundle, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);

let connection;
/** The rows of a query, as objects. */
const rows = async (sql) => (await connection.runAndReadAll(sql)).getRowObjects();
const json = async (name) => JSON.parse(await readFile(`${bundle}/${name}`, "utf8"));

describe("a bundle", () => {
  before(async () => {
    connection = await (await DuckDBInstance.create(":memory:")).connect();
  });

  test("has only tables that DuckDB reads", async () => {
    for (const table of ["measurements", "seconds", "counters", "latency", "errors", "states", "samples", "locks", "stacks", "frames",
      "settings", "instructions", "data_accesses"]) {
      assert.ok(tables.includes(table), table);
      const [{ count }] = await rows(`SELECT count(*) AS count FROM read_parquet('${bundle}/${table}/*.parquet')`);
      // Whether a short run meets an error, a lock or a shared cache line is not sure.
      if (!["errors", "locks", "data_accesses"].includes(table)) assert.ok(count > 0n, table);
    }
  });

  test("names its columns as docs/bundle.md does", async () => {
    const ends = new RegExp(`\n(?=## |\`(?:${tables.join("|")})\`)`);
    for (const table of tables) {
      const section = docs.slice(docs.search(new RegExp(`^\`${table}\``, "m"))).split(ends)[0];
      for (const { column_name: column } of await rows(`DESCRIBE SELECT * FROM read_parquet('${bundle}/${table}/*.parquet')`)) {
        assert.match(section, new RegExp(`\\b${column}\\b`), `${table}.${column}`);
      }
    }
  });

  test("gives the figures of the queries in docs/bundle.md", async () => {
    const queries = [...docs.matchAll(/```sql\n(.*?)```/gs)].map(([, sql]) => sql.replaceAll("BUNDLE", bundle));
    assert.equal(queries.length, 4);
    const { ladder } = await json("manifest.json");
    // The fourth is about a table that only imported recordings have: it is only prepared, over one that has no rows.
    await connection.run(`CREATE VIEW branches AS SELECT 0 AS measurement, '' AS from_module, '' AS from_function, 0 AS from_address,
      0 AS taken, 0 AS mispredicted, 0 AS with_prediction WHERE false`);
    assert.deepEqual(await rows(queries[3].replace(/read_parquet\('[^']*branches[^']*'\)/, "branches")), []);
    const figures = [];
    for (const query of queries.slice(0, 3)) figures.push(await rows(query));
    const [throughput, perTransaction, percentiles] = figures;
    assert.deepEqual(throughput.map((row) => row.connections), ladder.connections);
    assert.deepEqual(percentiles.map((row) => row.connections), ladder.connections);
    for (const { p50_ms: median, p99_ms: slow } of percentiles) assert.ok(median > 0 && median <= slow);
    // They include the warm-up, which summary.json cuts.
    for (const { connections, throughput: { value } } of (await json("summary.json")).rungs) {
      const row = throughput.find((one) => one.connections === connections);
      assert.ok(Math.abs(row.transactions_per_second / value - 1) < 0.5, `${row.transactions_per_second} and ${value} at ${connections}`);
    }
    assert.ok(perTransaction.some((row) => row.counter === "server.cpu_user_seconds" && row.per_transaction > 0));
  });

  test("has the states of a second and the lifetime of their threads, which agree", async () => {
    const [{ states, lifetime }] = await rows(`SELECT sum(nanoseconds) AS states, sum(lifetime_ns) AS lifetime
      FROM read_parquet('${bundle}/states/*.parquet') WHERE second IS NOT NULL`);
    assert.ok(Math.abs(Number(states) / Number(lifetime) - 1) < 0.01, `${states} and ${lifetime}`);
  });
});
