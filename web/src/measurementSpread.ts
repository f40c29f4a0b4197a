/**
 * How far a time per transaction may be from the truth, by what differs within a measurement and between measurements: the rule of
 * crates/analysis/src/block_ratio.rs and measurement_spread.rs, which say why it is so.
 */

interface StandardError { value: number; degrees: number }

/** A measurement's seconds among those that count in its rung: from one place up to another. */
export interface Stretch { start: number; end: number }

const FEWEST_SECONDS = 5;
const FEWEST_BLOCKS = 3;
const SECONDS_OF_A_BLOCK = 5;
const MOST_BLOCKS = 12;
const ENOUGH_BLOCKS = 10;

/** What does not depend on whose time it is: a measurement's seconds in blocks, and its part of all that was done. */
interface Measurement {
  /** Transactions, or seconds of a watch: of all, and of a second on average. */
  amount: number;
  ofSecond: number;
  /** Its part of those of the rung. */
  weight: number;
  /** Where each block begins, and the end. */
  edges: Int32Array;
  /** What was done in each block. */
  amounts: Float64Array;
}

/** Half of the 95 % interval of Σ sums / Σ amounts over the seconds of a rung; `sums` begins at `first`. */
export type HalfInterval = (sums: Float64Array, first: number) => number;

/** For a rung of these seconds; null where there are too few to tell. `quantiles` are Student's, as `Profile` has them. */
export function halfInterval(amounts: Float64Array, stretches: Stretch[], quantiles: number[]): HalfInterval | null {
  const all = amounts.reduce((sum, one) => sum + one, 0);
  const worked = stretches.filter(({ start, end }) => amounts.subarray(start, end).some((one) => one > 0));
  const measurements = worked.map((stretch) => inBlocks(amounts, stretch, all));
  const seconds = worked.reduce((sum, { start, end }) => sum + end - start, 0);
  const knowsWithin = measurements.every(({ edges }) => edges.length > FEWEST_BLOCKS);
  if (seconds < FEWEST_SECONDS || (!knowsWithin && measurements.length < FEWEST_BLOCKS)) return null;
  const means = new Float64Array(Math.max(...measurements.map((measurement) => measurement.amounts.length)));
  const figures = new Float64Array(measurements.length);
  return (sums, first) => {
    let [squares, degrees, centre] = [0, 0, 0];
    measurements.forEach((measurement, at) => {
      figures[at] = blockMeans(measurement, sums, first, means);
      centre += measurement.weight * figures[at]!;
      if (!knowsWithin) return;
      squares += (measurement.weight * ofOneMeasurement(means, measurement.amounts.length)) ** 2;
      degrees += measurement.amounts.length - 1;
    });
    const within = knowsWithin ? { value: Math.sqrt(squares), degrees } : null;
    const between = measurements.length < 2 ? null : betweenMeasurements(measurements, figures, centre);
    const error = within && between ? both(within, between) : within ?? between;
    return error === null ? 0 : quantile(error.degrees, quantiles) * error.value;
  };
}

function inBlocks(amounts: Float64Array, { start, end }: Stretch, all: number): Measurement {
  const seconds = end - start;
  const ofFive = Math.min(Math.floor(seconds / SECONDS_OF_A_BLOCK), MOST_BLOCKS);
  const blocks = Math.min(Math.max(ofFive, ENOUGH_BLOCKS), seconds);
  const edges = Int32Array.from({ length: blocks + 1 }, (_, block) => start + Math.floor((block * seconds) / blocks));
  const ofBlocks = Float64Array.from({ length: blocks }, (_, block) => sumOf(amounts, edges[block]!, edges[block + 1]!));
  const amount = sumOf(amounts, start, end);
  return { amount, ofSecond: amount / seconds, weight: amount / all, edges, amounts: ofBlocks };
}

function sumOf(values: Float64Array, start: number, end: number): number {
  let sum = 0;
  for (let at = start; at < end; at++) sum += values[at]!;
  return sum;
}

/** A measurement's time per transaction, and into `means` by how much that of each block is off, on average over its seconds. */
function blockMeans({ amount, ofSecond, edges, amounts }: Measurement, sums: Float64Array, first: number, means: Float64Array): number {
  const blocks = amounts.length;
  let all = 0;
  for (let block = 0; block < blocks; block++) all += means[block] = sumOf(sums, first + edges[block]!, first + edges[block + 1]!);
  const figure = all / amount;
  for (let block = 0; block < blocks; block++) {
    means[block] = (means[block]! - figure * amounts[block]!) / ofSecond / (edges[block + 1]! - edges[block]!);
  }
  return figure;
}

function betweenMeasurements(measurements: Measurement[], figures: Float64Array, centre: number): StandardError {
  let squares = 0;
  measurements.forEach(({ weight }, at) => { squares += (weight * (figures[at]! - centre)) ** 2; });
  return { value: Math.sqrt((squares * measurements.length) / (measurements.length - 1)), degrees: measurements.length - 1 };
}

/** Degrees of freedom by Satterthwaite. */
function both(one: StandardError, other: StandardError): StandardError {
  const squares = one.value ** 2 + other.value ** 2;
  const spread = one.value ** 4 / one.degrees + other.value ** 4 / other.degrees;
  return { value: Math.sqrt(squares), degrees: spread > 0 ? squares ** 2 / spread : one.degrees + other.degrees };
}

/** The standard error of a measurement's figure by its blocks, of which neighbours may be alike. */
function ofOneMeasurement(means: Float64Array, blocks: number): number {
  let centre = 0;
  for (let block = 0; block < blocks; block++) centre += means[block]! / blocks;
  let [squares, products] = [0, 0];
  for (let block = 0; block < blocks; block++) {
    squares += (means[block]! - centre) ** 2;
    if (block > 0) products += (means[block]! - centre) * (means[block - 1]! - centre);
  }
  let lag = squares > 0 ? products / squares : 0;
  lag = blocks >= 6 ? Math.min(Math.max(lag + (1 + 3 * Math.max(lag, 0)) / blocks, 0), 0.7) : 0;
  return Math.sqrt(((squares / (blocks - 1) / blocks) * (1 + lag)) / (1 - lag));
}

/** Between the two nearest that are known: they stand at even steps of 1 over the degrees of freedom, from endless many to one. */
function quantile(degrees: number, quantiles: number[]): number {
  const at = (quantiles.length - 1) / Math.max(degrees, 1);
  const [low, part] = [Math.min(Math.floor(at), quantiles.length - 2), at - Math.min(Math.floor(at), quantiles.length - 2)];
  return quantiles[low]! * (1 - part) + quantiles[low + 1]! * part;
}
