// The rows of a table that was asked for by sort, filter and search: fetched in pieces when they come into view.
import { signal } from "@preact/signals";
import { source } from "../source";
import type { CaseRow, CasesQuery } from "../types";

export type CasesQuestion = Omit<CasesQuery, "offset" | "limit">;

const PIECE = 100;
const MOST_PIECES = 60;
const REST_MS = 30;
const SEARCH_AGAIN_MS = 400;

export interface CasesState {
  total: number;
  n_all: number;
  searched: number;
  n_records: number;
  error: Error | null;
  isReady: boolean;
  /** Changes with every piece that arrives. */
  version: number;
}

export class CasePages {
  readonly state = signal<CasesState>({ total: 0, n_all: 0, searched: 0, n_records: 0, error: null, isReady: false, version: 0 });
  private readonly pieces = new Map<number, CaseRow[]>();
  private readonly asked = new Set<number>();
  private stale = new Set<number>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private again: ReturnType<typeof setTimeout> | undefined;
  private range: [number, number] = [0, 1];
  private isClosed = false;

  constructor(private readonly run: string, private readonly question: CasesQuestion) {
    void this.ask(0);
  }

  row(at: number): CaseRow | null {
    return this.pieces.get(Math.floor(at / PIECE))?.[at % PIECE] ?? null;
  }

  /** These rows are in view now. While one scrolls fast nothing is asked for. */
  want(first: number, end: number): void {
    this.range = [first, end];
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.askMissing(), REST_MS);
  }

  /** What was fetched may be out of date: fetch again what is in view, and keep showing the rest until then. */
  refresh(): void {
    this.stale = new Set(this.pieces.keys());
    this.askMissing();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    clearTimeout(this.again);
  }

  private askMissing(): void {
    const [first, end] = this.range;
    for (let piece = Math.floor(first / PIECE); piece <= Math.floor(Math.max(first, end - 1) / PIECE); piece += 1) {
      if (!this.pieces.has(piece) || this.stale.has(piece)) void this.ask(piece);
    }
  }

  private async ask(piece: number): Promise<void> {
    if (this.asked.has(piece) || this.isClosed) return;
    this.asked.add(piece);
    this.stale.delete(piece);
    try {
      const page = await source.cases(this.run, { ...this.question, offset: piece * PIECE, limit: PIECE });
      if (this.isClosed) return;
      this.keep(piece, page.rows);
      const { total, n_all, searched, n_records } = page;
      this.update({ total, n_all, searched, n_records, error: null, isReady: true });
      if (searched < n_records) this.againLater();
    } catch (error) {
      if (!this.isClosed) this.update({ error: error instanceof Error ? error : new Error(String(error)), isReady: true });
    } finally {
      this.asked.delete(piece);
    }
  }

  private keep(piece: number, rows: CaseRow[]): void {
    this.pieces.delete(piece);
    this.pieces.set(piece, rows);
    const oldest = this.pieces.keys().next().value;
    if (this.pieces.size > MOST_PIECES && oldest !== undefined) this.pieces.delete(oldest);
  }

  private update(changes: Partial<CasesState>): void {
    const before = this.state.peek();
    this.state.value = { ...before, ...changes, version: before.version + 1 };
  }

  /** A search that goes on finds more: what is in view is asked for again. */
  private againLater(): void {
    clearTimeout(this.again);
    this.again = setTimeout(() => this.refresh(), SEARCH_AGAIN_MS);
  }
}
