// Long work in the page without a worker: it lets the browser draw in between. (The page's policy permits no worker.)

const MOST_MS_AT_ONCE = 12;

export class Patience {
  private since = performance.now();

  /** True where work has gone on so long that the page should get its turn: then await `rest()`. */
  get isUp(): boolean {
    return performance.now() - this.since > MOST_MS_AT_ONCE;
  }

  async rest(): Promise<void> {
    await new Promise<void>((resume) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resume();
      };
      port2.postMessage(null);
    });
    this.since = performance.now();
  }
}

const PIECE = 4096;

/** Numbers sorted by an order, in pieces that are merged: stable, and the page stays usable. */
export async function sortPatiently(items: Uint32Array<ArrayBuffer>, order: (a: number, b: number) => number): Promise<Uint32Array<ArrayBuffer>> {
  const patience = new Patience();
  let from = items.slice();
  for (let start = 0; start < from.length; start += PIECE) {
    from.subarray(start, start + PIECE).sort((a, b) => order(a, b) || a - b);
    if (patience.isUp) await patience.rest();
  }
  let to = new Uint32Array(from.length);
  for (let width = PIECE; width < from.length; width *= 2) {
    for (let start = 0; start < from.length; start += 2 * width) {
      const middle = Math.min(start + width, from.length);
      const end = Math.min(start + 2 * width, from.length);
      let left = start;
      let right = middle;
      for (let at = start; at < end; at += 1) {
        const a = from[left] ?? 0;
        const b = from[right] ?? 0;
        const isLeft = left < middle && (right >= end || (order(a, b) || a - b) <= 0);
        to[at] = isLeft ? a : b;
        if (isLeft) left += 1;
        else right += 1;
        if ((at & 1023) === 0 && patience.isUp) await patience.rest();
      }
    }
    [from, to] = [to, from];
  }
  return from;
}
