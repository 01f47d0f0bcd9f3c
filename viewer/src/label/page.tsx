// Labeling by keyboard: one case, one question, one key. What the scorer says is shown only after the answer.
import { useEffect, useRef, useState } from "preact/hooks";
import { place, setQuery } from "../address";
import { doubtsOf, MarkedAnswer } from "../case/answer";
import { download } from "../case/raw";
import { RunHeader, useRun } from "../components/run_header";
import { Empty, Failure, Shown, Waiting } from "../components/states";
import { count, counted, score } from "../figures";
import { useKeys } from "../keys";
import { useLoad } from "../loading";
import type { PageProps } from "../pages";
import { index, personal, source } from "../source";
import { labelFiles } from "../source/local_labels";
import type { LabelTask, LabelsPage } from "../types";
import { AskedCase } from "./asked";
import { Disagreements } from "./disagreements";
import "./label.css";
import { raterName, rememberRater } from "./rater";

export function LabelPage({ params }: PageProps) {
  const run = params.run ?? "";
  // Each answer may end a disagreement, or begin one.
  const [n_given, setGiven] = useState(0);
  const labels = useLoad(`${run}/${n_given}`, () => source.labels(run));
  const line = useRun(run).data?.line;
  if (labels.error) return <Failure error={labels.error} />;
  return (
    <>
      {line && <RunHeader line={line} tab="label" />}
      <Shown of={labels} what="the labels">{(page) => <Labeling run={run} page={page} onGiven={() => setGiven((before) => before + 1)} />}</Shown>
    </>
  );
}

function Labeling({ run, page, onGiven }: { run: string; page: LabelsPage; onGiven: () => void }) {
  const query = place.value.query;
  const [typed, setNamed] = useState<string | null>(null);
  const named = typed ?? query.get("rater") ?? raterName(index.value);
  const rater = query.get("rater") ?? raterName(index.value);
  const metric = page.metrics.find((each) => each.metric === query.get("metric")) ?? page.metrics[0];
  if (!metric) {
    return (
      <Empty title="There is nothing to label in this run.">
        Labels say what a score from 0 to 1 should have been: score the run with such a metric first.
      </Empty>
    );
  }
  const start = () => {
    rememberRater(named);
    setQuery({ rater: named.trim() });
  };
  return (
    <article class="labeling" aria-label="Label">
      <header class="row">
        <label class="row small">metric
          <select value={metric.metric} onChange={(event) => setQuery({ metric: event.currentTarget.value })}>
            {page.metrics.map((each) => <option key={each.metric} value={each.metric}>{each.metric} ({count(each.n_labels)})</option>)}
          </select>
        </label>
        <form class="row small" onSubmit={(event) => { event.preventDefault(); start(); }}>
          <label class="row">rater <input value={named} list="raters" placeholder="your name" autocomplete="off"
            onInput={(event) => setNamed(event.currentTarget.value)} /></label>
          <datalist id="raters">{page.raters.map((each) => <option key={each} value={each} />)}</datalist>
          {named.trim() !== rater && <button type="submit" disabled={named.trim() === ""}>Label as {named.trim() || "…"}</button>}
        </form>
        {index.value?.can_label === false && <Download run={run} />}
      </header>
      {rater === ""
        ? <Empty title="Who labels?">Your name goes with every label: write it above. Several people may label the same run.</Empty>
        : <Questions key={`${metric.metric}/${rater}`} run={run} metric={metric.metric} rater={rater} summary={metric.summary} onGiven={onGiven} />}
      <Disagreements run={run} metric={metric.metric} page={page} />
    </article>
  );
}

function Download({ run }: { run: string }) {
  const [word, setWord] = useState("Download labels");
  const save = () => {
    const files = labelFiles(run);
    for (const file of files) download(file.name, file.text, "application/jsonl");
    setWord(files.length ? "Downloaded" : "No label yet");
  };
  return (
    <span class="row small">
      <button type="button" onClick={save}>{word}</button>
      <span class="soft">kept in this browser; <code>agentunit label RUN --labels FILE</code> takes the file</span>
    </span>
  );
}

