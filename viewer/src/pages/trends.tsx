// How the metrics of a suite moved from run to run.
import { useEffect, useRef, useState } from "preact/hooks";
import { place, setQuery } from "../address";
import { Empty, Shown } from "../components/states";
import { TrendChart } from "../components/trend_chart";
import { DIRECTIONS, quantity } from "../figures";
import { useLoad } from "../loading";
import { source, stamp } from "../source";
import type { RunLine, Trend } from "../types";

export function Trends({ runs }: { runs: RunLine[] }) {
  const names = [...new Set(runs.map((run) => run.name))];
  const counts = new Map(names.map((name) => [name, runs.filter((run) => run.name === name).length]));
  const most = [...names].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0))[0] ?? "";
  const name = place.value.query.get("name") ?? most;
  const loaded = useLoad(`${name} ${stamp.value}`, () => source.trends(name));
  return (
    <>
      <div class="row tools no-print">
        <label class="row">
          <span class="soft">Runs named</span>
          <select value={name} onChange={(event) => setQuery({ name: event.currentTarget.value })}>
            {names.map((each) => <option key={each} value={each}>{each} ({counts.get(each)})</option>)}
          </select>
        </label>
        <span class="soft small">Gray: where a run falls 95 times of 100 when nothing changes. Click a point to open its run.</span>
      </div>
      <Shown of={loaded} what="the trends">
        {({ trends }) => trends.some((trend) => trend.points.length > 1) ? <Charts trends={trends} /> : (
          <Empty title={`One run is named "${name}": a trend needs two.`}>
            <p>Runs of the same name are one line: <code>agentunit run SUITE.py --name {name}</code></p>
          </Empty>
        )}
      </Shown>
    </>
  );
}

function Charts({ trends }: { trends: Trend[] }) {
  const grid = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const measure = () => setWidth(grid.current?.querySelector(".card")?.clientWidth ?? 0);
    measure();
    const observer = new ResizeObserver(measure);
    if (grid.current) observer.observe(grid.current);
    return () => observer.disconnect();
  }, []);
  return (
    <div class="trends" ref={grid}>
      {trends.map((trend) => (
        <section class="card" key={`${trend.metric} ${trend.backend}`} aria-label={describe(trend)}>
          <h2 class="card-title">{trend.metric} <span class="soft">{DIRECTIONS[trend.direction].mark} {trend.backend}</span></h2>
          {width > 0 && <TrendChart trend={trend} width={Math.max(200, width - 32)} />}
        </section>
      ))}
    </div>
  );
}

/** The chart in words. */
function describe(trend: Trend): string {
  const known = trend.points.filter((point) => point.mean !== null);
  const last = known[known.length - 1];
  const band = trend.band ? `; noise alone stays within ${quantity(trend.band.low, trend.unit)} to ${quantity(trend.band.high, trend.unit)}` : "";
  return `${trend.metric} over ${known.length} runs, last ${quantity(last?.mean, trend.unit)}${band}`;
}
