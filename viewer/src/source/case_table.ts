// The table of cases of a static source: sorted, filtered, searched and folded in the browser, up to some 10⁵ cases.
import type { CaseColumns, CaseRow, CasesPage, CasesQuery, CaseVerdict, Column } from "../types";
import { ViewerError } from "./errors";
import { parseFilter, type Value } from "./expression";
import { Kept } from "./files";
import { Patience, sortPatiently } from "./patience";

const LETTERS: Record<string, CaseVerdict> = { p: "pass", f: "fail", e: "error", a: "aside" };
/** The worst first, as the server sorts them. */
const VERDICT_ORDER = "ef-ap";

/** Records, or cases with their repeats folded, column by column. Unknown numbers are NaN. */
interface Rows {
  n: number;
  position: number[];
  /** From 1; of a folded case the mean. */
  repeat: number[];
  /** The repeat that stands for the row, from 0. */
  first_repeat: number[];
  id: string[];
  query: string[];
  answer: string[];
  /** The answers of all repeats, where they are folded. */
  searched: string[] | null;
  verdict: string[];
  /** Empty where it is not known. */
  state: string[];
  failed: boolean[];
  elapsed: Float64Array;
  values: Float64Array[];
  /** By column, one letter a row. */
  statuses: string[];
  /** By column, the thresholds that scores name themselves; empty where none does. */
  cuts: Float64Array[];
  n_labels: number[];
  repeats: ({ n: number; n_passed: number | null } | null)[];
}

export class CaseTable {
  private folded: Promise<Rows> | null = null;
  private readonly orders = new Kept<Uint32Array>(8);

  private constructor(private readonly records: Rows, private readonly columns: Column[]) {}

  static async of(parts: CaseColumns[], columns: Column[]): Promise<CaseTable> {
    return new CaseTable(await joined(parts, columns.length), columns);
  }

  /** The number of a record by its position and repeat; -1 where there is none. */
  numberOf(position: number, repeat: number): number {
    const { position: positions, first_repeat: repeats, n } = this.records;
    // Records usually stand at their own position: a guess before a search.
    if (positions[position] === position && repeats[position] === repeat) return position;
    for (let at = 0; at < n; at += 1) if (positions[at] === position && repeats[at] === repeat) return at;
    return -1;
  }

  keysOf(caseId: string): string[] {
    const found: string[] = [];
    this.records.id.forEach((id, at) => {
      if (id === caseId) found.push(keyOf(this.records, at));
    });
    return found;
  }

  /** Key and case id of a record by its number. */
  named(number: number): { key: string; case_id: string } | null {
    if (number >= this.records.n) return null;
    return { key: keyOf(this.records, number), case_id: this.records.id[number] ?? "" };
  }

  async page(query: CasesQuery): Promise<CasesPage> {
    const isFolded = !!query.fold && this.records.first_repeat.some((repeat) => repeat > 0);
    if (isFolded) this.folded ??= fold(this.records);
    const rows = isFolded && this.folded ? await this.folded : this.records;
    const { sort = "", desc = false, filter = "", search = "" } = query;
    const order = await this.orders.get(JSON.stringify([sort, desc, filter, search, isFolded]), () =>
      this.ordered(rows, sort, desc, filter, search));
    const shown = [...order.subarray(query.offset, query.offset + query.limit)];
    return {
      offset: query.offset,
      total: order.length,
      n_all: rows.n,
      searched: this.records.n,
      n_records: this.records.n,
      rows: shown.map((at) => rowOf(rows, at)),
    };
  }

  private async ordered(rows: Rows, sort: string, desc: boolean, filter: string, search: string): Promise<Uint32Array> {
    const test = filter.trim() ? parseFilter(filter, this.columns.map((column) => column.name)) : null;
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const patience = new Patience();
    const found = new Uint32Array(rows.n);
    let n = 0;
    let current = 0;
    const read = this.reader(rows, () => current);
    for (; current < rows.n; current += 1) {
      if ((current & 255) === 0 && patience.isUp) await patience.rest();
      if (test && !test(read)) continue;
      if (words.length > 0 && !holds(rows, current, words)) continue;
      found[n] = current;
      n += 1;
    }
    const kept = found.slice(0, n);
    const order = this.orderBy(rows, sort, desc);
    return order ? sortPatiently(kept, order) : desc ? kept.reverse() : kept;
  }

