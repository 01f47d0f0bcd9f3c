// What happened, as a chat. Long traces come in pages and only what is seen is in the document.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { place, setQuery } from "../address";
import { count, counted } from "../figures";
import { useKeys } from "../keys";
import { useLoad } from "../loading";
import { useLongList } from "../components/long_list";
import { source } from "../source";
import type { CaseDetail, Outline, TraceEvent } from "../types";
import { EventView, kindOf } from "./event";
import { useEvents } from "./events";

/** Up to so many events are simply there: printed, found by the browser's own search, measured by nobody. */
export const MOST_AT_ONCE = 60;

const KINDS = [["all", "everything"], ["talk", "messages"], ["tool", "tools"], ["failed", "failures"]] as const;
type Kind = (typeof KINDS)[number][0];

export function Transcript({ detail }: { detail: CaseDetail }) {
  const query = place.value.query;
  const only = (KINDS.find(([kind]) => kind === query.get("only"))?.[0] ?? "all") as Kind;
  const outline = useLoad(`${detail.run}/${detail.key}/${only === "all"}`, () =>
    only === "all" && detail.n_events <= MOST_AT_ONCE ? Promise.resolve(null) : source.outline(detail.run, detail.key));
  const numbers = useMemo(() => shownNumbers(detail, outline.data, only), [detail, outline.data, only]);
  const search = useSearch(detail);
  const wanted = Number(query.get("event") ?? -1);
  if (detail.n_events === 0) return <p class="soft">Nothing was recorded beside the question and the answer.</p>;
  const List = numbers.length <= MOST_AT_ONCE ? WholeList : LongList;
  return (
    <section aria-label="Transcript" class="transcript">
      <div class="row no-print transcript-tools">
        <label class="row">
          <span class="sr">Which events</span>
          <select value={only} onChange={(event) => setQuery({ only: event.currentTarget.value === "all" ? null : event.currentTarget.value })}>
            {KINDS.map(([kind, word]) => <option key={kind} value={kind}>{word}</option>)}
          </select>
        </label>
        {search.field}
        <span class="grow" />
        <span class="soft small" role="status">
          {only === "all" ? counted(detail.n_events, "event") : `${count(numbers.length)} of ${counted(detail.n_events, "event")}`}
        </span>
      </div>
      {numbers.length === 0
        ? <p class="soft">{outline.busy ? "…" : "No event is of this kind."}</p>
        : <List detail={detail} numbers={numbers} outline={outline.data} wanted={wanted} marked={search.marked} />}
    </section>
  );
}

function shownNumbers(detail: CaseDetail, outline: Outline | null, only: Kind): number[] {
  const all = Array.from({ length: detail.n_events }, (_, n) => n);
  if (only === "all") return all;
  if (!outline) return [];
  if (only === "failed") return outline.failed;
  return all.filter((n) => kindOf(outline.kinds[outline.kind[n] ?? 0] ?? "") === only);
}

interface ListProps {
  detail: CaseDetail;
  numbers: readonly number[];
  outline: Outline | null;
  wanted: number;
  marked: number;
}

function WholeList({ detail, numbers, wanted, marked }: ListProps) {
  const events = useEvents(detail);
  const list = useRef<HTMLOListElement>(null);
  events.need(0, detail.n_events);
  const target = marked >= 0 ? marked : wanted;
  useEffect(() => {
    if (target >= 0) list.current?.querySelector(`[data-n="${target}"]`)?.scrollIntoView({ block: "center" });
  }, [target, events.loaded]);
  return (
    <ol class="events" ref={list}>
      {numbers.map((n) => (
        <li key={n} data-n={n} class={n === target ? "target" : ""}><Entry event={events.at(n)} state={events.stateOf(n)} /></li>
      ))}
    </ol>
  );
}

function LongList({ detail, numbers, outline, wanted, marked }: ListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const events = useEvents(detail);
  const estimate = useCallback((index: number) => heightOf(outline, numbers[index] ?? 0), [outline, numbers]);
  const list = useLongList(numbers.length, scroller, estimate);
  const first = list.items[0];
  const last = list.items[list.items.length - 1];
  if (first && last) events.need(numbers[first.index] ?? 0, (numbers[last.index] ?? 0) + 1, numbers.slice(first.index, last.index + 1));
  const target = marked >= 0 ? marked : wanted;
  useEffect(() => {
    const index = target < 0 ? -1 : numbers.indexOf(target);
    if (index >= 0) list.scrollTo(index, "center");
  }, [target, numbers]);
  useKeys("Transcript", [
    { key: "Home", does: "first event", act: () => list.scrollTo(0, "start") },
    { key: "End", does: "last event", act: () => list.scrollTo(numbers.length - 1, "end") },
  ]);
  return (
    <div class="events-frame" ref={scroller} tabIndex={0} role="region" aria-label={counted(numbers.length, "event")}>
      <div class="events long" role="list" style={{ height: `${list.totalSize}px` }}>
        {list.items.map((item) => {
          const n = numbers[item.index] ?? 0;
          return (
            <div key={n} role="listitem" aria-setsize={numbers.length} aria-posinset={item.index + 1} data-index={item.index}
              data-n={n} ref={list.measure} class={n === target ? "target" : ""} style={{ transform: `translateY(${item.start}px)` }}>
              <Entry event={events.at(n)} state={events.stateOf(n)} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Entry({ event, state }: { event: TraceEvent | null; state: Parameters<typeof EventView>[0]["state"] }) {
  if (!event) return <div class="event-line soft"><div class="line-head">…</div></div>;
  return <EventView event={event} state={state} />;
}

/** About how tall an event is before it was drawn: lines of it are one height, messages as tall as their text. */
function heightOf(outline: Outline | null, n: number): number {
  const kind = outline ? kindOf(outline.kinds[outline.kind[n] ?? 0] ?? "") : "talk";
  if (kind === "tool") return 40;
  if (kind !== "talk") return 30;
  const characters = outline?.size[n] ?? 120;
  return 46 + 21 * Math.min(20, Math.max(1, Math.ceil(characters / 95)));
}

/** A field that looks through all events, also those that are not here yet. */
function useSearch(detail: CaseDetail) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = useLoad(`${detail.run}/${detail.key}/${text}`, () =>
    text.trim() ? source.findEvents(detail.run, detail.key, text.trim()) : Promise.resolve(null));
  const numbers = found.data ?? [];
  const step = (by: number) => numbers.length && setAt((at + by + numbers.length) % numbers.length);
  const timer = useRef(0);
  const field = (
    <span class="row find">
      <label>
        <span class="sr">Find in the transcript</span>
        <input type="search" data-search placeholder="find in the transcript" defaultValue={text}
          onInput={(event) => {
            const value = event.currentTarget.value;
            clearTimeout(timer.current);
            timer.current = window.setTimeout(() => { setText(value); setAt(0); }, 200);
          }}
          onKeyDown={(event) => { if (event.key === "Enter") step(event.shiftKey ? -1 : 1); }} />
      </label>
      {text.trim() !== "" && (
        <>
          <span class="soft small" role="status">{found.busy ? "…" : numbers.length ? `${at + 1} of ${count(numbers.length)}` : "nowhere"}</span>
          <button type="button" class="quiet" aria-label="previous place" disabled={!numbers.length} onClick={() => step(-1)}>↑</button>
          <button type="button" class="quiet" aria-label="next place" disabled={!numbers.length} onClick={() => step(1)}>↓</button>
        </>
      )}
    </span>
  );
  return { field, marked: text.trim() ? numbers[at] ?? -1 : -1 };
}
