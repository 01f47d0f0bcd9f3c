// The data of the viewer: what the server sends, what a bundle holds, what one file carries. Names are those of Python.
//
// A number that is not known is null. Texts are data of strangers: they are shown as text, never as markup.

export const API_VERSION = 1;

/** Which of the three ways the page was opened; stands in <meta name="agentunit-source">. */
export type SourceKind = "live" | "bundle" | "file";

/** "position-repeat" of a record in its run, both counted from 0: the name of one case in addresses. */
export type CaseKey = string;

export type Verdict = "pass" | "fail" | "errors" | "cannot tell";
export type Direction = "higher" | "lower" | "none";
export type ScoreStatus = "ok" | "informational" | "not_applicable" | "error";

/** What became of one record: "pass", "fail", "error" (the agent failed), "aside" (known failure, or the simulated user
 * failed), null where it has no check. A gate on a mean speaks of the run, never of a record. */
export type CaseVerdict = "pass" | "fail" | "error" | "aside" | null;

// ---------------------------------------------------------------- the whole

export interface Index {
  api: number;
  agentunit_version: string;
  source: SourceKind;
  /** Where the runs are, for people. */
  address: string;
  /** Whether personal data is masked in everything below; live servers mask unless asked (?personal=1). */
  masked: boolean;
  /** Whether this source can show personal data on request: live only. */
  can_unmask: boolean;
  /** Whether labels go into the store; where false they are kept in the browser and downloaded. */
  can_label: boolean;
  /** The name to label under, where one is known. */
  rater: string;
  /** The run to open first; null: the list of runs. */
  run: string | null;
  /** The pair to open first, where a comparison was asked for. */
  compare: ComparePair | null;
  /** Pairs that can be compared; null: any two. */
  comparisons: ComparePair[] | null;
  /** Static sources only. */
  layout?: BundleLayout;
}

export interface ComparePair {
  baseline: string;
  candidate: string;
}

// ---------------------------------------------------------------- runs

export interface RunsPage {
  runs: RunLine[];
  n_runs: number;
}

export interface RunLine {
  id: string;
  name: string;
  label: string;
  created_at: number;
  finished_at: number | null;
  status: "running" | "finished" | "interrupted" | "stopped" | string;
  /** Being recorded now. */
  live: boolean;
  n_planned: number | null;
  n_done: number;
  /** How many cases and repeats, as "60 cases × 3 repeats"; empty where that is not known. */
  size: string;
  n_failed: number;
  tags: Record<string, string>;
  commit: string | null;
  commit_dirty: boolean;
  agent_version: string | null;
  /** Not known yet (still being added up): ask again. */
  pending: boolean;
  verdict: Verdict | null;
  headline: string;
  /** No decision was kept with the run: it was decided for this page. */
  decided_now: boolean;
  /** The few metrics a list shows. */
  metrics: KeyMetric[];
  cost_usd: number | null;
}

export interface KeyMetric {
  metric: string;
  backend: string;
  unit: string;
  direction: Direction;
  mean: number | null;
  low: number | null;
  high: number | null;
  /** Means of this metric in earlier runs of the same name, oldest first, this run last; at most 20. */
  history: (number | null)[];
}

export interface TrendsPage {
  /** The name the runs share. */
  name: string;
  trends: Trend[];
}

export interface Trend {
  metric: string;
  backend: string;
  unit: string;
  direction: Direction;
  points: TrendPoint[];
  /** Where a run that changes nothing falls 95 times of 100: the mean of the earlier runs, widened by their own noise. */
  band: { center: number; low: number; high: number } | null;
}

export interface TrendPoint {
  run: string;
  label: string;
  created_at: number;
  mean: number | null;
  low: number | null;
  high: number | null;
  n: number;
  verdict: Verdict | null;
  commit: string | null;
}

// ---------------------------------------------------------------- one run

