// What a rater reads of a case: the question, the answer, and what the metric holds it against. No score is on it.
import type { ComponentChildren } from "preact";
import { Turns } from "../case/turns";
import { shortData } from "../components/data";
import { Markdown } from "../components/markdown";
import { useLoad } from "../loading";
import { source } from "../source";
import type { CaseDetail } from "../types";

export function AskedCase({ detail, metric, children }: { detail: CaseDetail; metric: string; children: ComponentChildren }) {
  const catalog = useLoad("catalog", () => source.catalog());
  const inputs = catalog.data?.metrics.find((each) => each.name === metric)?.inputs.join(" ") ?? null;
  const readsExpected = metric === "task_success" || (inputs !== null && inputs.includes("expected_output"));
  const evidence = readsExpected ? [] : evidenceOf(detail, metric);
  const scored = detail.scores.find((each) => each.metric === metric)?.detail.criteria;
  const criteria = Array.isArray(scored) ? scored.filter((each): each is string => typeof each === "string") : [];
  return (
    <>
      {detail.turns.length > 0 ? <Turns turns={detail.turns} />
        : <section class="card"><h2>Question</h2>{detail.query ? <Markdown text={detail.query} /> : <p class="soft">none</p>}</section>}
      <section class="card"><h2>Answer</h2>{detail.answer === null ? <p class="soft">none</p> : children}</section>
      {readsExpected && detail.expected.length > 0 && (
        <section class="card"><h2>Expected</h2>{detail.expected.map((text, at) => <div key={at} class="answer-text" dir="auto">{at > 0 && <span class="soft">or </span>}{text}</div>)}</section>
      )}
      {criteria.length > 0 && <section class="card"><h2>Criteria</h2><ul>{criteria.map((text, at) => <li key={at}>{text}</li>)}</ul></section>}
      {evidence.map(([title, text], at) => (
        <section key={at} class="card evidence-card"><h2>Evidence: <span class="mono">{title}</span></h2><div class="answer-text" dir="auto">{text}</div></section>
      ))}
    </>
  );
}

/** What the agent saw: as the scorer had it, else the context and what tools gave back. */
function evidenceOf(detail: CaseDetail, metric: string): [string, string][] {
  const scored = detail.scores.find((each) => each.metric === metric)?.detail ?? {};
  const texts = textsOf(scored.references);
  const sources = textsOf(scored.sources);
  if (texts.length > 0) return texts.map((text, at) => [sources[at] ?? `passage ${at + 1}`, text]);
  const context = detail.context.map((text, at): [string, string] => [`context[${at}]`, text]);
  const calls = detail.events.flatMap(({ tool }): [string, string][] => (tool
    ? [[`tool "${tool.name}"`, tool.error ? `error: ${tool.error}` : shortData(tool.result ?? tool.status ?? "?", 2_000)]] : []));
  return [...context, ...calls];
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
}
