// Rows of various heights, up to some 10⁵ of them: only those that are seen are in the page. Heights are kept in a tree of
// sums, so that a row that turns out taller costs the logarithm of the list and not all of it (TanStack's core adds up
// all rows behind it, which takes longer than a frame from 10⁴ rows on).
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

/** Heights of rows and the sums of them (a Fenwick tree). */
export class Heights {
  private readonly sizes: Float64Array;
  private readonly sums: Float64Array;
  private readonly highest: number;

  constructor(readonly count: number, estimate: (index: number) => number) {
    this.sizes = Float64Array.from({ length: count }, (_, index) => estimate(index));
    this.sums = new Float64Array(count + 1);
    for (let at = 1; at <= count; at += 1) {
      this.sums[at] = (this.sums[at] ?? 0) + (this.sizes[at - 1] ?? 0);
      const parent = at + (at & -at);
      if (parent <= count) this.sums[parent] = (this.sums[parent] ?? 0) + (this.sums[at] ?? 0);
    }
    this.highest = 2 ** Math.floor(Math.log2(Math.max(1, count)));
  }

  get total(): number {
    return this.startOf(this.count);
  }

  sizeOf(index: number): number {
    return this.sizes[index] ?? 0;
  }

  /** Set the height of a row; returns by how much it grew. */
  set(index: number, size: number): number {
    const grown = size - this.sizeOf(index);
    this.sizes[index] = size;
    for (let at = index + 1; at <= this.count; at += at & -at) this.sums[at] = (this.sums[at] ?? 0) + grown;
    return grown;
  }

  /** Where a row begins: the sum of all heights before it. */
  startOf(index: number): number {
    let sum = 0;
    for (let at = index; at > 0; at -= at & -at) sum += this.sums[at] ?? 0;
    return sum;
  }

  /** The row at a place. */
  indexAt(place: number): number {
    let index = 0;
    let left = place;
    for (let step = this.highest; step > 0; step >>= 1) {
      const sum = this.sums[index + step];
      if (index + step <= this.count && sum !== undefined && sum <= left) {
        index += step;
        left -= sum;
      }
    }
    return Math.min(index, Math.max(0, this.count - 1));
  }
}

export type Align = "start" | "center" | "end";

export interface LongList {
  /** The rows to draw now. */
  items: { index: number; start: number }[];
  totalSize: number;
  /** `ref` of each row's element (with `data-index`): its real height replaces the estimate. */
  measure: (element: HTMLElement | null) => void;
  scrollTo: (index: number, align?: Align) => void;
}

const BEYOND_PX = 400;
const MOST_TRIES = 8;

/** The rows of `scroller`; `estimate` must be the same function as long as the list is. */
export function useLongList(count: number, scroller: { current: HTMLElement | null }, estimate: (index: number) => number): LongList {
  const heights = useMemo(() => new Heights(count, estimate), [count, estimate]);
  const [view, setView] = useState({ top: 0, size: 800 });
  const [, draw] = useState(0);
  const shift = useRef(0);
  const target = useRef<{ index: number; align: Align; tries: number } | null>(null);
  const measured = useMemo(() => new Set<number>(), [heights]);
  const current = useRef({ heights, measured });
  current.current = { heights, measured };

  useLayoutEffect(() => {
    const frame = scroller.current;
    if (!frame) return undefined;
    const look = () => setView((before) => {
      const top = frame.scrollTop;
      const size = frame.clientHeight;
      // Within the rows that are drawn beyond the edges there is nothing new to draw.
      return Math.abs(top - before.top) < BEYOND_PX / 4 && size === before.size ? before : { top, size };
    });
    look();
    frame.addEventListener("scroll", look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(frame);
    return () => {
      frame.removeEventListener("scroll", look);
      observer.disconnect();
    };
  }, []);

  const observer = useMemo(() => new ResizeObserver((entries) => {
    const { heights: list, measured: known } = current.current;
    const top = scroller.current?.scrollTop ?? 0;
    let hasChanged = false;
    for (const { target: row, borderBoxSize } of entries) {
      const index = Number((row as HTMLElement).dataset.index);
      const size = borderBoxSize[0]?.blockSize ?? 0;
      if (!row.isConnected || !size || !(index < list.count) || Math.abs(size - list.sizeOf(index)) < 0.5) continue;
      const start = list.startOf(index);
      // What stands above the reader's place must not push it: the place moves along.
      const isAbove = start + list.sizeOf(index) <= top || (start < top && !known.has(index));
      const grown = list.set(index, size);
      if (isAbove) shift.current += grown;
      known.add(index);
      hasChanged = true;
    }
    if (hasChanged) draw((before) => before + 1);
  }), []);
  useEffect(() => () => observer.disconnect(), []);
  const rows = useMemo(() => new Set<HTMLElement>(), []);
  useLayoutEffect(() => {
    // Other estimates: what is drawn already is measured anew.
    for (const row of rows) {
      observer.unobserve(row);
      observer.observe(row);
    }
  }, [heights]);
  useEffect(() => {
    // Rows that left the page are watched no more, or they would stay in memory.
    for (const row of rows) {
      if (row.isConnected) continue;
      observer.unobserve(row);
      rows.delete(row);
    }
  });

  useLayoutEffect(() => {
    const frame = scroller.current;
    if (!frame) return;
    if (target.current) {
      const { index, align } = target.current;
      const room = frame.clientHeight - heights.sizeOf(index);
      const place = heights.startOf(index) - (align === "start" ? 0 : align === "end" ? room : room / 2);
      const wanted = Math.max(0, Math.min(place, heights.total - frame.clientHeight));
      target.current.tries -= 1;
      if (target.current.tries <= 0) target.current = null;
      if (Math.abs(frame.scrollTop - wanted) > 1) frame.scrollTop = wanted;
    } else if (shift.current) frame.scrollTop += shift.current;
    shift.current = 0;
  });

  const items = [];
  const first = heights.indexAt(Math.max(0, view.top - BEYOND_PX));
  const end = view.top + view.size + BEYOND_PX;
  for (let index = first, start = heights.startOf(first); index < count && start < end; index += 1) {
    items.push({ index, start });
    start += heights.sizeOf(index);
  }
  const measure = useCallback((element: HTMLElement | null) => {
    if (element && !rows.has(element)) {
      observer.observe(element);
      rows.add(element);
    }
  }, [observer]);
  const scrollTo = (index: number, align: Align = "center") => {
    target.current = { index, align, tries: MOST_TRIES };
    draw((before) => before + 1);
  };
  return { items, totalSize: heights.total, measure, scrollTo };
}
