// Every score of a case: its value and verdict, why, and the details so that a person can read them.
import { useState } from "preact/hooks";
import { Badge } from "../components/badges";
import { Data, isData } from "../components/data";
import { Tip } from "../components/tip";
import { count, dollars, duration, score } from "../figures";
import type { CaseDetail, ScoreDetail } from "../types";

/** Keys of a detail that the page shows elsewhere, or that say nothing to a reader. */
const SHOWN_ELSEWHERE = new Set(["backend", "informational", "references", "sources", "answer", "tool_calls", "turns"]);

export function shownValue(value: number | null, unit: string): string {
  if (value === null) return "–";
  if (unit === "USD") return dollars(value);
  if (unit === "tokens") return count(value);
  if (unit === "s") return duration(value);
  return unit === "score" ? score(value, 2) : `${score(value)} ${unit}`;
}

const STATUS_WORDS: Record<string, string> = {
  informational: "informational", not_applicable: "not scored", error: "error", ok: "",
};

export function Scores({ detail }: { detail: CaseDetail }) {
  if (detail.scores.length === 0) return null;
  const order = (each: ScoreDetail) => (each.passed === false || each.status === "error" ? 0 : each.value === null ? 2 : 1);
  const scores = [...detail.scores].sort((a, b) => order(a) - order(b));
  return (
    <section class="card scores" aria-labelledby="scores-title">
      <h2 id="scores-title">Scores</h2>
      <ul>{scores.map((each) => <ScoreView key={`${each.metric}/${each.backend}`} score={each} />)}</ul>
    </section>
  );
}

function ScoreView({ score: each }: { score: ScoreDetail }) {
  const [isOpen, setOpen] = useState(false);
  const detail = Object.fromEntries(Object.entries(each.detail).filter(([name, value]) =>
    !SHOWN_ELSEWHERE.has(name) && value !== null && value !== each.reason));
  const turns = Array.isArray(each.detail.turns) ? each.detail.turns.filter(isData) : [];
  const canOpen = Object.keys(detail).length > 0 || each.judge_calls.length > 0;
  const status = STATUS_WORDS[each.status] ?? each.status;
  return (
    <li class={each.status === "informational" ? "aside" : ""}>
      <div class="score-line">
        {canOpen ? (
          <button type="button" class="link score-name" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <span class="turner" aria-hidden="true">{isOpen ? "▾" : "▸"}</span><bdi>{each.metric}</bdi>
          </button>
        ) : <span class="score-name"><span class="turner" aria-hidden="true" />{each.metric}</span>}
        {each.passed !== null && <Badge tone={each.passed ? "good" : "bad"} icon={each.passed ? "✓" : "✕"}>{each.passed ? "pass" : "fail"}</Badge>}
        {status && each.value === null && <Badge tone={each.status === "error" ? "bad" : "soft"}>{status}</Badge>}
        <span class="grow" />
        {each.value !== null && <strong class="num" title={String(each.value)}>{shownValue(each.value, each.unit)}</strong>}
      </div>
      <p class="soft small">
        {each.backend}{each.status === "informational" && ", informational"}
        {typeof each.detail.informational === "string" && ` (${each.detail.informational})`}
        {each.trust && <>, <Tip text={`version ${each.version}; ${each.direction === "none" ? "neither way is better" : `${each.direction} is better`}`}>{each.trust}</Tip></>}
      </p>
      {each.held && <p class="small">{each.held}</p>}
      {each.reason && <p class="small score-reason" dir="auto">{each.reason}</p>}
      {turns.length > 0 && (
        <ul class="turn-scores small soft">
          {turns.map((turn, at) => <li key={at}>turn {String(turn.turn)}: {typeof turn.value === "number" ? score(turn.value) : String(turn.reason ?? "–")}</li>)}
        </ul>
      )}
      {isOpen && <div class="score-detail"><Data value={readable(detail)} label={`details of ${each.metric}`} /></div>}
    </li>
  );
}

/** Names of claims as a reader looks for them; places in characters say nothing to one. */
function readable(detail: Record<string, unknown>): Record<string, unknown> {
  if (!Array.isArray(detail.claims)) return detail;
  const claims = detail.claims.filter(isData).map((claim) => ({
    claim: claim.claim ?? claim.text,
    support: claim.verdict ?? claim.probability,
    source: claim.source ?? claim.passage,
    evidence: claim.evidence ?? claim.quote,
  }));
  return { ...detail, claims };
}

/** What a judge was asked for the scores of the case, and what it replied. */
export function JudgeCalls({ detail }: { detail: CaseDetail }) {
  const asked = detail.scores.filter((each) => each.judge_calls.length > 0);
  return (
    <>
      {asked.map((each) => (
        <section key={`${each.metric}/${each.backend}`} class="card">
          <h2>{each.metric} <span class="soft small">{each.backend}, {shownValue(each.value, each.unit)}</span></h2>
          <ol class="judge-calls">{each.judge_calls.map((call, at) => <li key={at}><JudgeCall call={call} /></li>)}</ol>
        </section>
      ))}
    </>
  );
}

const JUDGE_PARTS = [["system", "Instructions"], ["user", "Asked"], ["reply", "Reply"], ["problem", "Problem"]] as const;

function JudgeCall({ call }: { call: Record<string, unknown> }) {
  const parts = JUDGE_PARTS.filter(([name]) => typeof call[name] === "string" && call[name] !== "");
  const names = new Set<string>([...JUDGE_PARTS.map(([name]) => name), "schema"]);
  const facts = Object.fromEntries(Object.entries(call).filter(([name, value]) => !names.has(name) && value !== null));
  return (
    <div class="judge-call">
      {parts.map(([name, title]) => (
        <details key={name} open={name !== "system"}>
          <summary>{title} <span class="soft small">{count(String(call[name]).length)} characters</span></summary>
          <pre class={`plain ${name === "problem" ? "bad-text" : ""}`} tabIndex={0} dir="auto">{String(call[name])}</pre>
        </details>
      ))}
      {Object.keys(facts).length > 0 && <Data value={facts} label="facts of the call" />}
    </div>
  );
}
