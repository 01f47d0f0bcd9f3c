// Where raters disagree: worth a second look, and a talk.
import { href } from "../address";
import { labelWord } from "../case/notes";
import { Table } from "../components/table";
import { counted } from "../figures";
import type { LabelsPage } from "../types";

export function Disagreements({ run, metric, page }: { run: string; metric: string; page: LabelsPage }) {
  const rows = page.disagreements.filter((each) => each.metric === metric);
  if (rows.length === 0) return null;
  return (
    <section aria-labelledby="disagreements-title">
      <h2 id="disagreements-title">Raters disagree on {counted(rows.length, "answer")}</h2>
      <Table caption="Disagreements" rows={rows} keyOf={(row) => row.key} columns={[
        { name: "case", head: "case", cell: (row) => <a class="mono" href={href(["run", run, "case", row.key])}>{row.case_id}</a> },
        {
          name: "said", head: "what they said", cell: (row) => (
            <ul class="said-list">{row.said.map((each) => (
              <li key={each.rater}><strong>{labelWord(each.value)}</strong> <span class="soft">{each.rater}</span>{each.note && <span class="note-text"> {each.note}</span>}</li>
            ))}</ul>
          ),
        },
      ]} />
    </section>
  );
}
