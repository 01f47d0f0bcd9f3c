// A bundle on a static host, or the same files within one page.
import type {
  BundledRun, BundleLayout, CaseColumns, CaseDetail, CaseKey, CasesPage, CasesQuery, Catalog, ComparePage, EventsPage, Index, Label,
  LabelAnswer, LabelQueue, LabelTask, LabelsPage, Media, Outline, PackedCases, Pulse, RunPage, RunsPage, SliceTable, Source, TraceEvent, TrendsPage,
} from "../types";
import { CaseTable } from "./case_table";
import { ViewerError } from "./errors";
import { jsonOf, Kept, type ReadBytes } from "./files";
import { LocalLabels } from "./local_labels";
import { unpackedCase } from "./packed_cases";

const LIVE_ONLY = "Only the live server (agentunit view) can do that.";
const MOST_FOUND = 1_000;

export class StaticSource implements Source {
  private readonly small = new Kept<unknown>(64);
  private readonly shards = new Kept<unknown>(12);
  private readonly tables = new Kept<CaseTable>(4);
  private readonly pictures = new Kept<string>(64);

  constructor(readonly kind: "bundle" | "file", private readonly read: ReadBytes) {}

  index = () => this.json<Index>("data/index.json.gz");
  catalog = () => this.json<Catalog>("data/catalog.json.gz");

  async runs(offset: number, limit: number): Promise<RunsPage> {
    const page = await this.json<RunsPage>("data/runs.json.gz");
    return { ...page, runs: page.runs.slice(offset, offset + limit) };
  }

  async trends(name: string): Promise<TrendsPage> {
    const pages = await this.json<TrendsPage[]>("data/trends.json.gz");
    return pages.find((page) => page.name === name) ?? { name, trends: [] };
  }

  async run(run: string): Promise<RunPage> {
    return this.json<RunPage>(`${(await this.bundled(run)).folder}run.json.gz`);
  }

  async slices(run: string, by: string): Promise<SliceTable> {
    const made = (await this.run(run)).slices.find((table) => table.by === by);
    if (!made) throw new ViewerError(`This ${this.kind} has no slices by ${by}. ${LIVE_ONLY}`);
    return made;
  }

  async cases(run: string, query: CasesQuery): Promise<CasesPage> {
    return (await this.table(run)).page(query);
  }

  async keys(run: string, caseId: string): Promise<CaseKey[]> {
    return (await this.table(run)).keysOf(caseId);
  }

  async case(run: string, key: CaseKey): Promise<CaseDetail> {
    const bundled = await this.bundled(run);
    const [position = -1, repeat = 0] = key.split("-").map(Number);
    const number = (await this.table(run)).numberOf(position, repeat);
    const shard = shardOf(bundled.cases, number);
    if (number < 0 || shard < 0) throw new ViewerError(`The run has no case '${key}'.`, { status: 404 });
    const packed = await this.shard<PackedCases>(`${bundled.folder}cases-${shard}.json.gz`);
    const found = unpackedCase(packed, number - (bundled.cases[shard] ?? 0));
    if (!found) throw new ViewerError(`The run has no case '${key}'.`, { status: 404 });
    return found;
  }

  async events(run: string, key: CaseKey, offset: number, limit: number): Promise<EventsPage> {
    const starts = (await this.bundled(run)).events[key];
    if (!starts) {
      const { events, n_events } = await this.case(run, key);
      return { offset, n_events, events: events.slice(offset, offset + limit) };
    }
    const { n_events } = await this.case(run, key);
    const events: TraceEvent[] = [];
    for (let at = Math.max(0, shardOf(starts, offset)); at < starts.length && events.length < limit; at += 1) {
      const first = starts[at] ?? 0;
      if (first >= offset + limit) break;
      const part = await this.eventShard(run, key, at);
      events.push(...part.slice(Math.max(0, offset - first), Math.max(0, offset + limit - first)));
    }
    return { offset, n_events, events };
  }

  async event(run: string, key: CaseKey, n: number): Promise<TraceEvent> {
    const { events } = await this.events(run, key, n, 1);
    if (!events[0]) throw new ViewerError(`The case has no event ${n}.`, { status: 404 });
    return events[0];
  }

  async findEvents(run: string, key: CaseKey, text: string): Promise<number[]> {
    const wanted = text.toLowerCase();
    const starts = (await this.bundled(run)).events[key];
    const parts = starts ? starts.map((_, at) => () => this.eventShard(run, key, at)) : [async () => (await this.case(run, key)).events];
    const found: number[] = [];
    for (const part of parts) {
      for (const event of await part()) {
        if (found.length < MOST_FOUND && JSON.stringify(event).toLowerCase().includes(wanted)) found.push(event.n);
      }
    }
    return found;
  }

  async outline(run: string, key: CaseKey): Promise<Outline> {
    const bundled = await this.bundled(run);
    if (bundled.events[key]) return this.shard<Outline>(`${bundled.folder}outline-${key}.json.gz`);
    return outlineOf((await this.case(run, key)).events);
  }

