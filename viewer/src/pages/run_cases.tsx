// The cases of a run that are not fine, each with why, by what they are called.
import { Verdict } from "../components/badges";
import { CaseLink } from "../components/case_link";
import { Table } from "../components/table";
import { count } from "../figures";
import type { Decision } from "../types";

const OPEN_UP_TO = 12;

export function CasesNotFine({ run, decision: { groups, verdict }, isExplained }: {
  run: string; decision: Decision; isExplained: boolean;
}) {
  if (groups.length === 0) return null;
  // What findings explain already, and what a run passes with, is there to be opened.
  const isOpen = (n: number) => !isExplained && verdict !== "pass" && n <= OPEN_UP_TO;
  return (
    <section aria-labelledby="not-fine">
      <h2 id="not-fine">Cases that are not fine</h2>
      {groups.map((group) => (
        <details key={group.word} class="case-group" open={isOpen(group.cases.length)}>
          <summary><Verdict word={group.word} /> {group.n !== null && count(group.n)}</summary>
          <Table caption={`Cases that are ${group.word}`} rows={group.cases} keyOf={(each) => each.case_id} columns={[
            { name: "case", isInline: true, head: "case", cell: (each) => <CaseLink run={run} id={each.case_id} /> },
            { name: "why", head: "why", cell: (each) => <span class="cause">{each.why}</span> },
            { name: "tries", head: "tries", cell: (each) => <span class="soft small">{each.tries}</span> },
          ]} />
          {group.n !== group.cases.length && <p class="soft small">The first {count(group.cases.length)}{group.n !== null && ` of ${count(group.n)}`}.</p>}
        </details>
      ))}
    </section>
  );
}
