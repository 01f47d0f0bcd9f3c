// Two runs: what the data can tell about each metric, and the cases that changed.
import { go, href, place, setQuery } from "../address";
import { Badge, Verdict, type Tone } from "../components/badges";
import { DifferenceBar } from "../components/charts";
import { Findings, Sentence } from "../components/findings";
import { RunVerdict, shortLabel, untilReady } from "../components/run_header";
import { Empty, Shown, Waiting } from "../components/states";
import { Table, type Column } from "../components/table";
import { Tip } from "../components/tip";
import { ago, count, counted, date, DIRECTIONS, quantity, score } from "../figures";
import { useKeys } from "../keys";
import { useLoad } from "../loading";
import type { PageProps } from "../pages";
import { index, source, stamp } from "../source";
import type { ComparePage, MetricDifference, RunLine } from "../types";
import { CaseChange } from "./compare_case";
import { Panels } from "./run_slices";
import "../styles/compare.css";

const KINDS = ["broken", "newly flaky", "newly failing", "lost", "fixed", "worse", "better", "changed", "other answer"];
/** Kinds that are counted and not listed. */
const COUNTED = ["still failing", "flaky", "unchanged"];

export function CompareView({ params }: PageProps) {
  const { baseline = "", candidate = "" } = params;
  const loaded = useLoad(`${baseline} ${candidate} ${stamp.value}`, (signal) => untilReady(() => source.compare(baseline, candidate), signal));
  const canSwap = hasPair(candidate, baseline);
  useKeys("Compare", [{ key: "x", does: "swap the two runs", act: () => { if (canSwap) go(href(["compare", candidate, baseline])); } }]);
  return (
    <Shown of={loaded} what="the comparison (two long runs take a while)">
      {(page) => (
        <>
          <header class="run-header">
            <div class="row">
              <h1>Compare</h1>
              <Verdict word={page.verdict} />
              <span class="grow" />
              {canSwap && <a class="button no-print" href={href(["compare", candidate, baseline])}>Swap <kbd>x</kbd></a>}
            </div>
          </header>
          <div class="sides">
            <Side role="baseline" line={page.baseline} />
            <Side role="candidate" line={page.candidate} />
          </div>
          {page.pending ? <Waiting what="Comparing" /> : <Compared page={page} />}
        </>
      )}
    </Shown>
  );
}

function hasPair(baseline: string, candidate: string): boolean {
  const pairs = index.value?.comparisons ?? null;
  return pairs === null || pairs.some((pair) => pair.baseline === baseline && pair.candidate === candidate);
}

function Side({ role, line }: { role: string; line: RunLine }) {
  return (
    <div class="card side">
      <span class="soft small">{role}</span>
      <div class="row">
        <a class="strong" href={href(["run", line.id])}>{line.name}</a>
        {line.verdict && <RunVerdict line={line} />}
        <span class="soft small" title={date(line.created_at)}><code>{shortLabel(line)}</code> · {ago(line.created_at)}</span>
        {line.commit && <code class="soft small">{line.commit.slice(0, 7)}{line.commit_dirty ? "*" : ""}</code>}
      </div>
    </div>
  );
}

function Compared({ page }: { page: ComparePage }) {
  const alone = [
    page.n_only_baseline > 0 && `${count(page.n_only_baseline)} only in the baseline`,
    page.n_only_candidate > 0 && `${count(page.n_only_candidate)} only in the candidate`,
  ].filter(Boolean).join(", ");
  return (
    <>
      <Sentence label="What the comparison shows" verdict={page.verdict} headline={page.headline} line={page.line}>
        <p class="soft small">{counted(page.n_paired, "case")} in both{alone && `; ${alone}`}.{page.note && ` ${page.note}`}</p>
      </Sentence>
      <Findings run={page.candidate.id} findings={page.findings} nMore={page.n_more_findings} />
      <section aria-labelledby="differences">
        <h2 id="differences">Metrics</h2>
        <Table caption="Difference of each metric" rows={page.metrics} keyOf={(row) => row.label} columns={columns(page.metrics)} />
        {page.tested && <p class="soft small">{page.tested}</p>}
      </section>
      <Changes page={page} />
      {page.tools.length > 0 && (
        <section aria-labelledby="tools">
          <h2 id="tools">Tools that changed</h2>
          <Table caption="Tools that changed" rows={page.tools} columns={[
            { name: "tool", head: "tool", cell: (row) => <code>{row.name}</code> },
            { name: "change", head: "change", cell: (row) => row.change },
            { name: "baseline", head: "baseline", cell: (row) => row.baseline ?? "–" },
            { name: "candidate", head: "candidate", cell: (row) => row.candidate ?? "–" },
          ]} />
        </section>
      )}
      {page.slices.map((table) => (
        <section key={table.by}>
          <h2>Slices by {table.by}</h2>
          <Panels table={table} />
        </section>
      ))}
    </>
  );
}

