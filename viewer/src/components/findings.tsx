// What every page about a run begins with: its verdict in a sentence, and what is wrong, with evidence.
import type { ComponentChildren } from "preact";
import { count, counted } from "../figures";
import type { RunFinding } from "../types";
import { signOf } from "./badges";
import { CaseLink } from "./case_link";
import { CopyButton } from "./copy_button";

/** The verdict in a sentence, and what statistics add to it. */
export function Sentence({ label, verdict, headline, line, children }: {
  label: string; verdict: string | null; headline: string; line: string; children?: ComponentChildren;
}) {
  const tone = { pass: "good", fail: "bad", errors: "bad", "cannot tell": "warn" }[verdict ?? ""] ?? "";
  return (
    <section class={`card verdict-card ${tone}`} aria-label={label}>
      <p class="headline">{headline}</p>
      {line && <p class="soft">{line}</p>}
      {children}
    </section>
  );
}

/** What is wrong with a run: facts first, then what only a model doubts. */
export function Findings({ run, findings, nMore }: { run: string; findings: RunFinding[]; nMore: number }) {
  const facts = findings.filter((each) => each.word !== "doubt");
  const doubts = findings.filter((each) => each.word === "doubt");
  if (findings.length === 0) return null;
  return (
    <section class="findings" aria-label="What is wrong">
      <FindingList run={run} findings={facts} />
      {doubts.length > 0 && (
        <>
          <h3>{counted(doubts.length, "doubt")}: <span class="soft">a model found fault, no check did</span></h3>
          <FindingList run={run} findings={doubts} />
        </>
      )}
      {nMore > 0 && <p class="soft small">… and {counted(nMore, "more finding")}</p>}
    </section>
  );
}

function FindingList({ run, findings }: { run: string; findings: RunFinding[] }) {
  return (
    <ol class="finding-list">
      {findings.map((finding) => <Finding key={`${finding.word} ${finding.what}`} run={run} finding={finding} />)}
    </ol>
  );
}

function Finding({ run, finding }: { run: string; finding: RunFinding }) {
  const [example = "", ...others] = finding.cases;
  const { tone, icon } = signOf(finding.word);
  const nMore = finding.n_cases - finding.cases.length;
  return (
    <li class="card finding">
      <span class={`badge ${tone}`} aria-hidden="true">{icon}</span>
      <div class="finding-text">
        <p class="finding-what" dir="auto">{finding.what}</p>
        {finding.evidence && <p class="cause" dir="auto">{finding.evidence}</p>}
        <p class="small case-links">
          <span>example <CaseLink run={run} id={example} repeat={finding.repeat} /></span>
          {others.length > 0 && <span class="soft">also</span>}
          {others.map((id) => <CaseLink key={id} run={run} id={id} />)}
          {nMore > 0 && <span class="soft nowrap">and {count(nMore)} more</span>}
        </p>
      </div>
      {finding.command && (
        <div class="command no-print">
          <code>{finding.command}</code>
          <CopyButton text={finding.command} what="the command" />
        </div>
      )}
    </li>
  );
}