export interface RunPage {
  line: RunLine;
  /** Facts for people: [name, text]. */
  facts: [string, string][];
  n_cases: number;
  n_records: number;
  n_failed: number;
  n_repeats: number;
  /** How to go on with an unfinished run. */
  resume: string | null;
  /** True while the figures are being added up: everything below is empty then, the table of cases works already. */
  pending: boolean;
  decision: Decision | null;
  /** What is wrong, the gravest first and doubts last; at most five, none of a live run. */
  findings: RunFinding[];
  n_more_findings: number;
  gates: GateLine[];
  metrics: MetricCard[];
  /** Every metric as a column of the table of cases. */
  columns: Column[];
  unscored: UnscoredLine[];
  amounts: Amount[];
  slices: SliceTable[];
  /** Fields of cases that slices can be made by (slices are made on request: Source.slices). */
  slice_fields: string[];
  known_failures: { case_id: string; state: string; until: string; reason: string }[];
  /** Lines about the judge: what it took, how it varies, the panel. */
  judge: string[];
  /** Notes under the table of metrics. */
  notes: string[];
}

export interface Decision {
  verdict: Verdict | null;
  headline: string;
  /** What statistics add to the headline. */
  line: string;
  /** How many cases are fine, wrong, flaky or doubtful, where the headline does not say so. */
  counts: string;
  /** No decision was kept with the run: it was decided for this page. */
  decided_now: boolean;
  /** What the headline leaves out, but for cases and gates, which are listed with why. */
  reasons: { kind: string; text: string; cases: string[] }[];
  /** The cases that are not fine, by what they are called. n: how many, null where only the first are kept. */
  groups: { word: string; n: number | null; cases: CaseFinding[] }[];
  /** What other commands decided about the run later, the newest first. */
  beside: { made_by: string; made_at: number; against: string; verdict: Verdict | null; headline: string }[];
  exit_code: number;
  n_errors: number;
  max_errors: number;
}

/** A case that is not fine. */
export interface CaseFinding {
  /** "broken", "newly failing", "newly flaky", "lost", "still failing", "wrong", "flaky", "doubtful". */
  word: string;
  case_id: string;
  /** How often its check failed, now and before. */
  tries: string;
  why: string;
}

/** One thing that is wrong with a run: cases with the same cause. */
export interface RunFinding {
  /** As CaseFinding, or "wrong, allowed" (by a gate), "fact" (no check was made), "doubt" (only a model finds fault). */
  word: string;
  /** What is wrong, and in how many cases of how many. */
  what: string;
  /** What the first case shows; may be empty. */
  evidence: string;
  /** The command that shows the first case; empty where no command finds it. */
  command: string;
  n_cases: number;
  n_of: number;
  /** The first of them. */
  cases: string[];
  /** Which repeat of the first case is the example, from 0; null: it has one. */
  repeat: number | null;
}

export interface GateLine {
  expression: string;
  verdict: string; // "pass" | "fail" | "error" | "cannot tell"
  word: string;
  reason: string;
  metric: string;
  aggregate: string;
  operator: string;
  threshold: number;
  value: number | null;
  low: number | null;
  high: number | null;
  near: boolean;
  coverage: number;
  note: string | null;
  cases: string[];
}

export interface MetricCard {
  metric: string;
  backend: string;
  version: string;
  status: ScoreStatus;
  unit: string;
  direction: Direction;
  range: [number | null, number | null];
  family: string;
  summary: string;
  n_records: number;
  n_scored: number;
  /** The value as text, as tables of the terminal show it. */
  shown: string;
  mean: number | null;
  low: number | null;
  high: number | null;
  /** How the interval was made. */
  interval: string | null;
  mean_of: string;
  minimum: number | null;
  p50: number | null;
  p95: number | null;
  maximum: number | null;
  total: number | null;
  share_from_half: number | null;
  /** Of degrees: the share of scores on the bad side of their threshold, and the lowest and highest of these. */
  share_low: number | null;
  cut: [number, number] | null;
  pass_all: number | null;
  pass_any: number | null;
  n_repeats: number;
  within_case_sd: number | null;
  between_cases_sd: number | null;
  amount: { unit: string; mean: number; low: number | null; high: number | null; p95: number; total: number } | null;
  labeled: LabeledRate | null;
  /** Thresholds of gates on its mean or values. */
  thresholds: { operator: string; threshold: number; aggregate: string; word: string }[];
  /** Counts of values in equal steps; null where there are none. */
  distribution: { low: number; high: number; counts: number[]; n: number } | null;
  /** Short ("AUC 0.82") and at length: what the score is worth, and by what that is known. */
  trust: string;
  trust_at_length: string;
  worst_cases: string[];
  n_below_best: number;
}

