// One case: what was asked and answered, what scorers and people say of it, what happened, and the record itself.
import type { ComponentChildren } from "preact";
import { go, href, place, setQuery, type Query } from "../address";
import { Verdict } from "../components/badges";
import { Data } from "../components/data";
import { Markdown } from "../components/markdown";
import { Failure, Shown } from "../components/states";
import { count, duration } from "../figures";
import { useKeys } from "../keys";
import { useLoad } from "../loading";
import type { PageProps } from "../pages";
import { personal, source } from "../source";
import type { CaseDetail, CaseKey, CasesQuery } from "../types";
import { Agents } from "./agents";
import { Answer, Context, Expected } from "./answer";
import "./case.css";
import { Checks } from "./checks";
import { MediaList } from "./media";
import { Notes } from "./notes";
import { Raw } from "./raw";
import { JudgeCalls, Scores } from "./scores";
import { Timeline } from "./timeline";
import { Transcript } from "./transcript";
import { Turns } from "./turns";

interface Tab {
  name: string;
  title: ComponentChildren;
  show: (detail: CaseDetail) => ComponentChildren;
}

export function CasePage({ params }: PageProps) {
  const run = params.run ?? "";
  // Beside the table of cases, which has keys of its own.
  const isPanel = params.panel === "1";
  const key = params.record ?? "";
  const isPersonal = personal.value;
  const loaded = useLoad(`${run}/${key}/${isPersonal}`, () => source.case(run, key));
  const detail = loaded.data && loaded.data.key === key ? loaded.data : null;
  const tabs = detail ? tabsOf(detail) : [];
  const tab = tabs.find((each) => each.name === place.value.query.get("tab")) ?? tabs[0];
  const neighbors = useNeighbors(run, isPanel ? null : detail);
  const open = (name: string) => setQuery({ tab: name === "overview" ? null : name, event: null, only: null }, false);
  const moves = [
    { key: "n", does: "next case of the list", act: () => neighbors.step(1) },
    { key: "p", does: "previous case of the list", act: () => neighbors.step(-1) },
    { key: "u", does: "back to the list", act: () => go(listAddress(run)) },
  ];
  const numbers = tabs.map((each, at) => ({ key: String(at + 1), does: `show ${each.name}`, act: () => open(each.name) }));
  useKeys("Case", isPanel ? numbers : [...moves, ...numbers]);
  if (loaded.error) return <Failure error={loaded.error}><a href={listAddress(run)}>All cases of the run</a></Failure>;
  return (
    <Shown of={{ ...loaded, data: detail }} what="the case">
      {(shown) => (
        <article class="case" aria-labelledby="case-title">
          <Head detail={shown} neighbors={isPanel ? null : neighbors} />
          <nav class="tabs no-print" aria-label="Parts of the case">
            {tabs.map((each) => (
              <a key={each.name} href={tabAddress(each.name)}
                aria-current={each === tab ? "page" : undefined}>{each.title}</a>
            ))}
          </nav>
          {tab?.show(shown)}
        </article>
      )}
    </Shown>
  );
}

function tabAddress(name: string): string {
  const query = Object.fromEntries(place.value.query);
  return href(place.value.path, { ...query, tab: name === "overview" ? null : name, event: null, only: null });
}

function tabsOf(detail: CaseDetail): Tab[] {
  const n_judged = detail.scores.reduce((sum, each) => sum + each.judge_calls.length, 0);
  const n = (number: number) => <span class="soft"> {count(number)}</span>;
  const tabs: (Tab | false)[] = [
    { name: "overview", title: "Overview", show: (each) => <Overview detail={each} /> },
    detail.n_events > 0 && { name: "transcript", title: <>Transcript{n(detail.n_events)}</>, show: (each) => <Transcript key={each.key} detail={each} /> },
    detail.n_events > 0 && { name: "timeline", title: "Timeline", show: (each) => <Timeline key={each.key} detail={each} /> },
    detail.agents.length > 1 && { name: "agents", title: <>Agents{n(detail.agents.length)}</>, show: (each) => <Agents detail={each} /> },
    n_judged > 0 && { name: "judge", title: <>Judge{n(n_judged)}</>, show: (each) => <JudgeCalls detail={each} /> },
    { name: "record", title: "Record", show: (each) => <Raw key={each.key} detail={each} /> },
  ];
  return tabs.filter((tab): tab is Tab => tab !== false);
}

interface Neighbors {
  next: string | null;
  previous: string | null;
  /** Go there, also before it is known where that is. */
  step: (by: number) => void;
}

/** The parts of the address that say which list the reader came from. */
function listQuery(): Query {
  const query = place.value.query;
  return Object.fromEntries(["sort", "desc", "filter", "search", "fold", "columns", "row"].map((name) => [name, query.get(name)]));
}

function listAddress(run: string): string {
  return href(["run", run, "cases"], { ...listQuery(), row: null });
}

/** The cases before and after this one in the list that the reader came from; in the order of the run without one. */
function useNeighbors(run: string, detail: CaseDetail | null): Neighbors {
  const query = place.value.query;
  const own = detail ? detail.position * detail.n_repeats + detail.repeat : -1;
  const row = detail && query.has("row") ? Number(query.get("row")) : own;
  const list: Omit<CasesQuery, "offset" | "limit"> = {
    sort: query.get("sort") ?? undefined, desc: query.get("desc") === "1", filter: query.get("filter") ?? undefined,
    search: query.get("search") ?? undefined, fold: query.get("fold") === "1",
  };
  const first = Math.max(0, row - 1);
  const { data } = useLoad(`${run}/${row}/${JSON.stringify(list)}`, () =>
    row < 0 ? Promise.resolve(null) : source.cases(run, { ...list, offset: first, limit: row - first + 2 }));
  const addressOf = (key: CaseKey, at: number) => href(["run", run, "case", key], { ...listQuery(), tab: query.get("tab"), row: at });
  const address = (at: number): string | null => {
    const found = at < first ? undefined : data?.rows[at - first];
    return found && detail && found.key !== detail.key ? addressOf(found.key, at) : null;
  };
  const step = (by: number) => {
    if (row < 0 || row + by < 0) return;
    void source.cases(run, { ...list, offset: row + by, limit: 1 }).then(({ rows: [found] }) => found && go(addressOf(found.key, row + by)));
  };
  return { next: address(row + 1), previous: address(row - 1), step };
}

