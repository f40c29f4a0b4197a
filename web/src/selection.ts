/** Which rung the reader looks at, and who shows it. */

const listeners = new Set<(connections: number) => void>();

/** Calls back with the connections of a rung when it is chosen. */
export function onChoice(listener: (connections: number) => void): void {
  listeners.add(listener);
}

/** Shows that rung. */
export function choose(connections: number): void {
  for (const listener of listeners) listener(connections);
}
