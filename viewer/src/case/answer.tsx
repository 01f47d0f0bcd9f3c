// The answer with what scorers doubt in it, the evidence that bears on each doubt, and what was expected.
import { useState } from "preact/hooks";
import { href, place } from "../address";
import { Markdown } from "../components/markdown";
import { counted, score } from "../figures";
import type { AnswerMark, CaseDetail } from "../types";

export interface Doubt extends AnswerMark {
  number: number;
  metrics: string[];
}

/** Doubts in the order of the answer; what several metrics say of the same words is one. */
export function doubtsOf(marks: readonly AnswerMark[], metric?: string): Doubt[] {
  const found = new Map<string, Doubt>();
  const wanted = marks.filter((mark) => metric === undefined || mark.metric === metric);
  for (const mark of [...wanted].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const same = found.get(`${mark.start}-${mark.end}`);
    if (same) {
      if (!same.metrics.includes(mark.metric)) same.metrics.push(mark.metric);
      if (mark.kind === "unsupported") same.kind = mark.kind;
      // One score that may decide is enough to say so.
      if (!mark.informational) same.informational = null;
    } else found.set(`${mark.start}-${mark.end}`, { ...mark, number: 0, metrics: [mark.metric] });
  }
  const doubts = [...found.values()].filter((each) => each.end > each.start);
  doubts.forEach((doubt, at) => { doubt.number = at + 1; });
  return doubts;
}

interface Piece {
  text: string;
  kind: AnswerMark["kind"] | null;
  isInformational: boolean;
  /** Doubts that end with this piece: their numbers stand behind it. */
  ends: Doubt[];
}

function piecesOf(answer: string, doubts: readonly Doubt[]): Piece[] {
  const cuts = new Set([0, answer.length]);
  for (const { start, end } of doubts) cuts.add(Math.min(start, answer.length)).add(Math.min(end, answer.length));
  const places = [...cuts].sort((a, b) => a - b);
  return places.slice(1).map((end, at) => {
    const start = places[at] ?? 0;
    const over = doubts.filter((each) => each.start <= start && each.end >= end);
    const kind = over.some((each) => each.kind === "doubtful") ? "doubtful" : over.length ? "unsupported" : null;
    const isInformational = over.every((each) => each.informational);
    return { text: answer.slice(start, end), kind, isInformational, ends: doubts.filter((each) => each.end === end) };
  });
}

function markTitle({ kind, isInformational }: Piece): string {
  if (isInformational) return kind === "doubtful" ? "doubtful words, informational" : "a sentence that is doubted, informational";
  return kind === "doubtful" ? "doubtful words" : "a sentence that nothing supports";
}

/** What is said of a doubt; a score that is no basis for decisions says less. */
function doubtWords({ kind, informational }: Doubt): string {
  const words = kind === "doubtful" ? "Doubtful" : informational ? "Doubted" : "Not supported";
  return informational ? `${words}, informational: ` : `${words}: `;
}

/** The answer as text with its doubts marked and numbered. */
export function MarkedAnswer({ answer, doubts, isNumbered = true }: { answer: string; doubts: readonly Doubt[]; isNumbered?: boolean }) {
  return (
    <div class="answer-text" dir="auto">
      {piecesOf(answer, doubts).map((piece, at) => (
        <>
          {piece.kind === null ? <span key={at}>{piece.text}</span>
            : <mark key={at} class={piece.kind} title={markTitle(piece)}>{piece.text}</mark>}
          {isNumbered && piece.ends.map((doubt) => (
            <button type="button" class="link doubt-ref" key={doubt.number} aria-label={`doubt ${doubt.number}: why`}
              onClick={() => showDoubt(doubt.number)}>{doubt.number}</button>
          ))}
        </>
      ))}
    </div>
  );
}

function showDoubt(number: number): void {
  const target = document.getElementById(`doubt-${number}`);
  target?.scrollIntoView({ block: "nearest" });
  target?.focus();
}

export function Answer({ detail }: { detail: CaseDetail }) {
  const doubts = doubtsOf(detail.marks);
  const [isRendered, setRendered] = useState(doubts.length === 0);
  const { answer } = detail;
  return (
    <section class="card" aria-labelledby="answer-title">
      <div class="row apart">
        <h2 id="answer-title">Answer</h2>
        {answer !== null && (
          <div class="row no-print" role="group" aria-label="How the answer is shown">
            <button type="button" class="quiet" aria-pressed={!isRendered} onClick={() => setRendered(false)}>
              {doubts.length ? `text, ${counted(doubts.length, "doubt")}` : "text"}
            </button>
            <button type="button" class="quiet" aria-pressed={isRendered} onClick={() => setRendered(true)}>Markdown</button>
          </div>
        )}
      </div>
      {answer === null ? <p class="soft">none</p> : isRendered ? <Markdown text={answer} />
        : <MarkedAnswer answer={answer} doubts={doubts} />}
      {doubts.length > 0 && !isRendered && <Doubts detail={detail} doubts={doubts} />}
    </section>
  );
}

/** The doubt about the whole sentence, where one about words in it rests on the same evidence. */
function enclosing(doubt: Doubt, doubts: readonly Doubt[]): Doubt | undefined {
  const said = JSON.stringify(doubt.evidence);
  return doubts.find((each) => each !== doubt && each.kind === "unsupported" && each.start <= doubt.start && each.end >= doubt.end
    && JSON.stringify(each.evidence) === said);
}

