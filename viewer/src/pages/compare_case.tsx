// One case in two runs: scores, answers and steps side by side, with what differs marked.
import { useMemo } from "preact/hooks";
import { href, place, setQuery } from "../address";
import { Empty, Failure, Waiting } from "../components/states";
import { duration, quantity } from "../figures";
import { useLoad } from "../loading";
import { source } from "../source";
import { wordDiff, type Part } from "../text/diff";
import type { CaseDetail, CaseDifference, ComparePage, TraceEvent } from "../types";
import { alignSteps, type Step } from "./steps";

const MOST_STEPS = 400;

export function CaseChange({ page, change }: { page: ComparePage; change: CaseDifference }) {
  const isOpen = place.value.query.get("open") === change.case_id;
  return (
    <li class="card change">
      <button type="button" class="change-head" aria-expanded={isOpen} onClick={() => setQuery({ open: isOpen ? null : change.case_id })}>
        <span aria-hidden="true" class="soft">{isOpen ? "▾" : "▸"}</span>
        <span class="strong clip">{change.case_id}</span>
        {change.why && <span class="change-text small clip" title={change.why}>{change.why}</span>}
        <span class="change-scores small">
          {change.scores.slice(0, isOpen ? undefined : 4).map((each) => (
            <span key={each.metric} class="nowrap"><span class="soft">{each.metric}</span> {quantity(each.baseline, each.unit)} → <b>{quantity(each.candidate, each.unit)}</b></span>
          ))}
          {change.same_answer && <span class="soft">same answer</span>}
        </span>
        {change.scores.length === 0 && !change.why && !isOpen && <span class="soft small clip change-text">{textOf(change.candidate)}</span>}
      </button>
      {isOpen && <Opened page={page} change={change} />}
    </li>
  );
}

function Opened({ page, change }: { page: ComparePage; change: CaseDifference }) {
  const loaded = useLoad(`${page.baseline.id} ${page.candidate.id} ${change.case_id}`, async () => Promise.all([
    change.baseline_key === null ? null : source.case(page.baseline.id, change.baseline_key),
    change.candidate_key === null ? null : source.case(page.candidate.id, change.candidate_key),
  ]));
  if (loaded.error) return <><Answers before={textOf(change.baseline)} after={textOf(change.candidate)} /><Failure error={loaded.error} /></>;
  if (!loaded.data) return <><Answers before={textOf(change.baseline)} after={textOf(change.candidate)} /><Waiting what="Reading both records" /></>;
  const [before, after] = loaded.data;
  const query = after?.query ?? before?.query;
  return (
    <div class="change-body">
      {change.tries && <p class="small">{change.why && <b>{change.why} </b>}<span class="soft">{change.tries}</span></p>}
      {query && <p class="change-query"><span class="soft small">question</span> {query}</p>}
      <div class="sides">
        <p class="side-head"><span class="soft small">baseline</span> <CaseAddress run={page.baseline.id} detail={before} /></p>
        <p class="side-head"><span class="soft small">candidate</span> <CaseAddress run={page.candidate.id} detail={after} /></p>
      </div>
      <Answers before={before?.answer ?? before?.error ?? textOf(change.baseline)} after={after?.answer ?? after?.error ?? textOf(change.candidate)} />
      {(after?.expected ?? before?.expected ?? []).length > 0 && (
        <p class="small"><span class="soft">expected</span> {(after?.expected ?? before?.expected ?? []).join(" · ")}</p>
      )}
      {before && after && <Steps before={before} after={after} />}
    </div>
  );
}

function CaseAddress({ run, detail }: { run: string; detail: CaseDetail | null }) {
  if (!detail) return <span class="soft">no such record any more</span>;
  return <a href={href(["run", run, "case", detail.key])}>whole case</a>;
}

function textOf(side: CaseDifference["baseline"]): string | null {
  return side === null ? null : (side.text ?? side.error);
}

function Answers({ before, after }: { before: string | null; after: string | null }) {
  const [left, right] = useMemo(() => {
    const whole = (text: string | null): Part[] => [{ text: text ?? "", isShared: true }];
    return (before !== null && after !== null && before !== after ? wordDiff(before, after) : null) ?? [whole(before), whole(after)];
  }, [before, after]);
  return (
    <div class="sides">
      <Answer parts={left} isNew={false} isMissing={before === null} />
      <Answer parts={right} isNew isMissing={after === null} />
    </div>
  );
}

function Answer({ parts, isNew, isMissing }: { parts: Part[]; isNew: boolean; isMissing: boolean }) {
  if (isMissing) return <div class="text soft">no answer</div>;
  return (
    <div class="text">
      {parts.map((part, at) => (part.isShared ? part.text : isNew ? <ins key={at}>{part.text}</ins> : <del key={at}>{part.text}</del>))}
    </div>
  );
}

function Steps({ before, after }: { before: CaseDetail; after: CaseDetail }) {
  const rows = useMemo(() => alignSteps(before.events.slice(0, MOST_STEPS), after.events.slice(0, MOST_STEPS)), [before, after]);
  if (rows.length === 0) return <Empty title="Neither run recorded steps." />;
  const n_shown = Math.max(...[before, after].map((each) => Math.min(each.events.length, MOST_STEPS)));
  const isCut = Math.max(before.n_events, after.n_events) > n_shown;
  return (
    <details class="steps" open={rows.length <= 40}>
      <summary>Steps <span class="soft small">{before.n_events} → {after.n_events}{isCut && `, the first ${n_shown} are shown`}</span></summary>
      <div class="steps-rows">
        {rows.map(([left, right], at) => (
          <div class="sides step-pair" key={at}>
            <StepLine step={left} mark={!right ? "was" : right && left && left.detail !== right.detail ? "differs" : ""} />
            <StepLine step={right} mark={!left ? "is" : left && right && left.detail !== right.detail ? "differs" : ""} />
          </div>
        ))}
      </div>
    </details>
  );
}

function StepLine({ step, mark }: { step: Step | null; mark: "" | "was" | "is" | "differs" }) {
  if (!step) return <div class="step none" />;
  const words = { "": "", was: "only here", is: "only here", differs: "other content" }[mark];
  return (
    <div class={`step ${mark}`} title={words || undefined}>
      <span class="soft small step-kind">{step.kind}{mark && <span class="sr"> {words}</span>}</span>
      <span class="step-text">{step.name && <b>{step.name} </b>}<span class="soft">{step.detail}</span></span>
      {step.event.failed && <span class="bad-text small">failed</span>}
      <Took event={step.event} />
    </div>
  );
}

function Took({ event }: { event: TraceEvent }) {
  return event.duration_s === undefined ? null : <span class="soft small nowrap">{duration(event.duration_s)}</span>;
}
