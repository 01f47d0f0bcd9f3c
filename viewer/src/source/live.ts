// The server of 'agentunit view': one request a question.
import type {
  CaseDetail, CaseKey, CasesPage, CasesQuery, Catalog, ComparePage, EventsPage, Index, Label, LabelAnswer, LabelTask, LabelsPage,
  Media, Outline, Problem, Pulse, RunPage, RunsPage, SliceTable, Source, TraceEvent, TrendsPage,
} from "../types";
import { ViewerError } from "./errors";

type Query = Record<string, string | number | boolean | null | undefined>;

export class LiveSource implements Source {
  readonly kind = "live";
  private isPersonal = false;
  private catalogPage: Promise<Catalog> | null = null;

  index = () => this.get<Index>("index");
  runs = (offset: number, limit: number) => this.get<RunsPage>("runs", { offset, limit });
  trends = (name: string) => this.get<TrendsPage>("trends", { name });
  run = (run: string) => this.get<RunPage>(ofRun(run));
  slices = (run: string, by: string) => this.get<SliceTable>(ofRun(run, "slices"), { by });
  cases = (run: string, query: CasesQuery) => this.get<CasesPage>(ofRun(run, "cases"), { ...query });
  keys = (run: string, caseId: string) => this.get<CaseKey[]>(ofRun(run, "keys"), { case: caseId });
  case = (run: string, key: CaseKey) => this.get<CaseDetail>(ofRun(run, "cases", key));
  events = (run: string, key: CaseKey, offset: number, limit: number) =>
    this.get<EventsPage>(ofRun(run, "cases", key, "events"), { offset, limit });
  event = (run: string, key: CaseKey, n: number) => this.get<TraceEvent>(ofRun(run, "cases", key, "events", String(n)));
  findEvents = (run: string, key: CaseKey, text: string) =>
    this.get<number[]>(ofRun(run, "cases", key, "find"), { text });
  outline = (run: string, key: CaseKey) => this.get<Outline>(ofRun(run, "cases", key, "outline"));
  raw = (run: string, key: CaseKey) => this.get<unknown>(ofRun(run, "cases", key, "raw"));
  media = (run: string, key: CaseKey, media: Media) =>
    Promise.resolve(this.address(ofRun(run, "cases", key, "media", String(media.n)), {}));
  compare = (baseline: string, candidate: string) => this.get<ComparePage>("compare", { baseline, candidate });
  labels = (run: string) => this.get<LabelsPage>(ofRun(run, "labels"));
  labelTask = (run: string, metric: string, rater: string) =>
    this.get<LabelTask>(ofRun(run, "label"), { metric, rater });
  giveLabel = (run: string, answer: LabelAnswer) => this.post<LabelTask>(ofRun(run, "label"), answer);
  undoLabel = (run: string, metric: string, rater: string) =>
    this.post<LabelTask>(ofRun(run, "label", "undo"), { metric, rater });
  addNote = (run: string, key: CaseKey, rater: string, note: string) =>
    this.post<Label>(ofRun(run, "note"), { key, rater, note });
  pulse = (run: string | null) => this.get<Pulse>("pulse", { run });

  catalog(): Promise<Catalog> {
    this.catalogPage ??= this.get<Catalog>("catalog");
    return this.catalogPage;
  }

  showPersonal(shown: boolean): void {
    this.isPersonal = shown;
  }

  private address(path: string, query: Query): string {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
    const parts = given.map(([name, value]) => [name, value === true ? "1" : String(value)]);
    if (this.isPersonal) parts.push(["personal", "1"]);
    return `api/${path}${parts.length > 0 ? `?${new URLSearchParams(parts as [string, string][])}` : ""}`;
  }

  private get<T>(path: string, query: Query = {}): Promise<T> {
    return answerOf<T>(fetch(this.address(path, query), { cache: "no-cache" }));
  }

  private post<T>(path: string, body: unknown): Promise<T> {
    const headers = { "Content-Type": "application/json", "X-AgentUnit": "1" };
    return answerOf<T>(fetch(this.address(path, {}), { method: "POST", headers, body: JSON.stringify(body) }));
  }
}

function ofRun(run: string, ...parts: string[]): string {
  return ["runs", run, ...parts].map(encodeURIComponent).join("/");
}

async function answerOf<T>(request: Promise<Response>): Promise<T> {
  let response: Response;
  try {
    response = await request;
  } catch {
    throw new ViewerError("The server does not answer. Is 'agentunit view' still running?");
  }
  if (response.ok) return (await response.json()) as T;
  const problem = await response.json().catch(() => null) as Problem | null;
  const sentence = problem?.error ?? `The server answered ${response.status} ${response.statusText}.`;
  throw new ViewerError(sentence, { at: problem?.at, status: response.status });
}
