/** Large text of the page: base64 of a raw deflate stream, as crates/report/src/html/packed.rs and profile.rs write it. */

/** Newer browsers read it themselves, and fast. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const own = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (own) return own.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** The bytes; fails where the text is damaged. */
export async function inflated(text: string): Promise<Uint8Array> {
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** What an element of the page holds as packed JSON; null where it is empty. */
export function packedJson<T>(id: string): Promise<T> | null {
  const text = document.getElementById(id)?.textContent?.trim();
  if (!text) return null;
  return inflated(text).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as T);
}

/** Fills a part of the page once its data are unpacked, or says why that cannot be. */
export function filledFrom<T>(into: HTMLElement, ready: Promise<T>, make: (found: T) => Node[]): HTMLElement {
  ready.then((found) => into.append(...make(found))).catch((problem: unknown) => {
    console.error(into.id, problem);
    const words = document.createElement("p");
    words.className = "incomplete";
    words.textContent = `This part could not be shown: ${problem instanceof Error ? problem.message : String(problem)}`;
    into.append(words);
  });
  return into;
}
