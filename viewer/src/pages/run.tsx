// One run: the verdict and why, its metrics, amounts, slices, what was not scored, and failures and low scores by cause.
import { go, href } from "../address";
import { Verdict } from "../components/badges";
import { CaseLinks } from "../components/case_link";
import { RunHeader, useRun } from "../components/run_header";
import { Shown, Waiting } from "../components/states";
import { ago, counted, date } from "../figures";
import { useKeys } from "../keys";
import type { PageProps } from "../pages";
import type { Decision, RunPage } from "../types";
import { Causes, KnownFailures, Unscored } from "./run_failures";
import { Findings } from "./run_findings";
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
          <Facts page={page} />
          {page.pending ? <Waiting what="Adding up the figures; the table of cases works already" /> : <Sections page={page} />}
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
      {page.decision && <Findings run={run} decision={page.decision} />}
      <Gates run={run} gates={page.gates} />
      <Causes run={run} title="Failures by cause" name="failures" groups={page.failures} tone="bad" icon="!" />
      <Causes run={run} title="Low scores by cause" name="causes" groups={page.causes} tone="soft" />
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
  const tone = { pass: "good", fail: "bad", errors: "bad", "cannot tell": "warn" }[decision.verdict ?? "pass"];
  return (
    <section class={`card verdict-card ${decision.verdict ? tone : ""}`} aria-label="Verdict">
      <p class="headline">{decision.headline}</p>
      {decision.line && <p class="soft">{decision.line}</p>}
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
    </section>
  );
}