export interface LabeledRate {
  rate: number | null;
  low: number | null;
  high: number | null;
  n_labels: number;
  n_cases: number;
  raters: string[];
  n_disagreed: number;
  alpha: number | null;
  method: string;
  reason: string | null;
  shown: string;
}

export interface Column {
  /** Name in sort, filter and columns=: the metric. */
  name: string;
  metric: string;
  unit: string;
  direction: Direction;
  /** What a mean of its degrees is of; empty where values are counted: half of them is low then. */
  mean_of: string;
  low: number | null;
  high: number | null;
  status: ScoreStatus;
  summary: string;
  /** Among the columns that are shown unless chosen. */
  shown: boolean;
}

export interface UnscoredLine {
  metric: string;
  status: ScoreStatus;
  reason: string;
  n_cases: number;
  n_records: number;
  first_cases: string[];
}

export interface Amount {
  /** "cost", "tokens", "time", "energy", … */
  name: string;
  metric: string;
  unit: string;
  total: number | null;
  mean: number | null;
  p95: number | null;
  n_scored: number;
  n_records: number;
  /** Total and mean as text. */
  shown: string;
}

export interface SliceTable {
  by: string;
  note: string;
  rows: SliceRow[];
}

export interface SliceRow {
  metric: string;
  backend: string;
  status: ScoreStatus;
  unit: string;
  direction: Direction;
  slice: string;
  n_cases: number;
  n_scored: number;
  mean: number | null;
  low: number | null;
  high: number | null;
  rest_mean: number | null;
  /** How far from the rest, in standard deviations. */
  difference: number | null;
  too_small: boolean;
}

// ---------------------------------------------------------------- the table of cases

export interface CasesQuery {
  offset: number;
  limit: number; // at most 500
  /** "position" (default), "case", "time", "verdict", or a column's name. Rows without a value come last either way. */
  sort?: string;
  desc?: boolean;
  /** A filter expression, see viewer.md. */
  filter?: string;
  /** Words that id, question, answer or error must hold, case-insensitive. */
  search?: string;
  /** Repeats of a case as one row: values are means, the verdict is that of pass^k. */
  fold?: boolean;
}

export interface CasesPage {
  offset: number;
  /** Rows that match. */
  total: number;
  /** Rows there are without filter and search. */
  n_all: number;
  /** Records that the search has looked at; below n_records: it goes on, ask again. */
  searched: number;
  n_records: number;
  rows: CaseRow[];
}

export interface CaseRow {
  key: CaseKey;
  case_id: string;
  repeat: number; // from 0
  /** The beginning of the question, one line. */
  query: string;
  /** The beginning of the answer (or error), one line. */
  answer: string;
  verdict: CaseVerdict;
  failed: boolean;
  elapsed_s: number | null;
  /** In the order of RunPage.columns. */
  values: (number | null)[];
  /** One letter a column: o ok, i informational, n not applicable, e error, "-" no score. */
  statuses: string;
  /** The threshold that a score names itself, by column; null: the middle of its scale. */
  cuts: (number | null)[];
  n_labels: number;
  /** Where repeats are folded: how many, and how many of them passed. */
  repeats: { n: number; n_passed: number | null } | null;
}

/** The same for all records at once, column by column: shards of a bundle. Entry i of each list is one record. */
export interface CaseColumns {
  /** Number of the first record. */
  first: number;
  position: number[];
  repeat: number[];
  case_id: string[];
  query: string[];
  answer: string[];
  /** One letter a record: p pass, f fail, e error, a aside, "-" not known. */
  verdict: string;
  /** What each record's case is called ("fine", or a word of CaseFinding); empty where that was not kept with the run. */
  state: string[];
  failed: number[]; // 0 or 1
  elapsed_s: (number | null)[];
  /** By column, in the order of RunPage.columns. */
  values: (number | null)[][];
  statuses: string[];
  /** By column; empty where no score names a threshold. */
  cuts: (number | null)[][];
  n_labels: number[];
}

