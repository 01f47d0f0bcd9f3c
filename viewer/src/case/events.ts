// The events of one case, a page at a time: those that were seen lately are kept, so that memory stays flat.
import { useEffect, useRef, useState } from "preact/hooks";
import { source } from "../source";
import type { CaseDetail, Media, TraceEvent } from "../types";
import type { EventState } from "./event";

const PAGE = 200;
const MOST_PAGES = 25;

export interface Events {
  at: (n: number) => TraceEvent | null;
  /** Ask for the events from one number to another (or for these of them) while they are drawn. */
  need: (from: number, to: number, numbers?: readonly number[]) => void;
  stateOf: (n: number) => EventState;
  /** Changes when something arrived. */
  loaded: number;
}

export function useEvents(detail: CaseDetail): Events {
  const [loaded, setLoaded] = useState(0);
  const made = useRef<EventPages | null>(null);
  if (made.current?.detail !== detail) made.current = new EventPages(detail, () => setLoaded((before) => before + 1));
  const pages = made.current;
  useEffect(() => () => pages.close(), [pages]);
  return { at: pages.at, need: pages.need, stateOf: pages.stateOf, loaded };
}

class EventPages {
  private readonly pages = new Map<number, readonly TraceEvent[]>();
  private readonly asked = new Set<number>();
  private readonly opened = new Set<number>();
  private readonly whole = new Map<number, TraceEvent>();
  private isClosed = false;

  constructor(readonly detail: CaseDetail, private readonly draw: () => void) {
    for (let first = 0; first < detail.events.length; first += PAGE) {
      const page = detail.events.slice(first, first + PAGE);
      if (page.length === PAGE || first + page.length === detail.n_events) this.pages.set(first / PAGE, page);
    }
  }

  close(): void {
    this.isClosed = true;
  }

  at = (n: number): TraceEvent | null =>
    this.whole.get(n) ?? this.pages.get(Math.floor(n / PAGE))?.[n % PAGE] ?? this.detail.events[n] ?? null;

  need = (from: number, to: number, numbers?: readonly number[]): void => {
    const wanted = new Set<number>();
    if (numbers) for (const n of numbers) wanted.add(Math.floor(n / PAGE));
    else for (let page = Math.floor(from / PAGE); page * PAGE < to; page += 1) wanted.add(page);
    for (const page of wanted) {
      const kept = this.pages.get(page);
      if (kept) {
        // The page that was used last stands last, and goes last.
        this.pages.delete(page);
        this.pages.set(page, kept);
      } else this.load(page);
    }
  };

  private load(page: number): void {
    if (this.asked.has(page)) return;
    this.asked.add(page);
    source.events(this.detail.run, this.detail.key, page * PAGE, PAGE).then(({ events }) => {
      this.asked.delete(page);
      if (this.isClosed) return;
      this.pages.set(page, events);
      for (const oldest of this.pages.keys()) {
        if (this.pages.size <= MOST_PAGES) break;
        this.pages.delete(oldest);
      }
      this.draw();
    }, () => {
      // A request that failed is asked again when the place is drawn again, not at once.
      setTimeout(() => this.asked.delete(page), 2_000);
    });
  }

  stateOf = (n: number): EventState => ({
    isOpen: this.opened.has(n),
    toggle: () => {
      if (!this.opened.delete(n)) this.opened.add(n);
      this.draw();
    },
    whole: () => {
      void source.event(this.detail.run, this.detail.key, n).then((event) => {
        this.whole.set(n, { ...event, cut: undefined });
        this.opened.add(n);
        this.draw();
      });
    },
    mediaOf: (media: Media) => source.media(this.detail.run, this.detail.key, media),
  });
}