function Questions({ run, metric, rater, summary, onGiven }: {
  run: string; metric: string; rater: string; summary: string; onGiven: () => void;
}) {
  const [task, setTask] = useState<LabelTask | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const [said, setSaid] = useState("");
  const [note, setNote] = useState("");
  const [isBusy, setBusy] = useState(true);
  // A rater who sees what the scorer doubts agrees with it too often: marks are shown when asked for, or after the answer.
  const [markedKey, setMarkedKey] = useState<string | null>(null);
  const noteField = useRef<HTMLTextAreaElement>(null);
  const noteFrame = useRef<HTMLDetailsElement>(null);
  const key = task?.asked?.key ?? null;
  const loaded = useLoad(`${run}/${key}/${personal.value}`, () => (key === null ? Promise.resolve(null) : source.case(run, key)));
  const detail = loaded.data?.key === key ? loaded.data : null;

  const ask = async (question: () => Promise<LabelTask>, words: (task: LabelTask) => string) => {
    setBusy(true);
    try {
      const next = await question();
      setTask(next);
      setSaid(words(next));
      setNote(next.asked?.given?.note ?? "");
      setProblem(null);
      if (task) onGiven();
    } catch (error) {
      setProblem(error instanceof Error ? error : new Error(String(error)));
    }
    setBusy(false);
  };
  useEffect(() => { void ask(() => source.labelTask(run, metric, rater), () => ""); }, []);

  const give = (value: number | null) => {
    // A key that is pressed twice must not label the next case unseen.
    if (isBusy || key === null || !detail) return;
    // A bundle does not tell the score with its reply; it is in the case, where the page did not show it.
    const scored = detail.scores.find((each) => each.metric === metric)?.value ?? null;
    void ask(() => source.giveLabel(run, { metric, rater, key, value, note: note.trim() }), (next) => describeAnswer(next, scored));
  };
  const undo = () => {
    if (!isBusy) void ask(() => source.undoLabel(run, metric, rater), (next) => (next.asked ? `Taken back: your answer to ${next.asked.case_id}.` : ""));
  };
  const writeNote = () => {
    if (noteFrame.current) noteFrame.current.open = true;
    noteField.current?.focus();
  };
  const isMarked = key !== null && (markedKey === key || Boolean(task?.asked?.given));
  const doubts = detail ? doubtsOf(detail.marks, metric) : [];
  const mark = () => setMarkedKey(isMarked ? null : key);
  const grades = task?.graded ? Array.from({ length: 9 }, (_, at) => at + 1) : [];
  useKeys("Label", [
    { key: "y", does: "yes", act: () => give(1) },
    { key: "n", does: "no", act: () => give(0) },
    { key: "s", does: "skip: cannot say", act: () => give(null) },
    { key: "u", does: "undo", act: undo },
    { key: "t", does: "write a note", act: writeNote },
    { key: "d", does: "show what the scorer doubts", act: mark },
    ...grades.map((grade) => ({ key: String(grade), does: grade === 1 ? "1 to 9: tenths" : undefined, act: () => give(grade / 10) })),
  ]);
  if (problem && !task) return <Failure error={problem} />;
  if (!task) return <Waiting what="Drawing the first case" />;
  return (
    <>
      <Progress task={task} said={said} />
      {problem && <Failure error={problem} />}
      {task.asked === null ? (
        <Empty title="No case is left to ask about."><button type="button" onClick={undo}>Undo the last</button></Empty>
      ) : (
        <div class="label-body">
          <div class="label-page">
            {detail ? <AskedCase detail={detail} metric={metric}>
              <MarkedAnswer answer={detail.answer ?? ""} doubts={isMarked ? doubts : []} isNumbered={false} />
            </AskedCase> : loaded.error ? <Failure error={loaded.error} /> : <Waiting what="Reading the case" />}
          </div>
          <div class="label-question" role="group" aria-label="Your answer">
            <p class="soft small mono">{task.asked.case_id}{task.asked.given && `, you said ${shownLabel(task.asked.given.value)}`}</p>
            <p class="the-question">{task.question || summary}</p>
            <div class="row answers">
              <button type="button" onClick={() => give(1)} disabled={isBusy}><kbd>y</kbd> yes</button>
              <button type="button" onClick={() => give(0)} disabled={isBusy}><kbd>n</kbd> no</button>
              <button type="button" onClick={() => give(null)} disabled={isBusy}><kbd>s</kbd> skip</button>
              <button type="button" onClick={undo} disabled={isBusy}><kbd>u</kbd> undo</button>
              <button type="button" onClick={mark} disabled={!detail} aria-pressed={isMarked}><kbd>d</kbd> doubts</button>
            </div>
            {grades.length > 0 && (
              <div class="row grades" role="group" aria-label="Tenths">
                {grades.map((grade) => <button type="button" key={grade} onClick={() => give(grade / 10)} disabled={isBusy}><kbd>{grade}</kbd></button>)}
                <span class="soft small">tenths</span>
              </div>
            )}
            <details class="small" ref={noteFrame} open={note !== ""}>
              <summary><kbd>t</kbd> note</summary>
              <textarea ref={noteField} rows={2} value={note} aria-label="note" onInput={(event) => setNote(event.currentTarget.value)} />
            </details>
          </div>
        </div>
      )}
    </>
  );
}

function shownLabel(value: number | null): string {
  return value === null ? "that you cannot say" : value === 1 ? "yes" : value === 0 ? "no" : score(value, 1);
}

/** What is said after an answer: the score that was hidden until then. */
function describeAnswer({ answered, metric }: LabelTask, scored: number | null): string {
  if (!answered) return "";
  const value = answered.score ?? scored;
  const mine = answered.value === null ? "you skipped it" : `you said ${shownLabel(answered.value)}`;
  return `${answered.case_id}: ${mine}, ${metric} ${value === null ? "has no score" : score(value, 2)} (${answered.backend})`;
}

function Progress({ task, said }: { task: LabelTask; said: string }) {
  const share = task.n_cases ? task.n_labels / task.n_cases : 0;
  return (
    <div class="progress">
      <div class="row apart small">
        <span><strong>{counted(task.n_given, "label")}</strong> by {task.rater}</span>
        <span class="soft">{task.standing}</span>
      </div>
      <div class="progress-track" role="progressbar" aria-label="labeled answers" aria-valuemin={0} aria-valuemax={task.n_cases} aria-valuenow={task.n_labels}>
        <span style={{ width: `${100 * share}%` }} />
      </div>
      <p class="said" role="status">{said}</p>
    </div>
  );
}