/** A filter expression that cannot be read: status 400 with this body. */
export interface Problem {
  error: string;
  /** Place in the expression, from 0. */
  at?: number;
}

// ---------------------------------------------------------------- one case

export interface CaseDetail {
  key: CaseKey;
  run: string;
  case_id: string;
  position: number;
  repeat: number; // from 0
  n_repeats: number;
  /** Keys of all planned repeats of the case. */
  repeats: CaseKey[];
  /** Keys of its tries again, which confirm failing checks and are counted nowhere. */
  again: CaseKey[];
  /** What was decided about the case when the run was made; null where it is fine. */
  finding: CaseFinding | null;
  /** Its checks in all of its tries, those that fail first; none of a single try that passes. */
  checks: CaseCheck[];
  verdict: CaseVerdict;
  failed: boolean;
  elapsed_s: number | null;
  /** False where the run is a score table, which has scores and no records. */
  recorded: boolean;
  query: string | null;
  answer: string | null;
  expected: string[];
  /** The two texts cut where they differ: [text, shared]; empty where there is nothing to compare. */
  answer_parts: [string, boolean][];
  expected_parts: [string, boolean][];
  /** Passages the answer should rest on. */
  context: string[];
  /** What scorers doubt in the answer. */
  marks: AnswerMark[];
  failure: string | null;
  error: string | null;
  user_failure: string | null;
  attempts: number | null;
  earlier_failures: string[];
  printed: Record<string, string>;
  state: unknown;
  case_metadata: Record<string, unknown>;
  trace_metadata: Record<string, unknown>;
  tools: unknown[];
  turns: Turn[];
  agents: AgentRow[];
  network: Network | null;
  lanes: Lanes | null;
  scores: ScoreDetail[];
  labels: Label[];
  n_events: number;
  /** The first events (at most 200, now 100); the others by Source.events. */
  events: TraceEvent[];
  /** Media of case and outcome; those of events are in the events. */
  media: Media[];
  /** Digest of the case and its answer: what a label is about. */
  subject: string;
}

/** One check of a case. */
export interface CaseCheck {
  check: string;
  tries: CheckTry[];
}

export interface CheckTry {
  /** null: it has no page (tries again of a bundle). */
  key: CaseKey | null;
  /** From 1, of those that were planned and of those that were made again. */
  number: number;
  again: boolean;
  passed: boolean;
  /** Why it failed, in one sentence. */
  why: string;
}

/** A stretch of the answer. start and end count UTF-16 units of CaseDetail.answer. */
export interface AnswerMark {
  start: number;
  end: number;
  /** "unsupported": a sentence nothing supports; "doubtful": words within it. */
  kind: "unsupported" | "doubtful";
  metric: string;
  probability: number | null;
  /** The sentence as the scorer read it. */
  claim: string;
  reason: string | null;
  /** Passages that bear on it, the closest first. index: place in CaseDetail.context, where it is one of them. */
  evidence: { text: string; index: number | null; source: string | null }[];
  /** Why the score behind it is informational; null where it is not. */
  informational: string | null;
}

export interface Turn {
  number: number;
  query: string;
  answer: string | null;
  expected: string[];
  tool_calls: ToolCall[];
}

export interface ToolCall {
  name: string;
  arguments: unknown;
  result: unknown;
  error: string | null;
  status: string | null;
  /** null: the trace does not say. */
  ok: boolean | null;
  agent: string | null;
}