  raw = (run: string, key: CaseKey): Promise<unknown> => this.case(run, key);

  async media(run: string, key: CaseKey, media: Media): Promise<string> {
    const bundled = await this.bundled(run);
    if (!bundled.media[key]?.includes(media.n)) throw new ViewerError(`This ${this.kind} does not hold the ${media.kind}.`);
    const path = `${bundled.folder}media-${key}-${media.n}.bin`;
    return this.pictures.get(path, async () => URL.createObjectURL(new Blob([await this.read(path)], { type: media.type })));
  }

  async compare(baseline: string, candidate: string): Promise<ComparePage> {
    const { runs } = await this.layout();
    const [a, b] = [baseline, candidate].map((id) => runs.findIndex((run) => run.id === id));
    const { comparisons } = await this.index();
    if (!comparisons?.some((pair) => pair.baseline === baseline && pair.candidate === candidate)) {
      throw new ViewerError(`This ${this.kind} has no comparison of these two runs. ${LIVE_ONLY}`);
    }
    return this.json<ComparePage>(`data/compare-${a}-${b}.json.gz`);
  }

  labels = async (run: string): Promise<LabelsPage> => (await this.local(run)).page();
  labelTask = async (run: string, metric: string, rater: string): Promise<LabelTask> => (await this.local(run)).task(metric, rater);
  giveLabel = async (run: string, answer: LabelAnswer): Promise<LabelTask> => (await this.local(run)).give(answer);
  undoLabel = async (run: string, metric: string, rater: string): Promise<LabelTask> => (await this.local(run)).undo(metric, rater);
  addNote = async (run: string, key: CaseKey, rater: string, note: string): Promise<Label> =>
    (await this.local(run)).note(key, rater, note);

  pulse = async (): Promise<Pulse> => ({ stamp: "", live: false, n_done: 0, n_planned: null });

  showPersonal(shown: boolean): void {
    if (shown) throw new ViewerError(LIVE_ONLY);
  }

  private json<T>(path: string): Promise<T> {
    return this.small.get(path, async () => jsonOf(await this.read(path))) as Promise<T>;
  }

  private shard<T>(path: string): Promise<T> {
    return this.shards.get(path, async () => jsonOf(await this.read(path))) as Promise<T>;
  }

  private async eventShard(run: string, key: CaseKey, at: number): Promise<TraceEvent[]> {
    return this.shard<TraceEvent[]>(`${(await this.bundled(run)).folder}events-${key}-${at}.json.gz`);
  }

  private async layout(): Promise<BundleLayout> {
    const { layout } = await this.index();
    if (!layout) throw new ViewerError("The index of this bundle does not say where its runs are.");
    return layout;
  }

  private async bundled(run: string): Promise<BundledRun> {
    const found = (await this.layout()).runs.find((each) => each.id === run);
    if (!found) throw new ViewerError(`This ${this.kind} does not hold the run '${run}'.`, { status: 404 });
    return found;
  }

  private table(run: string): Promise<CaseTable> {
    return this.tables.get(run, async () => {
      const [{ folder, columns }, page] = await Promise.all([this.bundled(run), this.run(run)]);
      const read = (at: number) => this.read(`${folder}columns-${at}.json.gz`).then((bytes) => jsonOf<CaseColumns>(bytes));
      return CaseTable.of(await Promise.all(columns.map((_, at) => read(at))), page.columns);
    });
  }

  private async local(run: string): Promise<LocalLabels> {
    const { folder } = await this.bundled(run);
    const [page, queues, table] = await Promise.all([
      this.json<LabelsPage>(`${folder}labels.json.gz`), this.json<LabelQueue[]>(`${folder}queues.json.gz`), this.table(run),
    ]);
    return new LocalLabels(run, page, queues, table);
  }
}

/** The shard that holds a number, by the first number of each; -1 where all begin later. */
function shardOf(firsts: readonly number[], number: number): number {
  let low = 0;
  let high = firsts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((firsts[middle] ?? 0) <= number) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function outlineOf(events: TraceEvent[]): Outline {
  const placeIn = (names: string[], name: string | undefined) => {
    if (name === undefined) return -1;
    const at = names.indexOf(name);
    return at >= 0 ? at : names.push(name) - 1;
  };
  const [kinds, agents, names]: [string[], string[], string[]] = [[], [], []];
  return {
    n_events: events.length,
    kinds,
    kind: events.map((event) => placeIn(kinds, event.kind)),
    at_s: events.map((event) => event.at_s ?? null),
    duration_s: events.map((event) => event.duration_s ?? null),
    failed: events.filter((event) => event.failed).map((event) => event.n),
    agents,
    agent: events.map((event) => placeIn(agents, event.agent)),
    size: events.map((event) => event.cut ?? JSON.stringify(event).length),
    names,
    name: events.map((event) => placeIn(names, event.tool?.name ?? event.role)),
  };
}
