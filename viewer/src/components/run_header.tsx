// The top of every page about one run: what it is called, its verdict, and its other pages.
import type { ComponentChildren } from "preact";
import { href } from "../address";
import { ago, count, date } from "../figures";
import { source, stamp } from "../source";
import { useLoad, type Loaded } from "../loading";
import type { RunLine, RunPage } from "../types";
import { Verdict } from "./badges";

export const AGAIN_MS = 1_000;

/** The page of a run; asked again until its figures are added up, and whenever a live run went on. */
export function useRun(run: string): Loaded<RunPage> {
  return useLoad(`${run} ${stamp.value}`, (signal) => untilReady(() => source.run(run), signal));
}

/** Ask again while the server says that it is still working; gives up when nobody waits any more. */
export async function untilReady<T extends { pending: boolean }>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (!answer.pending || signal.aborted) return answer;
    await new Promise((resume) => setTimeout(resume, AGAIN_MS));
  }
}

export function RunHeader({ line, tab, children }: { line: RunLine; tab: "overview" | "cases" | "label" | "case"; children?: ComponentChildren }) {
  const link = (name: string, words: string, path: string[]) => (
    <a href={href(["run", line.id, ...path])} aria-current={tab === name ? "page" : undefined}>{words}</a>
  );
  return (
    <header class="run-header">
      <div class="row">
        <h1 class="clip">{line.name}</h1>
        <RunVerdict line={line} />
        <span class="soft small run-when" title={date(line.created_at)}><code>{shortLabel(line)}</code> · {ago(line.created_at)}</span>
        {children}
      </div>
      <nav class="tabs no-print" aria-label="Run">
        {link("overview", "Overview", [])}
        {link("cases", "Cases", ["cases"])}
        {link("label", "Label", ["label"])}
      </nav>
    </header>
  );
}

/** What tells the run from others of its name. */
export function shortLabel({ name, label }: RunLine): string {
  return label.startsWith(name) ? label.slice(name.length).replace(/^[\s(]+|[\s)]+$/g, "") : label;
}

/** The verdict of a run, or how far it has come. */
export function RunVerdict({ line }: { line: RunLine }) {
  const planned = line.n_planned === null ? "" : ` of ${count(line.n_planned)}`;
  if (line.live) {
    return (
      <>
        <Verdict word="running" /> <span class="small soft nowrap">{count(line.n_done)}{planned}</span>
      </>
    );
  }
  if (line.verdict) return <><Verdict word={line.verdict} title={line.headline} />{line.decided_now && <> <DecidedNow /></>}</>;
  if (line.pending) return <span class="soft small">adding up …</span>;
  return line.status === "finished" ? <span class="soft small" title={line.headline}>no verdict</span> : <Verdict word={line.status} />;
}

/** That a verdict is not the one of the day on which the run was made. */
function DecidedNow() {
  return <span class="soft small nowrap" title="No decision was kept with this run: it was decided for this page.">decided now</span>;
}