/** One thing that happened, in order of time. Fields that say nothing are left out. */
export interface TraceEvent {
  /** Number in the transcript, from 0. */
  n: number;
  /** "message", "tool_call", "llm_call", "retrieval", "handoff", "interaction kinds", "conflict", or any other. */
  kind: string;
  /** Seconds since the first thing whose time is known. */
  at_s?: number;
  duration_s?: number;
  failed?: boolean;
  agent?: string;
  to?: string[];
  /** "user", "assistant", "system", "tool", … of a message. */
  role?: string;
  /** What was said, of a message. */
  text?: string;
  turn?: number;
  tool?: ToolCall;
  /** Documents of a retrieval. */
  documents?: unknown[];
  /** One line about anything else. */
  label?: string;
  /** What the event holds beyond the fields above. */
  payload?: Record<string, unknown>;
  media?: Media[];
  /** A text was cut here: its true length in characters. Source.event gives it whole. */
  cut?: number;
}

export interface EventsPage {
  offset: number;
  n_events: number;
  events: TraceEvent[];
}

/** All events in columns: for the waterfall, the lanes and the heights of a virtual list. */
export interface Outline {
  n_events: number;
  kinds: string[];
  kind: number[];
  at_s: (number | null)[];
  duration_s: (number | null)[];
  /** Numbers of the events that failed. */
  failed: number[];
  agents: string[];
  /** Number in agents, -1: none. */
  agent: number[];
  /** About how many characters an event shows. */
  size: number[];
  /** The name of the tool or the role, by number in names; -1: none. */
  names: string[];
  name: number[];
}

export interface Media {
  /** Number within the case. */
  n: number;
  kind: "image" | "audio" | "video";
  type: string;
  n_bytes: number;
  /** Where it stood: "outcome.images[0]". */
  place: string;
  /** Why it cannot be shown (a link to elsewhere, an SVG, a broken file); null: Source.media gives an address. */
  refused: string | null;
  /** A foreign address, shown as text and never fetched. */
  address: string | null;
}

export interface ScoreDetail {
  metric: string;
  backend: string;
  version: string;
  value: number | null;
  status: ScoreStatus;
  unit: string;
  direction: Direction;
  reason: string | null;
  elapsed_s: number;
  /** Whether the check passes; null where the score is none. */
  passed: boolean | null;
  /** On which side of the threshold that it names itself the value is, in words. */
  held: string | null;
  detail: Record<string, unknown>;
  judge_calls: Record<string, unknown>[];
  trust: string;
}

export interface AgentRow {
  agent: string;
  messages: number;
  words: number;
  tool_calls: number;
  tokens: number | null;
  failures: number;
  outcomes: number;
  received: number;
  centrality: number | null;
  share: number | null;
}

export interface Network {
  agents: string[];
  links: { sender: string; receiver: string; messages: number; handoffs: number; failed: number }[];
  bottlenecks: string[];
  sent: Record<string, number>;
}

export interface Lanes {
  agents: string[];
  marks: LaneMark[];
  n_nameless: number;
}

export interface LaneMark {
  agent: string;
  kind: "message" | "call" | "model" | "handoff" | string;
  label: string;
  step: number | null;
  to: string[];
  at_s: number | null;
  failed: boolean | null;
}

// ---------------------------------------------------------------- comparing

export interface ComparePage {
  baseline: RunLine;
  candidate: RunLine;
  /** Being worked out: ask again. */
  pending: boolean;
  verdict: Verdict | null;
  /** What was decided, in one sentence. */
  headline: string;
  /** What statistics add to it. */
  line: string;
  /** What is wrong with the candidate, as RunPage.findings. */
  findings: RunFinding[];
  n_more_findings: number;
  note: string | null;
  n_paired: number;
  n_only_baseline: number;
  n_only_candidate: number;
  /** How many cases of each kind: "broken", "newly flaky", "newly failing", "lost", "still failing", "flaky", "fixed", "worse",
   * "better", "changed", "other answer", "unchanged". */
  n_by_kind: Record<string, number>;
  /** Which metrics count, and why these; empty where all that are shown do. */
  tested: string;
  metrics: MetricDifference[];
  /** Up to 200 of each kind, the greatest change first. */
  cases: CaseDifference[];
  tools: { name: string; change: string; baseline: string | null; candidate: string | null }[];
  slices: SliceTable[];
  /** Further lines: how many cases are in both, which metrics count and why, what a judge chose pair by pair. */
  notes: string[];
}