function Head({ detail, neighbors }: { detail: CaseDetail; neighbors: Neighbors | null }) {
  return (
    <header class="case-head">
      <div class="row">
        {neighbors && (
          <nav class="small" aria-label="Where you are">
            <a href={href(["run", detail.run])}>Run {detail.run}</a> <span aria-hidden="true">›</span> <a href={listAddress(detail.run)}>Cases</a>
          </nav>
        )}
        <span class="grow" />
        {neighbors && (
          <span class="row no-print">
            <Step address={neighbors.previous} word="previous case" sign="‹" />
            <Step address={neighbors.next} word="next case" sign="›" />
          </span>
        )}
      </div>
      <div class="row">
        <h1 id="case-title"><bdi>{detail.case_id}</bdi></h1>
        {detail.verdict && <Verdict word={detail.verdict === "aside" ? "set aside" : detail.verdict} />}
        {detail.finding && <span class="row small"><Verdict word={detail.finding.word} title={detail.finding.tries} /> <span class="cause">{detail.finding.why}</span></span>}
        {detail.failed && detail.verdict !== "error" && <Verdict word="error" title="the agent failed" />}
        {detail.elapsed_s !== null && detail.elapsed_s > 0 && <span class="soft">{duration(detail.elapsed_s)}</span>}
        {detail.attempts !== null && detail.attempts > 1 && <span class="soft">{detail.attempts} attempts</span>}
      </div>
      {detail.repeats.length + detail.again.length > 1 && (
        <nav class="row small" aria-label="Repeats">
          <span class="soft">Repeat</span>
          {detail.repeats.map((key, at) => <RepeatLink key={key} detail={detail} to={key} number={at + 1} />)}
          {detail.again.length > 0 && <span class="soft">Tried again</span>}
          {detail.again.map((key, at) => <RepeatLink key={key} detail={detail} to={key} number={at + 1} />)}
        </nav>
      )}
    </header>
  );
}

function RepeatLink({ detail, to, number }: { detail: CaseDetail; to: CaseKey; number: number }) {
  return (
    <a href={href(["run", detail.run, "case", to], { tab: place.value.query.get("tab") })}
      aria-current={to === detail.key ? "page" : undefined} class="repeat">{number}</a>
  );
}

function Step({ address, word, sign }: { address: string | null; word: string; sign: string }) {
  return address === null
    ? <button type="button" disabled aria-label={word}>{sign}</button>
    : <a class="button" href={address} aria-label={word} title={word}>{sign}</a>;
}

function Overview({ detail }: { detail: CaseDetail }) {
  const mediaOf = (media: CaseDetail["media"][number]) => source.media(detail.run, detail.key, media);
  return (
    <div class="overview">
      <div class="column">
        {(detail.failed || detail.error) && (
          <section class="card failure-card">
            <h2>{detail.failed ? "The agent failed" : "The agent reports an error"}{detail.failure && <> (<bdi>{detail.failure}</bdi>)</>}</h2>
            <pre class="plain" dir="auto">{detail.error ?? "no message"}</pre>
            {detail.earlier_failures.map((text, at) => (
              <details key={at}><summary>Attempt {at + 1}</summary><pre class="plain" dir="auto">{text}</pre></details>
            ))}
          </section>
        )}
        {detail.user_failure && <section class="card failure-card"><h2>Not scored: the simulated user failed</h2><pre class="plain">{detail.user_failure}</pre></section>}
        {!detail.recorded && <p class="card">This run is a score table: it has the scores of the case, and not the record.</p>}
        {detail.turns.length > 0 ? <Turns turns={detail.turns} /> : detail.query !== null && (
          <section class="card" aria-labelledby="question-title"><h2 id="question-title">Question</h2><Markdown text={detail.query} /></section>
        )}
        {detail.recorded && <Answer key={detail.key} detail={detail} />}
        <Expected detail={detail} />
        {detail.media.length > 0 && <section class="card"><h2>Pictures, sounds and videos</h2><MediaList media={detail.media} mediaOf={mediaOf} /></section>}
        <Context passages={detail.context} />
        {Object.entries(detail.printed).map(([name, text]) => (
          <details key={name} class="card"><summary><h2>Printed ({name})</h2></summary><pre class="plain" tabIndex={0}>{text}</pre></details>
        ))}
        <Further title="State at the end" value={detail.state} />
        <Further title="Tools" value={detail.tools.length ? detail.tools : null} />
        <Further title="Case metadata" value={detail.case_metadata} />
        <Further title="Trace metadata" value={detail.trace_metadata} />
      </div>
      <div class="column">
        <Checks detail={detail} />
        <Scores detail={detail} />
        <Notes key={detail.key} detail={detail} />
      </div>
    </div>
  );
}

function Further({ title, value }: { title: string; value: unknown }) {
  if (value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0)) return null;
  return <details class="card"><summary><h2>{title}</h2></summary><Data value={value} label={title} /></details>;
}
