/**
 * How far a time per transaction may be from the truth, by what differs within a visit and between visits: the rule of
 * crates/analysis/src/block_ratio.rs and visit_spread.rs, which say why it is so.
 */

interface StandardError { value: number; degrees: number }

/** A visit's seconds among those that count in its rung: from one place up to another. */
export interface Stretch { start: number; end: number }

const FEWEST_SECONDS = 5;
const FEWEST_BLOCKS = 3;
const SECONDS_OF_A_BLOCK = 5;
const MOST_BLOCKS = 12;
const ENOUGH_BLOCKS = 10;

/**
 * Half of the 95 % interval of Σ sums / Σ amounts over the seconds of a rung; null where there are too few to tell. `sums` begins at `first`.
 * `quantiles` are Student's, as `Profile` has them.
 */
export function halfInterval(sums: Float64Array, first: number, amounts: Float64Array, visits: Stretch[], quantiles: number[]): number | null {
  let all = 0;
  for (const amount of amounts) all += amount;
  const found: { weight: number; figure: number; residues: Float64Array }[] = [];
  let seconds = 0;
  for (const { start, end } of visits) {
    let [sum, amount] = [0, 0];
    for (let at = start; at < end; at++) {
      sum += sums[first + at]!;
      amount += amounts[at]!;
    }
    if (amount <= 0) continue;
    const [figure, ofSecond] = [sum / amount, amount / (end - start)];
    const residues = new Float64Array(end - start);
    for (let at = start; at < end; at++) residues[at - start] = (sums[first + at]! - figure * amounts[at]!) / ofSecond;
    found.push({ weight: amount / all, figure, residues });
    seconds += end - start;
  }
  if (seconds < FEWEST_SECONDS) return null;
  const error = overVisits(found);
  return error && quantile(error.degrees, quantiles) * error.value;
}

function overVisits(visits: { weight: number; figure: number; residues: Float64Array }[]): StandardError | null {
  let within: StandardError | null = { value: 0, degrees: 0 };
  for (const { weight, residues } of visits) {
    const one = ofOneVisit(residues);
    if (within && one) within = { value: Math.hypot(within.value, weight * one.value), degrees: within.degrees + one.degrees };
    else within = null;
  }
  if (visits.length < 2) return within;
  const centre = visits.reduce((sum, { weight, figure }) => sum + weight * figure, 0);
  const squares = visits.reduce((sum, { weight, figure }) => sum + (weight * (figure - centre)) ** 2, 0);
  const between = { value: Math.sqrt((squares * visits.length) / (visits.length - 1)), degrees: visits.length - 1 };
  if (within) return both(within, between);
  return visits.length >= FEWEST_BLOCKS ? between : null;
}

/** Degrees of freedom by Satterthwaite. */
function both(one: StandardError, other: StandardError): StandardError {
  const squares = one.value ** 2 + other.value ** 2;
  const spread = one.value ** 4 / one.degrees + other.value ** 4 / other.degrees;
  return { value: Math.sqrt(squares), degrees: spread > 0 ? squares ** 2 / spread : one.degrees + other.degrees };
}

function ofOneVisit(seconds: Float64Array): StandardError | null {
  const ofFive = Math.min(Math.floor(seconds.length / SECONDS_OF_A_BLOCK), MOST_BLOCKS);
  const blocks = Math.min(Math.max(ofFive, ENOUGH_BLOCKS), seconds.length);
  if (blocks < FEWEST_BLOCKS) return null;
  const edge = (block: number) => Math.floor((block * seconds.length) / blocks);
  const means = Array.from({ length: blocks }, (_, block) => {
    let sum = 0;
    for (let at = edge(block); at < edge(block + 1); at++) sum += seconds[at]!;
    return sum / (edge(block + 1) - edge(block));
  });
  const centre = means.reduce((sum, mean) => sum + mean, 0) / blocks;
  let [squares, products] = [0, 0];
  means.forEach((mean, block) => {
    squares += (mean - centre) ** 2;
    if (block > 0) products += (mean - centre) * (means[block - 1]! - centre);
  });
  let lag = squares > 0 ? products / squares : 0;
  lag = blocks >= 6 ? Math.min(Math.max(lag + (1 + 3 * Math.max(lag, 0)) / blocks, 0), 0.7) : 0;
  return { value: Math.sqrt(((squares / (blocks - 1) / blocks) * (1 + lag)) / (1 - lag)), degrees: blocks - 1 };
}

/** Between the two nearest that are known: they stand at even steps of 1 over the degrees of freedom, from endless many to one. */
function quantile(degrees: number, quantiles: number[]): number {
  const at = (quantiles.length - 1) / Math.max(degrees, 1);
  const [low, part] = [Math.min(Math.floor(at), quantiles.length - 2), at - Math.min(Math.floor(at), quantiles.length - 2)];
  return quantiles[low]! * (1 - part) + quantiles[low + 1]! * part;
}
