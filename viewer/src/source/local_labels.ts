// Labels made without a server: kept in this browser, and downloaded as files that 'agentunit label --labels' takes.
import { recall, remember } from "../theme";
import type { CaseKey, Label, LabelAnswer, LabelQueue, LabelTask, LabelsPage } from "../types";
import type { CaseTable } from "./case_table";
import { ViewerError } from "./errors";

interface KeptLabel extends Label {
  /** 1-based, as files of labels count. */
  repeat: number;
  /** Whether a high value of the metric is bad: files say how good an answer is. */
  isLowerBetter: boolean;
}

const keyOf = (run: string) => `agentunit-labels-${run}`;

function keptOf(run: string): KeptLabel[] {
  try {
    const kept: unknown = JSON.parse(recall(keyOf(run)) ?? "[]");
    return Array.isArray(kept) ? (kept as KeptLabel[]) : [];
  } catch {
    return [];
  }
}

/** What was labeled in this browser, one file a metric: JSON lines that `agentunit label RUN --labels FILE` takes. */
export function labelFiles(run: string): { name: string; metric: string; text: string }[] {
  const byMetric = new Map<string, KeptLabel[]>();
  for (const label of keptOf(run)) {
    if (label.metric === "") continue;
    byMetric.set(label.metric, [...(byMetric.get(label.metric) ?? []), label]);
  }
  return [...byMetric].map(([metric, labels]) => ({
    name: `labels-${metric}-${run}.jsonl`.replace(/[^\w.-]+/g, "_"),
    metric,
    text: labels.map((label) => `${JSON.stringify({
      id: label.case_id,
      repeat: label.repeat,
      label: label.value === null ? null : label.isLowerBetter ? 1 - label.value : label.value,
      rater: label.rater,
      note: label.note,
    })}\n`).join(""),
  }));
}

export class LocalLabels {
  private kept: KeptLabel[];

  constructor(
    private readonly run: string,
    private readonly bundled: LabelsPage,
    private readonly queues: LabelQueue[],
    private readonly table: CaseTable,
  ) {
    this.kept = keptOf(run);
  }

  page(): LabelsPage {
    const labels = [...this.bundled.labels, ...this.kept];
    return {
      ...this.bundled,
      metrics: this.bundled.metrics.map((each) => ({
        ...each,
        n_labels: each.n_labels + this.kept.filter((label) => label.metric === each.metric).length,
      })),
      raters: [...new Set(labels.map((label) => label.rater))].sort(),
      labels,
      disagreements: disagreementsAmong(labels),
    };
  }

  task(metric: string, rater: string, answered: LabelTask["answered"] = null): LabelTask {
    const queue = this.queueOf(metric);
    const mine = this.kept.filter((label) => label.metric === metric && label.rater === rater);
    const done = new Set(mine.map((label) => label.key));
    const all = this.page().labels.filter((label) => label.metric === metric && label.value !== null);
    let asked: LabelTask["asked"] = null;
    for (const number of queue.queue) {
      const named = this.table.named(number);
      if (named && !done.has(named.key)) {
        asked = { ...named, given: null };
        break;
      }
    }
    return {
      metric,
      backend: queue.backend,
      rater,
      question: queue.question,
      graded: queue.graded,
      n_given: mine.length,
      n_labels: new Set(all.map((label) => label.key)).size,
      n_cases: queue.queue.length,
      rate: null,
      low: null,
      high: null,
      n_more: null,
      standing: "Labels are kept in this browser until you download them.",
      asked,
      answered,
    };
  }

  give({ metric, rater, key, value, note }: LabelAnswer): LabelTask {
    this.kept = this.kept.filter((label) => label.metric !== metric || label.rater !== rater || label.key !== key);
    const label = this.add(metric, key, rater, value, note);
    return this.task(metric, rater, { key, case_id: label.case_id, value, score: null, backend: this.queueOf(metric).backend });
  }

  undo(metric: string, rater: string): LabelTask {
    const last = this.kept.findLastIndex((label) => label.metric === metric && label.rater === rater);
    const taken = this.kept[last];
    this.kept = this.kept.filter((_, at) => at !== last);
    this.write();
    const task = this.task(metric, rater);
    return taken ? { ...task, asked: { key: taken.key, case_id: taken.case_id, given: taken } } : task;
  }

  note(key: CaseKey, rater: string, note: string): Label {
    return this.add("", key, rater, null, note);
  }

  private add(metric: string, key: CaseKey, rater: string, value: number | null, note: string): KeptLabel {
    const [position = -1, repeat = 0] = key.split("-").map(Number);
    const named = this.table.named(this.table.numberOf(position, repeat));
    if (!named) throw new ViewerError(`The run has no case '${key}'.`);
    const label: KeptLabel = {
      id: `local-${Date.now()}-${this.kept.length}`,
      metric,
      case_id: named.case_id,
      key,
      value,
      rater,
      made_at: Date.now() / 1000,
      note,
      source: "this browser",
      repeat: repeat + 1,
      isLowerBetter: metric !== "" && this.queueOf(metric).direction === "lower",
    };
    this.kept = [...this.kept, label];
    this.write();
    return label;
  }

  private write(): void {
    remember(keyOf(this.run), JSON.stringify(this.kept));
  }

  private queueOf(metric: string): LabelQueue {
    const found = this.queues.find((queue) => queue.metric === metric);
    if (!found) throw new ViewerError(`This run has nothing to label for '${metric}'.`);
    return found;
  }
}

function disagreementsAmong(labels: readonly Label[]): LabelsPage["disagreements"] {
  const groups = new Map<string, Label[]>();
  for (const label of labels) {
    if (label.value === null || label.metric === "") continue;
    const name = `${label.metric}\n${label.key}`;
    groups.set(name, [...(groups.get(name) ?? []), label]);
  }
  return [...groups.values()]
    .filter((group) => new Set(group.map((label) => (label.value ?? 0) >= 0.5)).size > 1)
    .map((group) => ({
      metric: group[0]?.metric ?? "",
      case_id: group[0]?.case_id ?? "",
      key: group[0]?.key ?? "",
      said: group.map(({ rater, value, note }) => ({ rater, value: value ?? 0, note })),
    }));
}
