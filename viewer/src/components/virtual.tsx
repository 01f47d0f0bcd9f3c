// Long lists: only what is seen is in the page.
import {
  Virtualizer, elementScroll, observeElementOffset, observeElementRect, type VirtualItem,
} from "@tanstack/virtual-core";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface VirtualList {
  /** The rows to draw now: each has `index`, `key` and `start` (pixels from the top). */
  items: VirtualItem[];
  totalSize: number;
  /** `ref` of each row's element (with `data-index`): its real height replaces the estimate. */
  measure: (element: Element | null) => void;
  scrollTo: (index: number, align?: "start" | "center" | "end" | "auto") => void;
}

/** Rows of various heights in `scroller` (up to some 10⁵; useScaledRows has no such limit but rows of one height). */
export function useVirtual(count: number, scroller: { current: HTMLElement | null }, options: {
  estimate: (index: number) => number;
  keyOf?: (index: number) => string | number;
  overscan?: number;
}): VirtualList {
  const [, draw] = useState(0);
  const made = useRef<Virtualizer<HTMLElement, Element> | null>(null);
  const settings = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: options.estimate,
    getItemKey: options.keyOf ?? ((index: number) => index),
    overscan: options.overscan ?? 8,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => draw((before) => before + 1),
  };
  made.current ??= new Virtualizer<HTMLElement, Element>(settings);
  const virtualizer = made.current;
  virtualizer.setOptions(settings);
  useEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  return {
    items: virtualizer.getVirtualItems(),
    totalSize: virtualizer.getTotalSize(),
    measure: virtualizer.measureElement,
    scrollTo: (index, align = "auto") => virtualizer.scrollToIndex(index, { align }),
  };
}
