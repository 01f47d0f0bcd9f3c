// When things happened, as a waterfall: a row for each event, its bar at its time. Long traces scroll in rows of one height.
import { useMemo, useRef } from "preact/hooks";
import { href, place } from "../address";
import { Shown } from "../components/states";
import { useLongList } from "../components/long_list";
import { counted, duration } from "../figures";
import { useLoad } from "../loading";
import { source } from "../source";
import type { CaseDetail, Outline } from "../types";
import { kindOf } from "./event";

const rowHeight = () => 26;
const BINS = 240;
const MOST_ON_ONE_SCALE = 300;

export function Timeline({ detail }: { detail: CaseDetail }) {
  const loaded = useLoad(`${detail.run}/${detail.key}`, () => source.outline(detail.run, detail.key));
  return <Shown of={loaded} what="the timeline">{(outline) => <Waterfall outline={outline} />}</Shown>;
}

interface Bar {
  start: number;
  end: number;
}

/** Where the bar of each event stands. Without a duration it reaches from the event before: what took long ends it. */
export function barsOf(outline: Outline): { bars: (Bar | null)[]; span_s: number } {
  let before = 0;
  let span_s = 1e-9;
  const bars = outline.at_s.map((at, n) => {
    if (at === null) return null;
    const lasted = outline.duration_s[n] ?? null;
    const bar = lasted === null ? { start: Math.min(before, at), end: at } : { start: at, end: at + lasted };
    before = Math.max(before, at);
    span_s = Math.max(span_s, bar.end);
    return bar;
  });
  return { bars, span_s };
}

function Waterfall({ outline }: { outline: Outline }) {
  const scroller = useRef<HTMLDivElement>(null);
  const { bars, span_s } = useMemo(() => barsOf(outline), [outline]);
  const failed = useMemo(() => new Set(outline.failed), [outline]);
  const list = useLongList(outline.n_events, scroller, rowHeight);
  if (outline.n_events === 0) return <p class="soft">Nothing was recorded.</p>;
  // Bars of a long trace would be too thin to see: they are drawn against the time of the rows in view.
  const isLong = outline.n_events > MOST_ON_ONE_SCALE;
  const seen = isLong ? list.items.flatMap(({ index: n }) => bars[n] ?? []) : [];
  const from = isLong ? Math.min(...seen.map((bar) => bar.start)) : 0;
  const to = isLong ? Math.max(...seen.map((bar) => bar.end)) : span_s;
  const scale = (time: number) => Math.min(100, Math.max(0, (100 * (time - from)) / Math.max(1e-9, to - from)));
  const isTimed = bars.some((bar) => bar !== null && bar.end > 0);
  const address = (n: number) => href(place.value.path, { ...Object.fromEntries(place.value.query), tab: "transcript", only: null, event: n });
  return (
    <section aria-label="Timeline">
      <p class="soft small">
        {counted(outline.n_events, "event")}{isTimed ? ` in ${duration(span_s)}` : "; no times were recorded, so they stand in order"}
        {failed.size > 0 && <span class="bad-text">, {counted(failed.size, "failure")}</span>}
        . {isTimed && outline.duration_s.every((each) => each === null) && "A bar reaches from the event before to this one."}
      </p>
      {isTimed && outline.n_events > 40 && <Density outline={outline} bars={bars} span_s={span_s} onPick={(n) => list.scrollTo(n, "start")} />}
      {isTimed && (
        <div class="fall-row fall-axis soft small" aria-hidden="true">
          <span /><span />
          <span class="row apart"><span>+{duration(from)}</span>{isLong && <span>the rows in view</span>}<span>+{duration(to)}</span></span>
        </div>
      )}
      <div class="waterfall" ref={scroller} tabIndex={0} role="region" aria-label="Events by time"
        style={{ maxHeight: `max(20rem, calc(100dvh - 19rem))` }}>
        <div role="list" style={{ height: `${list.totalSize}px`, position: "relative" }}>
          {list.items.map(({ index: n, start }) => {
            const bar = bars[n] ?? null;
            const kind = outline.kinds[outline.kind[n] ?? 0] ?? "";
            const name = outline.names[outline.name[n] ?? -1] ?? "";
            const agent = outline.agents[outline.agent[n] ?? -1] ?? "";
            const isFailed = failed.has(n);
            return (
              <div key={n} role="listitem" class="fall-item" style={{ transform: `translateY(${start}px)` }}>
              <a class={`fall-row ${isFailed ? "failed" : ""}`} href={address(n)}
                title={`${kind} ${name} ${agent}${bar ? `, +${duration(bar.start)}, ${duration(bar.end - bar.start)}` : ""}`}>
                <span class="fall-time num soft">{bar ? `+${duration(bar.end)}` : ""}</span>
                <span class="fall-name">
                  {isFailed && <span class="bad-text"><span aria-hidden="true">✕ </span><span class="sr">failed </span></span>}
                  <span class={`event-kind kind-${kindOf(kind)}`}>{kind.replace(/_/g, " ")}</span> {name} <span class="soft">{agent}</span>
                </span>
                <span class="fall-track" aria-hidden="true">
                  {bar && <span class={`fall-bar kind-${isFailed ? "bad" : kindOf(kind)}`} style={{
                    left: `${Math.min(99.6, scale(bar.start))}%`, width: `${Math.max(0.4, scale(bar.end) - scale(bar.start))}%`,
                  }} />}
                </span>
              </a>
              </div>
            );
          })}
        </div>
      </div>
    </section>
  );
}