function columns(rows: MetricDifference[]): Column<MetricDifference>[] {
  const most = Math.max(...rows.filter((row) => row.unit === "score").flatMap((row) => [row.low, row.high, row.difference])
    .map((value) => Math.abs(value ?? 0)), 0.05);
  return [
    { name: "verdict", isInline: true, head: <span class="sr">what changed</span>, cell: (row) => <Told verdict={row.verdict} /> },
    {
      name: "metric", isInline: true, head: "metric",
      cell: (row) => <span class="nowrap">{row.label} <span class="soft">{DIRECTIONS[row.direction].mark}</span>{row.gated && <span class="soft small"> tested</span>}</span>,
    },
    { name: "before", head: "baseline", isNumber: true, isWide: true, cell: (row) => quantity(row.baseline_mean, row.unit) },
    { name: "after", head: "candidate", isNumber: true, isWide: true, cell: (row) => quantity(row.candidate_mean, row.unit) },
    { name: "difference", head: "difference", isNumber: true, cell: (row) => <b class="nowrap">{signed(row.difference, row.unit)}</b> },
    {
      name: "interval", head: "95 % interval", isWide: true,
      cell: (row) => (
        <div class="difference">
          <DifferenceBar value={row.difference} low={row.low} high={row.high} most={row.unit === "score" ? most : null} tone={barTone(row)} />
          {row.low !== null && row.high !== null && <span class="soft small nowrap">{signed(row.low, row.unit)} to {signed(row.high, row.unit)}</span>}
        </div>
      ),
    },
    { name: "tell", head: "what the data can tell", cell: (row) => <Tell row={row} /> },
  ];
}

function Tell({ row }: { row: MetricDifference }) {
  const more = [
    `${counted(row.n_pairs, "pair")}`,
    row.p_worse !== null && `p (worse) ${score(row.p_worse)}${row.p_adjusted !== null ? `, ${score(row.p_adjusted)} over all metrics` : ""}`,
    row.margin !== null && `margin ${quantity(row.margin, row.unit)}`,
    row.smallest_detectable !== null && `smallest change that this many cases can show: ${quantity(row.smallest_detectable, row.unit)}`,
    row.cases_needed !== null && `about ${counted(row.cases_needed, "case")} would be needed`,
  ].filter(Boolean).join("; ");
  return <><Tip text={`${more}.`}>{row.reason || "–"}</Tip>{row.note && <div class="soft small">{row.note}</div>}</>;
}

const TOLD: Record<string, { tone: Tone; icon: string }> = {
  regression: { tone: "bad", icon: "↓" },
  better: { tone: "good", icon: "↑" },
  "no worse": { tone: "good", icon: "✓" },
  "no loss shown": { tone: "soft", icon: "" },
  "no change": { tone: "soft", icon: "=" },
  "cannot tell": { tone: "warn", icon: "?" },
  "not compared": { tone: "soft", icon: "–" },
  "shown only": { tone: "soft", icon: "" },
};

function Told({ verdict }: { verdict: string }) {
  const known = TOLD[verdict] ?? { tone: "soft" as Tone, icon: "" };
  return <Badge tone={known.tone} icon={known.icon}>{verdict}</Badge>;
}

function barTone(row: MetricDifference): "good" | "bad" | "" {
  return row.verdict === "regression" ? "bad" : row.verdict === "better" ? "good" : "";
}

function Changes({ page }: { page: ComparePage }) {
  const kinds = [...KINDS.filter((kind) => (page.n_by_kind[kind] ?? 0) > 0),
    ...Object.keys(page.n_by_kind).filter((kind) => !KINDS.includes(kind) && page.cases.some((each) => each.kind === kind))];
  const chosen = place.value.query.get("kind") ?? kinds[0] ?? "";
  const shown = page.cases.filter((each) => each.kind === chosen);
  const total = page.n_by_kind[chosen] ?? shown.length;
  const counts = COUNTED.filter((kind) => page.n_by_kind[kind]).map((kind) => `${count(page.n_by_kind[kind] ?? 0)} ${kind}`);
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">Cases that changed</h2>
      {kinds.length === 0 ? <Empty title="No case changed." /> : (
        <>
          <nav class="tabs kinds no-print" aria-label="Kinds of change">
            {kinds.map((kind) => (
              <a key={kind} href={href(place.value.path, { ...Object.fromEntries(place.value.query), kind, open: null })} aria-current={kind === chosen ? "true" : undefined}
                onClick={(event) => { event.preventDefault(); setQuery({ kind, open: null }); }}>
                {kind} <span class="soft">{count(page.n_by_kind[kind] ?? 0)}</span>
              </a>
            ))}
            {counts.length > 0 && <span class="soft small tab-note">{counts.join(", ")}</span>}
          </nav>
          <ul class="changes">
            {shown.map((each) => <CaseChange key={each.case_id} page={page} change={each} />)}
          </ul>
          {shown.length < total && <p class="soft small">The {count(shown.length)} greatest of {counted(total, "change")}.</p>}
        </>
      )}
    </section>
  );
}

function signed(value: number | null, unit: string): string {
  if (value === null) return "–";
  return value === 0 ? "0" : `${value > 0 ? "+" : "−"}${quantity(Math.abs(value), unit)}`;
}
