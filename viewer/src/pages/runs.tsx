// All runs: how each ended, its key metrics, and two of them to compare.
import { useEffect, useState } from "preact/hooks";
import { go, href, place, setQuery } from "../address";
import { Chip } from "../components/badges";
import { Sparkline } from "../components/charts";
import { AGAIN_MS, RunVerdict, shortLabel } from "../components/run_header";
import { Empty, Shown } from "../components/states";
import { Table, type Column } from "../components/table";
import { ago, count, counted, date, DIRECTIONS, dollars, plusMinus, quantity } from "../figures";
import { useKeys } from "../keys";
import { useLoad } from "../loading";
import { index, source, stamp } from "../source";
import type { KeyMetric, RunLine, RunsPage } from "../types";
import { Trends } from "./trends";

const AT_ONCE = 50;

export function RunsView() {
  const [limit, setLimit] = useState(AT_ONCE);
  const [asked, setAsked] = useState(0);
  const loaded = useLoad(`${limit} ${asked} ${stamp.value}`, () => source.runs(0, limit));
  const isPending = loaded.data?.runs.some((run) => run.pending) ?? false;
  useEffect(() => {
    // Figures of some runs are still being added up: ask again until they are there.
    if (!isPending || loaded.busy) return undefined;
    const timer = setTimeout(() => setAsked(asked + 1), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [isPending, loaded.busy]);
  const view = place.value.query.get("view") ?? "list";
  return (
    <>
      <header class="run-header">
        <div class="row">
          <h1>Runs</h1>
          <span class="soft small clip">{index.value?.address}</span>
        </div>
        <nav class="tabs no-print" aria-label="Runs">
          <a href={href(["runs"])} aria-current={view === "list" ? "page" : undefined}>List</a>
          <a href={href(["runs"], { view: "trends" })} aria-current={view === "trends" ? "page" : undefined}>Trends</a>
        </nav>
      </header>
      <Shown of={loaded} what="the runs">
        {(page) => (view === "trends" ? <Trends runs={page.runs} /> : <RunList page={page} onMore={() => setLimit(limit + AT_ONCE)} />)}
      </Shown>
    </>
  );
}

function RunList({ page, onMore }: { page: RunsPage; onMore: () => void }) {
  const { query } = place.value;
  const search = query.get("q") ?? "";
  const picked = (query.get("pick") ?? "").split(",").filter(Boolean);
  const shown = page.runs.filter((run) => isFound(run, search));
  const pick = (id: string) => {
    const next = picked.includes(id) ? picked.filter((each) => each !== id) : [...picked, id].slice(-2);
    setQuery({ pick: next.join(",") });
  };
  useKeys("Runs", [{ key: "c", does: "compare the two picked runs", act: () => { const to = comparison(page.runs, picked); if (to) go(to); } }]);
  if (page.n_runs === 0) {
    return <Empty title="No runs yet."><p>Record one: <code>agentunit run SUITE.py</code>, or import scores: <code>agentunit runs --import FILE</code></p></Empty>;
  }
  return (
    <>
      <div class="row tools no-print">
        <input type="search" data-search class="grow search" placeholder="Search name, tag, commit" aria-label="Search runs"
          value={search} onInput={(event) => setQuery({ q: event.currentTarget.value })} />
        <CompareButton runs={page.runs} picked={picked} />
      </div>
      <Table caption="Runs" columns={columns(page.runs, picked, pick)} rows={shown} keyOf={(run) => run.id} />
      {shown.length === 0 && <Empty title={`No run has "${search}" in its name, tags or commit.`} />}
      <p class="soft small">
        {search ? `${count(shown.length)} of ${counted(page.runs.length, "run")}` : counted(page.n_runs, "run")}
        {page.runs.length < page.n_runs && (
          <> · {count(page.runs.length)} shown · <button type="button" class="link" onClick={onMore}>show more</button></>
        )}
      </p>
    </>
  );
}

function columns(runs: RunLine[], picked: string[], pick: (id: string) => void): Column<RunLine>[] {
  const hasCost = runs.some((run) => run.cost_usd !== null);
  const all: Column<RunLine>[] = [
    {
      name: "pick", isInline: true, head: <span class="sr">compare</span>,
      cell: (run) => (
        <input type="checkbox" checked={picked.includes(run.id)} onChange={() => pick(run.id)}
          aria-label={`pick ${run.name} ${run.label} for a comparison`} />
      ),
    },
    { name: "verdict", isInline: true, head: "verdict", cell: (run) => <RunVerdict line={run} /> },
    { name: "run", isInline: true, head: "run", cell: (run) => <RunName run={run} /> },
    { name: "size", head: "size", isNumber: true, isWide: true, cell: (run) => <Size run={run} /> },
    { name: "metrics", isInline: true, head: "key metrics", cell: (run) => <KeyMetrics run={run} /> },
    { name: "cost", head: "cost", isNumber: true, isWide: true, cell: (run) => dollars(run.cost_usd) },
    { name: "when", head: "when", isNumber: true, isWide: true, cell: (run) => <time title={date(run.created_at)}>{ago(run.created_at)}</time> },
  ];
  return all.filter((column) => column.name !== "cost" || hasCost);
}

function RunName({ run }: { run: RunLine }) {
  const tags = Object.entries(run.tags);
  return (
    <div class="run-name">
      <div><a class="strong" href={href(["run", run.id])}>{run.name}</a> <code class="soft small">{shortLabel(run)}</code></div>
      {(tags.length > 0 || run.commit) && (
        <div class="chips">
          {run.commit && <Chip title={`commit ${run.commit}${run.commit_dirty ? ", with changes that were not committed" : ""}`}>
            <code>{run.commit.slice(0, 7)}{run.commit_dirty ? "*" : ""}</code></Chip>}
          {tags.map(([name, value]) => <Chip key={name} title={`${name}: ${value}`}>{name}: {value}</Chip>)}
        </div>
      )}
    </div>
  );
}

function Size({ run }: { run: RunLine }) {
  return (
    <>
      {run.size || counted(run.n_done, "record")}
      {run.n_failed > 0 && <div class="small bad-text">failed {counted(run.n_failed, "time")}</div>}
    </>
  );
}

function KeyMetrics({ run }: { run: RunLine }) {
  if (run.metrics.length === 0) return <span class="soft">–</span>;
  return <div class="key-metrics">{run.metrics.map((metric) => <KeyFigure key={`${metric.metric} ${metric.backend}`} metric={metric} />)}</div>;
}

function KeyFigure({ metric }: { metric: KeyMetric }) {
  return (
    <div class="key-metric" title={`${metric.metric} (${metric.backend}), ${DIRECTIONS[metric.direction].words}`}>
      <span class="key-name soft small clip">{metric.metric} {DIRECTIONS[metric.direction].mark}</span>
      <span class="key-value">
        <b>{quantity(metric.mean, metric.unit)}</b> <span class="soft small">{plusMinus(metric.mean, metric.low, metric.high, metric.unit)}</span>
      </span>
      {metric.history.filter((value) => value !== null).length > 1 && (
        <Sparkline values={metric.history} label={`${metric.metric} over earlier runs`} />
      )}
    </div>
  );
}

/** The address of the comparison of two picked runs, the older as the baseline; null where there is none. */
function comparison(runs: RunLine[], picked: string[]): string | null {
  const [older, newer] = runs.filter((run) => picked.includes(run.id)).sort((a, b) => a.created_at - b.created_at);
  if (!older || !newer) return null;
  const pairs = index.value?.comparisons ?? null;
  const has = (baseline: string, candidate: string) =>
    pairs === null || pairs.some((pair) => pair.baseline === baseline && pair.candidate === candidate);
  if (has(older.id, newer.id)) return href(["compare", older.id, newer.id]);
  return has(newer.id, older.id) ? href(["compare", newer.id, older.id]) : null;
}

function CompareButton({ runs, picked }: { runs: RunLine[]; picked: string[] }) {
  const to = comparison(runs, picked);
  if (to) return <a class="button primary" href={to}>Compare <kbd>c</kbd></a>;
  const hint = picked.length < 2 ? "Pick two runs to compare them" : "These two were not compared when this was made";
  return <span class="soft small">{hint}</span>;
}

function isFound(run: RunLine, search: string): boolean {
  const text = [run.name, run.label, run.id, run.commit ?? "", run.agent_version ?? "", run.verdict ?? "",
    ...Object.entries(run.tags).map(([name, value]) => `${name}: ${value}`)].join("\n").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
