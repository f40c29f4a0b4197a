/** What a bundle is of, in words: the server, and whether another tool recorded it. */

import type { Manifest } from "./data.ts";
import { workloadNameLabels } from "./vocabulary.ts";

/** The word, unless it stands for one that is not known. */
export function known(word: string): string | undefined {
  return word === "unknown" ? undefined : word;
}

/** Product and version; the binary's name where only that is known, as of a recording. */
export function named({ product, version, binary }: Manifest["server"]): string {
  if (known(product) === undefined) return binary ?? "a server of unknown product";
  return known(version) === undefined ? product : `${product} ${version}`;
}

/** The load as people are shown it. */
export function title({ name, imported_as }: Manifest["workload"]): string {
  return imported_as ?? workloadNameLabels[name];
}

/** Format and event of the recording that the bundle was imported from, such as `perf.data, cpu-clock`. */
export function imported({ options }: Manifest["workload"]): string | undefined {
  return options.find(([name]) => name === "imported")?.[1];
}