/** How busy each stretch of time was, with failures marked: a map of a long trace that leads into it. */
function Density({ outline, bars, span_s, onPick }: {
  outline: Outline; bars: readonly (Bar | null)[]; span_s: number; onPick: (n: number) => void;
}) {
  const { counts, failed, first } = useMemo(() => {
    const bins = { counts: new Uint32Array(BINS), failed: new Uint32Array(BINS), first: new Int32Array(BINS).fill(-1) };
    const isFailed = new Set(outline.failed);
    bars.forEach((bar, n) => {
      if (!bar) return;
      const at = Math.min(BINS - 1, Math.floor((BINS * bar.end) / span_s));
      bins.counts[at] = (bins.counts[at] ?? 0) + 1;
      if (isFailed.has(n)) bins.failed[at] = (bins.failed[at] ?? 0) + 1;
      if ((bins.first[at] ?? -1) < 0) bins.first[at] = n;
    });
    return bins;
  }, [outline, bars, span_s]);
  const most = Math.max(...counts);
  const pick = (event: MouseEvent) => {
    const frame = (event.currentTarget as Element).getBoundingClientRect();
    let at = Math.min(BINS - 1, Math.max(0, Math.floor((BINS * (event.clientX - frame.left)) / frame.width)));
    while (at < BINS - 1 && (first[at] ?? -1) < 0) at += 1;
    if ((first[at] ?? -1) >= 0) onPick(first[at] ?? 0);
  };
  return (
    <svg class="density no-print" viewBox={`0 0 ${BINS} 40`} preserveAspectRatio="none" role="img" onClick={pick}
      aria-label={`Events over time: at most ${most} in a stretch of ${duration(span_s / BINS)}`}>
      {[...counts].map((n, at) => {
        const height = n > 0 ? Math.max(2, (38 * n) / most) : 0;
        const bad = Math.min(height, (failed[at] ?? 0) > 0 ? Math.max(4, (38 * (failed[at] ?? 0)) / most) : 0);
        return (
          <g key={at}>
            {height > 0 && <rect x={at} width={0.9} y={40 - height} height={height} />}
            {bad > 0 && <rect class="bad" x={at} width={0.9} y={40 - bad} height={bad} />}
          </g>
        );
      })}
    </svg>
  );
}
