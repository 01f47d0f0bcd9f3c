// The files of a bundle: fetched from the host, or read out of the page itself.
import { ViewerError } from "./errors";

export type ReadBytes = (path: string) => Promise<Uint8Array<ArrayBuffer>>;

const FILE_HINT = "A bundle needs a static host, because browsers do not let a page fetch files beside it. " +
  "Run in its folder: python3 -m http.server --bind 127.0.0.1";

/** Read a file beside the page. */
export const fetchBytes: ReadBytes = async (path) => {
  if (location.protocol === "file:") throw new ViewerError(FILE_HINT);
  let response: Response;
  try {
    response = await fetch(path);
  } catch {
    throw new ViewerError(`The host of this page does not answer (${path}).`);
  }
  if (!response.ok) throw new ViewerError(`The bundle lacks ${path}: the host answered ${response.status}.`, { status: response.status });
  return new Uint8Array(await response.arrayBuffer());
};

/** Read a file that stands in the page, in base64. */
export const inlineBytes: ReadBytes = async (path) => {
  const found = document.querySelector(`script[data-path="${CSS.escape(path)}"]`);
  if (!found) throw new ViewerError(`This file lacks ${path}.`, { status: 404 });
  const text = atob((found.textContent ?? "").trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
};

/** JSON of bytes that are gzipped, unless the host has unpacked them already. */
export async function jsonOf<T>(bytes: Uint8Array<ArrayBuffer>): Promise<T> {
  const isGzipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const stream = isGzipped ? new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")) : new Blob([bytes]).stream();
  return (await new Response(stream).json()) as T;
}

/** The latest answers to questions that are asked again and again; a failure is not kept. */
export class Kept<T> {
  private readonly held = new Map<string, Promise<T>>();

  constructor(private readonly most: number) {}

  get(name: string, make: () => Promise<T>): Promise<T> {
    const before = this.held.get(name);
    const answer = before ?? make();
    this.held.delete(name);
    this.held.set(name, answer);
    if (!before) {
      answer.catch(() => this.held.delete(name));
      const oldest = this.held.keys().next().value;
      if (this.held.size > this.most && oldest !== undefined) this.held.delete(oldest);
    }
    return answer;
  }
}