export interface MetricDifference {
  label: string;
  metric: string;
  backend: string | null;
  unit: string;
  direction: Direction;
  verdict: string; // "regression" | "no worse" | "no loss shown" | "better" | "no change" | "cannot tell" | "not compared" | "shown only"
  /** What the data can tell. */
  reason: string;
  gated: boolean;
  note: string | null;
  n_pairs: number;
  baseline_mean: number | null;
  candidate_mean: number | null;
  difference: number | null;
  low: number | null;
  high: number | null;
  shown: string;
  p_worse: number | null;
  p_adjusted: number | null;
  margin: number | null;
  smallest_detectable: number | null;
  cases_needed: number | null;
}

export interface CaseDifference {
  case_id: string;
  kind: string;
  /** How often the check that it is listed for failed, now and before; empty where that is not what changed. */
  tries: string;
  /** Why that check fails now. */
  why: string;
  /** null where a run has no such record any more. */
  baseline_key: CaseKey | null;
  candidate_key: CaseKey | null;
  scores: { metric: string; baseline: number; candidate: number; unit: string }[];
  same_answer: boolean | null;
  baseline: { text: string | null; error: string | null } | null;
  candidate: { text: string | null; error: string | null } | null;
}

// ---------------------------------------------------------------- labels

export interface Label {
  id: string;
  metric: string;
  case_id: string;
  key: CaseKey;
  /** null: the rater could not say (or it is a note alone). */
  value: number | null;
  rater: string;
  made_at: number;
  note: string;
  source: string;
}

export interface LabelsPage {
  /** Metrics one can label for, the suggested one first. */
  metrics: { metric: string; backend: string; question: string; graded: boolean; n_labels: number; summary: string }[];
  raters: string[];
  labels: Label[];
  /** Answers on which raters disagree. */
  disagreements: { metric: string; case_id: string; key: CaseKey; said: { rater: string; value: number; note: string }[] }[];
}

/** The question that is asked now. Its score is not in it: raters must not see it before they answered. */
export interface LabelTask {
  metric: string;
  backend: string;
  rater: string;
  question: string;
  graded: boolean;
  n_given: number;
  /** What all labels show by now. */
  n_labels: number;
  n_cases: number;
  rate: number | null;
  low: number | null;
  high: number | null;
  /** About so many more labels give an interval as narrow as wanted; null: not known. */
  n_more: number | null;
  standing: string;
  /** What is asked; null: none is left. */
  asked: { key: CaseKey; case_id: string; given: Label | null } | null;
  /** What was just answered, with the score that was hidden until then. */
  answered: { key: CaseKey; case_id: string; value: number | null; score: number | null; backend: string } | null;
}

export interface LabelAnswer {
  metric: string;
  rater: string;
  key: CaseKey;
  /** On the metric's scale, 1 is yes to the question; null: cannot say. */
  value: number | null;
  note: string;
}

/** The body that takes the rater's last label back. */
export interface LabelUndo {
  metric: string;
  rater: string;
}

/** The body of a note on a case. */
export interface CaseNote {
  key: CaseKey;
  rater: string;
  note: string;
}

/** Static sources: the order in which cases are asked about, by metric. */
export interface LabelQueue {
  metric: string;
  backend: string;
  question: string;
  graded: boolean;
  direction: Direction;
  /** Numbers of records (in the order of CaseColumns). */
  queue: number[];
}

// ---------------------------------------------------------------- catalog

export interface Catalog {
  metrics: CatalogEntry[];
}

export interface CatalogEntry {
  name: string;
  family: string;
  summary: string;
  direction: Direction;
  unit: string;
  range: [number | null, number | null];
  inputs: string[];
  backend: string;
  extra: string | null;
  question: string;
  /** By backend: what a score is worth, at length. */
  trust: Record<string, string>;
  informational: string[];
  parameters: Record<string, unknown>;
  version: string;
  /** Whether a value of 1.0 is a pass, and any other a fail. */
  check: boolean;
}

// ---------------------------------------------------------------- live

export interface Pulse {
  /** Changes whenever anything that the page shows may have changed. */
  stamp: string;
  live: boolean;
  n_done: number;
  n_planned: number | null;
}

// ---------------------------------------------------------------- sources

