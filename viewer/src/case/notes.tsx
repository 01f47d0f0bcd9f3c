// What people said of the answer: their labels and notes, and a place to add a note.
import { useState } from "preact/hooks";
import { ago, score } from "../figures";
import { index, source } from "../source";
import type { CaseDetail, Label } from "../types";
import { href } from "../address";
import { raterName, rememberRater } from "../label/rater";

export function labelWord(value: number | null): string {
  return value === null ? "could not say" : value === 1 ? "yes" : value === 0 ? "no" : score(value, 1);
}

export function Notes({ detail }: { detail: CaseDetail }) {
  const [added, setAdded] = useState<Label[]>([]);
  const labels = [...detail.labels, ...added.filter((each) => !detail.labels.some((kept) => kept.id === each.id))];
  return (
    <section class="card" aria-labelledby="notes-title">
      <div class="row apart">
        <h2 id="notes-title">Labels and notes</h2>
        {detail.recorded && <a class="no-print" href={href(["run", detail.run, "label"])}>Label this run</a>}
      </div>
      {labels.length === 0 ? <p class="soft small">None yet.</p> : (
        <ul class="labels">{labels.map((label) => <LabelLine key={label.id} label={label} />)}</ul>
      )}
      {detail.recorded && <NoteForm detail={detail} onAdded={(label) => setAdded([...added, label])} />}
    </section>
  );
}

export function LabelLine({ label }: { label: Label }) {
  const isNote = label.metric === "" || label.metric === "note";
  return (
    <li>
      {!isNote && <><strong>{labelWord(label.value)}</strong> <span class="mono small">{label.metric}</span> </>}
      <span class="soft small">{isNote ? "note by " : "by "}<bdi>{label.rater}</bdi>{label.made_at > 0 && `, ${ago(label.made_at)}`}</span>
      {label.note && <p class="note-text" dir="auto">{label.note}</p>}
    </li>
  );
}

function NoteForm({ detail, onAdded }: { detail: CaseDetail; onAdded: (label: Label) => void }) {
  const [note, setNote] = useState("");
  const [problem, setProblem] = useState("");
  const [typed, setRater] = useState<string | null>(null);
  const rater = typed ?? raterName(index.value);
  const add = async () => {
    try {
      rememberRater(rater);
      onAdded(await source.addNote(detail.run, detail.key, rater.trim(), note.trim()));
      setNote("");
      setProblem("");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const isReady = note.trim() !== "" && rater.trim() !== "";
  return (
    <div class="note-form no-print">
      <label><span class="sr">Note</span>
        <textarea rows={2} placeholder="a note on this case" value={note} onInput={(event) => setNote(event.currentTarget.value)} />
      </label>
      <div class="row">
        <label class="row small">by <input class="rater" value={rater} placeholder="your name" onInput={(event) => setRater(event.currentTarget.value)} /></label>
        <button type="button" disabled={!isReady} onClick={() => void add()}>Add note</button>
      </div>
      {problem && <p class="bad-text" role="alert">{problem}</p>}
    </div>
  );
}
