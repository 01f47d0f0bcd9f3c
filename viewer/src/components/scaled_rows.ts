// Rows of one height without limit: browsers stop at some 17 to 33 million pixels, so long lists scroll on a shorter scale.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const MOST_PX = 8_000_000;
const OVERSCAN = 10;

export interface ScaledRows {
  /** The first row to draw and the one behind the last. */
  first: number;
  end: number;
  /** The height of the whole list in the page. */
  height: number;
  /** Where a row stands, in pixels from the top of the list. */
  topOf: (row: number) => number;
  /** Bring a row into view; "near" moves no more than needed. */
  show: (row: number, align?: "near" | "center") => void;
  rowsInView: number;
}

/** `head` is the height of what sticks to the top of `scroller` and covers rows there. */
export function useScaledRows(scroller: { current: HTMLElement | null }, n: number, rowHeight: number, head: number): ScaledRows {
  const [view, setView] = useState({ top: 0, scrolled: 0, height: 0 });
  const wholeHeight = n * rowHeight;
  const height = Math.min(wholeHeight, MOST_PX);
  const mostTop = Math.max(0, wholeHeight - view.height);
  const ratio = height < wholeHeight ? mostTop / Math.max(1, height - view.height) : 1;
  const now = useRef({ ratio, mostTop, ...view });
  now.current = { ratio, mostTop, ...view };

  const moveTo = useCallback((wanted: number) => {
    const element = scroller.current;
    if (!element) return;
    const top = Math.min(now.current.mostTop, Math.max(0, wanted));
    element.scrollTop = top / now.current.ratio;
    const next = { ...now.current, top, scrolled: element.scrollTop };
    now.current = next;
    setView({ top, scrolled: next.scrolled, height: next.height });
  }, []);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const measure = () => setView((before) => ({ ...before, height: Math.max(0, element.clientHeight - head) }));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [head]);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const onScroll = () => {
      const scrolled = element.scrollTop;
      // What moveTo did is known already, and more exactly than the scale of the page can say.
      if (Math.abs(scrolled - now.current.scrolled) < 1 && now.current.ratio > 1) return;
      setView((before) => ({ ...before, top: scrolled * now.current.ratio, scrolled }));
    };
    const onWheel = (event: WheelEvent) => {
      if (now.current.ratio <= 1 || event.ctrlKey || event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      event.preventDefault();
      const unit = event.deltaMode === 1 ? rowHeight : event.deltaMode === 2 ? now.current.height : 1;
      moveTo(now.current.top + event.deltaY * unit);
    };
    element.addEventListener("scroll", onScroll, { passive: true });
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      element.removeEventListener("scroll", onScroll);
      element.removeEventListener("wheel", onWheel);
    };
  }, [rowHeight]);

  const top = Math.min(view.top, mostTop);
  const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
  const end = Math.min(n, Math.ceil((top + view.height) / rowHeight) + OVERSCAN);
  return {
    first,
    end,
    height,
    rowsInView: Math.max(1, Math.floor(view.height / rowHeight)),
    topOf: (row) => (ratio > 1 ? row * rowHeight - top + Math.min(view.scrolled, Math.max(0, height - view.height)) : row * rowHeight),
    show: (row, align = "near") => {
      const { top: from, height: seen } = now.current;
      const at = row * rowHeight;
      if (align === "center") moveTo(at - seen / 2 + rowHeight / 2);
      else if (at < from) moveTo(at);
      else if (at + rowHeight > from + seen) moveTo(at + rowHeight - seen);
    },
  };
}