  private reader(rows: Rows, at: () => number): (name: string) => Value {
    const places = new Map(this.columns.map((column, place) => [column.name, place]));
    return (name) => {
      const row = at();
      const place = places.get(name);
      if (place !== undefined) return known(rows.values[place]?.[row]);
      switch (name) {
        case "time": return known(rows.elapsed[row]);
        case "repeat": return rows.repeat[row] ?? null;
        case "labels": return rows.n_labels[row] ?? 0;
        case "verdict": return LETTERS[rows.verdict[row] ?? "-"] ?? "unknown";
        case "id": return rows.id[row] ?? null;
        case "state":
          if (rows.state.length === 0) throw new ViewerError("The states of cases were not kept with this run.");
          return rows.state[row] ?? null;
        case "question": return rows.query[row] ?? null;
        default: return (rows.searched ?? rows.answer)[row] ?? null;
      }
    };
  }

  /** Null: the order of the dataset. What has no value comes last either way. */
  private orderBy(rows: Rows, sort: string, desc: boolean): ((a: number, b: number) => number) | null {
    const sign = desc ? -1 : 1;
    if (sort === "" || sort === "position") return null;
    if (sort === "case" || sort === "id") {
      return (a, b) => sign * compareTexts(rows.id[a] ?? "", rows.id[b] ?? "");
    }
    if (sort === "verdict") {
      const rank = rows.verdict.map((letter) => VERDICT_ORDER.indexOf(letter));
      return (a, b) => sign * ((rank[a] ?? 0) - (rank[b] ?? 0));
    }
    const place = this.columns.findIndex((column) => column.name === sort);
    const values = rows.values[place] ?? { time: rows.elapsed, repeat: rows.repeat, labels: rows.n_labels }[sort];
    if (!values) throw new ViewerError(`There is no column '${sort}' to sort by.`);
    return (a, b) => {
      const x = values[a] ?? NaN;
      const y = values[b] ?? NaN;
      if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
      return sign * (x - y);
    };
  }
}

async function joined(parts: CaseColumns[], n_columns: number): Promise<Rows> {
  const patience = new Patience();
  const numbers = (lists: (number | null)[][]) => Float64Array.from(lists.flat(), (value) => value ?? NaN);
  const position = parts.flatMap((part) => part.position);
  const values: Float64Array[] = [];
  for (let at = 0; at < n_columns; at += 1) {
    values.push(numbers(parts.map((part) => part.values[at] ?? [])));
    if (patience.isUp) await patience.rest();
  }
  return {
    n: position.length,
    position,
    repeat: parts.flatMap((part) => part.repeat.map((repeat) => repeat + 1)),
    first_repeat: parts.flatMap((part) => part.repeat),
    id: parts.flatMap((part) => part.case_id),
    query: parts.flatMap((part) => part.query),
    answer: parts.flatMap((part) => part.answer),
    searched: null,
    verdict: parts.flatMap((part) => [...part.verdict]),
    state: parts.flatMap((part) => part.state),
    failed: parts.flatMap((part) => part.failed.map(Boolean)),
    elapsed: numbers(parts.map((part) => part.elapsed_s)),
    values,
    statuses: Array.from({ length: n_columns }, (_, at) => parts.map((part) => part.statuses[at] ?? "-".repeat(part.position.length)).join("")),
    cuts: Array.from({ length: n_columns }, (_, at) => (parts.some((part) => part.cuts[at]?.length)
      ? numbers(parts.map((part) => (part.cuts[at]?.length ? part.cuts[at] : part.position.map(() => null)))) : new Float64Array())),
    n_labels: parts.flatMap((part) => part.n_labels),
    repeats: position.map(() => null),
  };
}

