// Reads the samples that a page holds, on its own: what the page shows is compared with what is found here.
import { inflateRawSync } from "node:zlib";

/** The header and the columns; null where the page holds no samples. */
export function samplesOf(text) {
  if (text.trim() === "") return null;
  const bytes = inflateRawSync(Buffer.from(text.trim(), "base64"));
  const length = bytes.readUInt32LE(0);
  const header = JSON.parse(bytes.subarray(4, 4 + length).toString("utf8"));
  let at = 4 + length;
  const columns = {};
  for (const { name, count, bytes: width } of header.columns) {
    const values = new Array(count).fill(0);
    for (let byte = 0; byte < width; byte++) for (let row = 0; row < count; row++) values[row] += bytes[at++] * 2 ** (8 * byte);
    columns[name] = values;
  }
  return { header, columns };
}

const view = new DataView(new ArrayBuffer(4));

/** The upper three bytes of a 32-bit float. */
function float(value) {
  view.setUint32(0, value * 256);
  return view.getFloat32(0);
}

/** Thread-seconds of each call path itself in the seconds that count: by rung and state. */
export function ownTimes({ header, columns }) {
  const cellsPerSecond = 1e6 / header.cell_us;
  let [sample, sum] = [0, 0];
  return header.rungs.map((rung) => {
    const counted = new Set(rung.counted.map(([measurement, second]) => `${measurement}.${second}`));
    const states = header.states.map(() => new Map());
    const add = (state, node, weight) => states[state].set(node, (states[state].get(node) ?? 0) + weight);
    for (const { state, sums } of rung.thinned) {
      let node = 0;
      for (let place = 0; place < sums; place++, sum++) add(state, node = (node + columns.sum_node[sum]) % 2 ** 32, float(columns.sum_weight[sum]));
    }
    const thinned = new Set(rung.thinned.map(({ state }) => state));
    for (const measurement of rung.measurements) measurement.samples.forEach((count, state) => {
      let node = 0;
      for (let place = 0; place < count; place++, sample++) {
        node = (node + columns.node[sample]) % 2 ** 32;
        if (!thinned.has(state) && counted.has(`${measurement.measurement}.${Math.floor(columns.cell[sample] / cellsPerSecond)}`)) add(state, node, float(columns.weight[sample]));
      }
    });
    return { connections: rung.connections, states };
  });
}

/** Each path's time with all that is within it. */
export function withCallees({ columns: { depth } }, own) {
  const times = depth.map((_, node) => own.get(node) ?? 0);
  const parents = parentsOf(depth);
  for (let node = depth.length - 1; node >= 0; node--) if (parents[node] >= 0) times[parents[node]] += times[node];
  return times;
}

/** What part of a rung's time is spent in a function and what it calls, each path once however often the function is in it. */
export function shareOf(samples, rung, name) {
  const { depth, function: functionOf } = samples.columns;
  const wanted = samples.header.functions.findIndex((one) => one === name);
  let [within, all] = [0, 0];
  for (const own of rung.states) {
    const times = withCallees(samples, own);
    for (let node = 0; node < depth.length;) {
      if (depth[node] === 0) all += times[node];
      if (functionOf[node] !== wanted) { node++; continue; }
      within += times[node];
      const outer = depth[node];
      while (++node < depth.length && depth[node] > outer);
    }
  }
  return within / all;
}

/** The caller of each path; -1 for none. */
export function parentsOf(depth) {
  const open = [];
  return depth.map((one, node) => {
    open.length = one;
    open.push(node);
    return one === 0 ? -1 : open[one - 1];
  });
}