/** Everything the pages ask for. Errors are thrown as ViewerError with a sentence for people. */
export interface Source {
  readonly kind: SourceKind;
  index(): Promise<Index>;
  runs(offset: number, limit: number): Promise<RunsPage>;
  trends(name: string): Promise<TrendsPage>;
  run(run: string): Promise<RunPage>;
  slices(run: string, by: string): Promise<SliceTable>;
  cases(run: string, query: CasesQuery): Promise<CasesPage>;
  /** Keys of the records of a case id. */
  keys(run: string, caseId: string): Promise<CaseKey[]>;
  case(run: string, key: CaseKey): Promise<CaseDetail>;
  events(run: string, key: CaseKey, offset: number, limit: number): Promise<EventsPage>;
  /** One event whole, where `cut` says that a text was shortened. */
  event(run: string, key: CaseKey, n: number): Promise<TraceEvent>;
  /** Numbers of the events that hold a text, at most 1,000. */
  findEvents(run: string, key: CaseKey, text: string): Promise<number[]>;
  outline(run: string, key: CaseKey): Promise<Outline>;
  /** The record as it is kept (masked); static sources: the data of the case as the bundle has it. */
  raw(run: string, key: CaseKey): Promise<unknown>;
  /** An address for <img>, <audio> or <video>: of our own route, or a blob: URL. */
  media(run: string, key: CaseKey, media: Media): Promise<string>;
  compare(baseline: string, candidate: string): Promise<ComparePage>;
  labels(run: string): Promise<LabelsPage>;
  labelTask(run: string, metric: string, rater: string): Promise<LabelTask>;
  giveLabel(run: string, answer: LabelAnswer): Promise<LabelTask>;
  /** Take back the rater's last answer and ask about its case again. */
  undoLabel(run: string, metric: string, rater: string): Promise<LabelTask>;
  /** A note on a case, by anyone, about no metric. */
  addNote(run: string, key: CaseKey, rater: string, note: string): Promise<Label>;
  catalog(): Promise<Catalog>;
  pulse(run: string | null): Promise<Pulse>;
  /** Whether personal data is shown; only where Index.can_unmask. Everything fetched before is forgotten. */
  showPersonal(shown: boolean): void;
}

// ---------------------------------------------------------------- static sources

/** The files of a bundle, below its folder. Each is gzipped JSON, whatever the host makes of it: look at the first two
 * bytes (1f 8b) and decompress with DecompressionStream("gzip"), else it is JSON already. In one file the same bytes
 * stand in base64 in <script type="application/octet-stream" data-path="…">. */
export interface BundleLayout {
  runs: BundledRun[]; // in the order of RunsPage
}

/** Cases of a shard: what most of them share stands once. A case is { ...common, ...row }, its scores are
 * { ...scores[metric], ...own }; repeats that are left out are the key alone, a subject that is left out is not known. */
export interface PackedCases {
  common: Record<string, unknown>;
  scores: Record<string, Record<string, unknown>>;
  rows: Record<string, unknown>[]; // scores: [metric, own][]
}

export interface BundledRun {
  id: string;
  /** "data/runs/0/": file names below are behind it. run.json.gz: RunPage; labels.json.gz: LabelsPage;
   * queues.json.gz: LabelQueue[]. */
  folder: string;
  n_records: number;
  /** columns-K.json.gz: CaseColumns; the number of the first record of each. */
  columns: number[];
  /** cases-K.json.gz: PackedCases (events: the first 100); the number of the first record of each. */
  cases: number[];
  /** By key, of cases with many events: events-KEY-K.json.gz holds TraceEvent[], beginning at these numbers;
   * outline-KEY.json.gz: Outline. */
  events: Record<CaseKey, number[]>;
  /** By key: media-KEY-N.bin, not gzipped. */
  media: Record<CaseKey, number[]>;
}
// Further files: data/index.json.gz (Index), data/runs.json.gz (RunsPage), data/trends.json.gz (TrendsPage[]),
// data/catalog.json.gz (Catalog), data/compare-A-B.json.gz (ComparePage; A, B: numbers in BundleLayout.runs).