/** One row a case: means of what is known, and pass only where every repeat passed (pass^k). */
async function fold(records: Rows): Promise<Rows> {
  const groups = new Map<number, number[]>();
  records.position.forEach((position, at) => {
    const group = groups.get(position);
    if (group) group.push(at);
    else groups.set(position, [at]);
  });
  const all = [...groups.values()];
  const firsts = all.map((group) => group[0] ?? 0);
  const patience = new Patience();
  const values: Float64Array[] = [];
  for (const column of records.values) {
    values.push(Float64Array.from(all, (group) => meanOf(column, group)));
    if (patience.isUp) await patience.rest();
  }
  const passed = all.map((group) => group.filter((at) => records.verdict[at] === "p").length);
  return {
    n: all.length,
    position: firsts.map((at) => records.position[at] ?? 0),
    repeat: all.map((group) => meanOf(records.repeat, group)),
    first_repeat: firsts.map((at) => records.first_repeat[at] ?? 0),
    id: firsts.map((at) => records.id[at] ?? ""),
    query: firsts.map((at) => records.query[at] ?? ""),
    answer: firsts.map((at) => records.answer[at] ?? ""),
    searched: all.map((group) => group.map((at) => records.answer[at] ?? "").join("\n")),
    verdict: all.map((group) => foldedVerdict(group.map((at) => records.verdict[at] ?? "-"))),
    state: records.state.length === 0 ? [] : firsts.map((at) => records.state[at] ?? ""),
    failed: all.map((group) => group.some((at) => records.failed[at])),
    elapsed: Float64Array.from(all, (group) => meanOf(records.elapsed, group)),
    values,
    statuses: records.statuses.map((letters) => all.map((group) => foldedStatus(letters, group)).join("")),
    cuts: records.cuts.map((column) => (column.length ? Float64Array.from(all, (group) => meanCut(column, group)) : column)),
    n_labels: all.map((group) => group.reduce((sum, at) => sum + (records.n_labels[at] ?? 0), 0)),
    repeats: all.map((group, at) => ({
      n: group.length,
      n_passed: group.every((each) => "pfe".includes(records.verdict[each] ?? "-")) ? (passed[at] ?? 0) : null,
    })),
  };
}

function meanOf(values: ArrayLike<number>, group: number[]): number {
  let sum = 0;
  let n = 0;
  for (const at of group) {
    const value = values[at] ?? NaN;
    if (Number.isNaN(value)) continue;
    sum += value;
    n += 1;
  }
  return n === 0 ? NaN : sum / n;
}

/** Where the mean of repeats is cut: at the mean of their thresholds, as the server does it. */
function meanCut(cuts: ArrayLike<number>, group: number[]): number {
  const named = group.map((at) => cuts[at] ?? NaN);
  return named.every(Number.isNaN) ? NaN : named.reduce((sum, cut) => sum + (Number.isNaN(cut) ? 0.5 : cut), 0) / named.length;
}

function foldedVerdict(letters: string[]): string {
  for (const letter of "ef-a") if (letters.includes(letter)) return letter;
  return "p";
}

/** A case has a value where one repeat has one. */
function foldedStatus(letters: string, group: number[]): string {
  const found = group.map((at) => letters[at] ?? "-");
  return found.find((letter) => letter === "o" || letter === "i") ?? found[0] ?? "-";
}

function rowOf(rows: Rows, at: number): CaseRow {
  return {
    key: keyOf(rows, at),
    case_id: rows.id[at] ?? "",
    repeat: rows.first_repeat[at] ?? 0,
    query: rows.query[at] ?? "",
    answer: rows.answer[at] ?? "",
    verdict: LETTERS[rows.verdict[at] ?? "-"] ?? null,
    failed: rows.failed[at] ?? false,
    elapsed_s: known(rows.elapsed[at]),
    values: rows.values.map((column) => known(column[at])),
    statuses: rows.statuses.map((letters) => letters[at] ?? "-").join(""),
    cuts: rows.cuts.map((column) => known(column[at])),
    n_labels: rows.n_labels[at] ?? 0,
    repeats: rows.repeats[at] ?? null,
  };
}

function keyOf(rows: Rows, at: number): string {
  return `${rows.position[at]}-${rows.first_repeat[at]}`;
}

function known(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function holds(rows: Rows, at: number, words: string[]): boolean {
  const text = `${rows.id[at]}\n${rows.query[at]}\n${(rows.searched ?? rows.answer)[at]}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