function Doubts({ detail, doubts }: { detail: CaseDetail; doubts: readonly Doubt[] }) {
  return (
    <ol class="doubts" aria-label="What is doubted">
      {doubts.map((doubt) => {
        const whole = enclosing(doubt, doubts);
        return (
          <li key={doubt.number} id={`doubt-${doubt.number}`} tabIndex={-1}>
            <p>
              <span class="doubt-number">{doubt.number}</span>
              <strong>{doubtWords(doubt)}</strong>
              <bdi>“{detail.answer?.slice(doubt.start, doubt.end).trim()}”</bdi>
              <span class="soft small">
                {" "}{doubt.metrics.join(", ")}
                {doubt.probability !== null && `, ${doubt.kind === "doubtful" ? "doubt" : "support"} ${score(doubt.probability, 2)}`}
                {whole && <>, in <button type="button" class="link" aria-label={`doubt ${whole.number}: the whole sentence`}
                  onClick={() => showDoubt(whole.number)}>{whole.number}</button></>}
              </span>
            </p>
            {doubt.informational && !whole && <p class="small">Not a basis for decisions: {doubt.informational}.</p>}
            {doubt.reason && <p class="small">{doubt.reason}</p>}
            {whole ? null : doubt.evidence.length === 0 ? <p class="soft small">{doubt.informational ? "No passage was found for it." : "Nothing that the agent saw bears on it."}</p>
              : doubt.evidence.map((evidence, at) => <Evidence key={at} detail={detail} evidence={evidence} />)}
          </li>
        );
      })}
    </ol>
  );
}

function Evidence({ detail, evidence }: { detail: CaseDetail; evidence: AnswerMark["evidence"][number] }) {
  const { source, index, text } = evidence;
  const words = source ?? (index === null ? "evidence" : `context[${index}]`);
  const passage = index ?? Number(/^context\[(\d+)\]/.exec(words)?.[1] ?? -1);
  const event = passage < 0 ? toolEvent(detail, words) : -1;
  return (
    <blockquote class="evidence">
      <p class="small soft">
        {passage >= 0 && passage < detail.context.length
          ? <button type="button" class="link" onClick={() => showPassage(passage)}>{words}</button>
          : event >= 0 ? <a href={href(place.value.path, { ...Object.fromEntries(place.value.query), tab: "transcript", event })}>{words}</a> : words}
        {" "}says
      </p>
      <p dir="auto">{text}</p>
    </blockquote>
  );
}

/** Which event a source such as 'tool "search" call 3' names, among those that are here. */
function toolEvent(detail: CaseDetail, source: string): number {
  const number = Number(/^tool ".*" call (\d+)/.exec(source)?.[1] ?? 0);
  return number ? detail.events.filter((event) => event.tool)[number - 1]?.n ?? -1 : -1;
}

function showPassage(index: number): void {
  const target = document.getElementById(`passage-${index}`);
  target?.closest("details")?.setAttribute("open", "");
  target?.scrollIntoView({ block: "center" });
  target?.focus();
}

export function Context({ passages }: { passages: readonly string[] }) {
  if (passages.length === 0) return null;
  return (
    <details class="card" open={passages.length <= 3}>
      <summary><h2>Context</h2> <span class="soft small">{counted(passages.length, "passage")}</span></summary>
      <ol class="passages" start={0}>
        {passages.map((text, at) => (
          <li key={at} id={`passage-${at}`} tabIndex={-1}><span class="soft small mono">context[{at}]</span><div class="answer-text" dir="auto">{text}</div></li>
        ))}
      </ol>
    </details>
  );
}

function Parts({ parts, whole, kind }: { parts: readonly [string, boolean][]; whole: string; kind: "was" | "is" }) {
  if (parts.length === 0) return <>{whole}</>;
  return <>{parts.map(([text, isShared], at) => (isShared || !text.trim() ? <span key={at}>{text}</span> : <mark key={at} class={kind}>{text}</mark>))}</>;
}

/** What was expected beside what was given; words that only one of them has are marked. */
export function Expected({ detail }: { detail: CaseDetail }) {
  const { expected, answer, answer_parts: mine, expected_parts: theirs } = detail;
  if (expected.length === 0) return null;
  const compared = theirs.length > 0 ? theirs.map(([text]) => text).join("") : null;
  const first = compared ?? expected[0] ?? "";
  const others = expected.filter((each) => each !== first);
  const isSame = answer !== null && answer.trim() === first.trim();
  return (
    <section class="card" aria-labelledby="expected-title">
      <h2 id="expected-title">{expected.length > 1 ? "Expected, any of these" : "Expected"}{isSame && <span class="good-text"> ✓ the same</span>}</h2>
      {compared !== null && !isSame ? (
        <div class="pair">
          <div><h3 class="soft">given</h3><div class="answer-text" dir="auto"><Parts parts={mine} whole={answer ?? ""} kind="was" /></div></div>
          <div><h3 class="soft">expected</h3><div class="answer-text" dir="auto"><Parts parts={theirs} whole={first} kind="is" /></div></div>
        </div>
      ) : <div class="answer-text" dir="auto">{first}</div>}
      {others.length > 0 && <ul class="others">{others.map((each, at) => <li key={at} class="answer-text" dir="auto">{each}</li>)}</ul>}
    </section>
  );
}
