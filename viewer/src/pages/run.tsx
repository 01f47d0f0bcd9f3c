// One run: the verdict and what is wrong, then its cases that are not fine, metrics, amounts, slices, what was not scored.
import { go, href } from "../address";
import { Verdict } from "../components/badges";
import { CaseLinks } from "../components/case_link";
import { Findings, Sentence } from "../components/findings";
import { RunHeader, useRun } from "../components/run_header";
import { Shown, Waiting } from "../components/states";
import { ago, counted, date } from "../figures";
import { useKeys } from "../keys";
import type { PageProps } from "../pages";
import type { Decision, RunPage } from "../types";
import { CasesNotFine } from "./run_cases";
import { KnownFailures, Unscored } from "./run_failures";
import { Amounts, Metrics } from "./run_metrics";
import { Gates } from "./run_gates";
import { Slices } from "./run_slices";

export function RunView({ params }: PageProps) {
  const run = params.run ?? "";
  const loaded = useRun(run);
  useKeys("Run", [
    { key: "g c", does: "go to the cases of this run", act: () => go(href(["run", run, "cases"])) },
    { key: "g l", does: "go to labeling", act: () => go(href(["run", run, "label"])) },
  ]);
  return (
    <Shown of={loaded} what="the run">
      {(page) => (
        <>
          <RunHeader line={page.line} tab="overview" />
          {page.pending ? <><Facts page={page} /><Waiting what="Adding up the figures; the table of cases works already" /></> : <Sections page={page} />}
        </>
      )}
    </Shown>
  );
}

function Sections({ page }: { page: RunPage }) {
  const run = page.line.id;
  return (
    <>
      {page.decision && <VerdictSection run={run} decision={page.decision} resume={page.resume} />}
      <Findings run={run} findings={page.findings} nMore={page.n_more_findings} />
      <Facts page={page} />
      {page.decision && <CasesNotFine run={run} decision={page.decision} isExplained={page.findings.length > 0} />}
      <Gates run={run} gates={page.gates} />
      <KnownFailures run={run} known={page.known_failures} />
      <Metrics page={page} />
      <Amounts amounts={page.amounts} />
      <Slices page={page} />
      <Unscored run={run} lines={page.unscored} />
      {page.judge.length > 0 && (
        <section aria-labelledby="judge">
          <h2 id="judge">Judge</h2>
          <ul class="lines">{page.judge.map((line) => <li key={line}>{line}</li>)}</ul>
        </section>
      )}
    </>
  );
}

function Facts({ page }: { page: RunPage }) {
  return (
    <dl class="facts small">
      <div><dt>size</dt><dd>{page.line.size}</dd></div>
      {page.n_failed > 0 && <div><dt>agent failed</dt><dd class="bad-text">{counted(page.n_failed, "time")}</dd></div>}
      {page.facts.map(([name, text]) => <div key={name}><dt>{name}</dt><dd>{text}</dd></div>)}
    </dl>
  );
}

function VerdictSection({ run, decision, resume }: { run: string; decision: Decision; resume: string | null }) {
  return (
    <Sentence label="Verdict" verdict={decision.verdict} headline={decision.headline} line={decision.line}>
      {decision.counts && <p class="soft small">{decision.counts}</p>}
      {decision.reasons.length > 0 && (
        <ul class="lines">
          {decision.reasons.map((reason, at) => (
            <li key={at}>{reason.text} <CaseLinks run={run} ids={reason.cases} /></li>
          ))}
        </ul>
      )}
      {decision.beside.map((other, at) => (
        <p key={at} class="small beside">
          <span class="soft"><b>{other.made_by}</b>{other.against && ` against ${other.against}`}, <time title={date(other.made_at)}>{ago(other.made_at)}</time>:</span>{" "}
          <Verdict word={other.verdict} /> {other.headline}
        </p>
      ))}
      {resume && <p class="soft small">Go on with it: <code>{resume}</code></p>}
    </Sentence>
  );
}
