// The conditions on a run, and where its values stand to them.
import { Verdict } from "../components/badges";
import { CaseLinks } from "../components/case_link";
import { IntervalBar } from "../components/charts";
import { Table } from "../components/table";
import { percent, score } from "../figures";
import type { GateLine } from "../types";

export function Gates({ run, gates }: { run: string; gates: GateLine[] }) {
  if (gates.length === 0) return null;
  return (
    <section aria-labelledby="gates">
      <h2 id="gates">Gates</h2>
      <Table caption="Gates" rows={gates} keyOf={(gate) => gate.expression} columns={[
        { name: "verdict", isInline: true, head: <span class="sr">verdict</span>, cell: (gate) => <Verdict word={gate.word} /> },
        { name: "gate", isInline: true, head: "gate", cell: (gate) => <code>{gate.expression}</code> },
        { name: "value", head: "value", isNumber: true, cell: (gate) => score(gate.value) },
        {
          name: "interval", head: "95 % interval and threshold", isWide: true,
          cell: (gate) => <div class="gate-bar"><IntervalBar value={gate.value} low={gate.low} high={gate.high} threshold={gate.threshold}
            isBad={gate.verdict === "fail"} /></div>,
        },
        { name: "why", head: "why", cell: (gate) => <Why run={run} gate={gate} /> },
      ]} />
    </section>
  );
}

function Why({ run, gate }: { run: string; gate: GateLine }) {
  return (
    <>
      {gate.reason}
      {gate.near && !gate.reason && " the interval holds the threshold"}
      {gate.value !== null && gate.coverage < 1 && <span class="soft"> {percent(gate.coverage, 0)} of the cases were scored.</span>}
      {gate.note && <span class="soft"> {gate.note}</span>}
      {gate.cases.length > 0 && <div><CaseLinks run={run} ids={gate.cases} /></div>}
    </>
  );
}
