// Failures that are known, and what was not scored and why.
import { Badge } from "../components/badges";
import { CaseLinks } from "../components/case_link";
import { Table } from "../components/table";
import { count } from "../figures";
import type { RunPage, ScoreStatus, UnscoredLine } from "../types";

export function KnownFailures({ run, known }: { run: string; known: RunPage["known_failures"] }) {
  if (known.length === 0) return null;
  return (
    <section aria-labelledby="known">
      <h2 id="known">Known failures <span class="soft">(set aside)</span></h2>
      <Table caption="Known failures" rows={known} keyOf={(row) => row.case_id} columns={[
        { name: "case", head: "case", cell: (row) => <CaseLinks run={run} ids={[row.case_id]} /> },
        { name: "state", head: "state", cell: (row) => row.state },
        { name: "until", head: "until", cell: (row) => row.until },
        { name: "reason", head: "reason", cell: (row) => row.reason },
      ]} />
    </section>
  );
}

const WORDS: Record<ScoreStatus, string> = { ok: "", informational: "", not_applicable: "does not apply", error: "error" };

export function Unscored({ run, lines }: { run: string; lines: UnscoredLine[] }) {
  if (lines.length === 0) return null;
  return (
    <section aria-labelledby="unscored">
      <h2 id="unscored">Not scored, and why</h2>
      <Table caption="Not scored, and why" rows={lines} columns={[
        { name: "metric", isInline: true, head: "metric", cell: (line) => line.metric },
        { name: "status", isInline: true, head: <span class="sr">status</span>, cell: (line) => line.status === "error" ? <Badge tone="bad" icon="!">error</Badge> : <Badge tone="soft">{WORDS[line.status]}</Badge> },
        { name: "reason", head: "reason", cell: (line) => <span class="cause">{line.reason}</span> },
        { name: "n", head: "records", isNumber: true, cell: (line) => count(line.n_records) },
        { name: "cases", head: "cases", isWide: true, cell: (line) => <CaseLinks run={run} ids={line.first_cases.slice(0, 3)} total={line.n_cases} /> },
      ]} />
    </section>
  );
}
