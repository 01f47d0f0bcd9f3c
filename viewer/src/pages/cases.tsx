// The table of cases. Everything one sets (columns, sort, filter, search, row, open case) is in the address.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { go, href, place, setQuery } from "../address";
import { CasePage } from "../case/page";
import { RunHeader, useRun } from "../components/run_header";
import { Empty, Failure, Shown, Waiting } from "../components/states";
import { useKeys } from "../keys";
import type { PageProps } from "../pages";
import { stamp } from "../source";
import { ViewerError } from "../source/errors";
import { parseFilter } from "../source/expression";
import type { Column, RunPage } from "../types";
import { CasePages } from "./case_pages";
import { Grid, type GridHandle } from "./cases_grid";
import { Tools } from "./cases_tools";
import "../styles/cases.css";

export function CasesView({ params }: PageProps) {
  const loaded = useRun(params.run ?? "");
  return <Shown of={loaded} what="the cases">{(page) => <CasesOf page={page} key={page.line.id} />}</Shown>;
}

/** The columns that the address names, or those that are shown unless chosen. */
export function shownColumns(columns: readonly Column[], chosen: string | null): { column: Column; at: number }[] {
  const all = columns.map((column, at) => ({ column, at }));
  if (chosen === null) return all.filter(({ column }) => column.shown);
  const names = chosen.split(",").map(decodeURIComponent);
  return all.filter(({ column }) => names.includes(column.name));
}

function CasesOf({ page }: { page: RunPage }) {
  const run = page.line.id;
  const { query } = place.value;
  const question = {
    sort: query.get("sort") ?? undefined,
    desc: query.get("desc") === "1",
    filter: useReadable(query.get("filter") ?? "", page.columns),
    search: query.get("search") ?? undefined,
    fold: query.get("fold") === "1",
  };
  const pages = useMemo(() => new CasePages(run, question), [run, JSON.stringify(question)]);
  useEffect(() => () => pages.close(), [pages]);
  useStale(pages);
  const open = query.get("open");
  const chosen = shownColumns(page.columns, query.get("columns"));
  // Beside an open case there is little room: what one sorts by comes first.
  const columns = open ? chosen.sort((a, b) => Number(b.column.name === question.sort) - Number(a.column.name === question.sort)) : chosen;
  const state = pages.state.value;
  const grid = useRef<GridHandle>(null);
  const [selected, select] = useSelection(pages);
  const problem = state.error instanceof ViewerError && state.error.at !== undefined ? state.error : problemOf(query.get("filter") ?? "", page.columns);
  // Where no row is shown, none can be opened: those of an earlier filter are still there.
  const total = problem ? 0 : state.total;
  const openRow = (at: number) => {
    const row = at < total ? pages.row(at) : null;
    if (!row) return;
    select(at);
    if (matchMedia("(min-width: 1100px)").matches) setQuery({ open: row.key, row: at }, false);
    else go(href(["run", run, "case", row.key], { ...Object.fromEntries(query), open: null, row: at }));
  };
  const move = (by: number) => {
    const next = Math.max(0, Math.min(total - 1, (selected ?? -1) + by));
    if (total === 0) return;
    select(next);
    grid.current?.show(next);
  };
  useKeys("Cases", [
    { key: "j", does: "next case", act: () => move(1) },
    { key: "k", does: "previous case", act: () => move(-1) },
    { key: "ArrowDown", act: () => move(1) },
    { key: "ArrowUp", act: () => move(-1) },
    { key: "PageDown", does: "a page down", act: () => move(grid.current?.rowsInView ?? 10) },
    { key: "PageUp", does: "a page up", act: () => move(-(grid.current?.rowsInView ?? 10)) },
    { key: "Home", does: "first case", act: () => move(-total) },
    { key: "End", does: "last case", act: () => move(total) },
    { key: "Enter", does: "open the case beside the table", act: () => selected !== null && openRow(selected) },
    { key: "o", does: "open the case on its own page", act: () => { const to = fullPage(run, pages, selected); if (to) go(to); } },
    { key: "f", does: "write a filter", act: () => document.getElementById("filter")?.focus() },
    { key: "Escape", does: "close the case", act: () => setQuery({ open: null }, false) },
    { key: "g o", does: "go to the overview of the run", act: () => go(href(["run", run])) },
  ]);
  // The open case follows the selection.
  const selectedKey = selected === null ? null : (pages.row(selected)?.key ?? null);
  useEffect(() => {
    if (!open || !selectedKey || selectedKey === open) return undefined;
    const timer = setTimeout(() => setQuery({ open: selectedKey, row: selected }), 120);
    return () => clearTimeout(timer);
  }, [selectedKey]);
  return (
    <div class="cases-page fills-window">
      <RunHeader line={page.line} tab="cases" />
      <Tools page={page} state={state} problem={problem} columns={columns} />
      <div class={open ? "cases-split is-open" : "cases-split"}>
        {problem ? <Empty title="The filter cannot be read."><button type="button" class="link" onClick={() => setQuery({ filter: null })}>Clear it</button></Empty>
          : state.error ? <Failure error={state.error} /> : !state.isReady ? <Waiting what="Reading the cases" />
          : total === 0 ? <Nothing state={state} />
          : <Grid handle={grid} run={run} pages={pages} columns={columns} selected={selected} onSelect={select} onOpen={openRow}
              sort={question.sort ?? ""} desc={question.desc} isFolded={question.fold} isTight={open !== null} />}
        {open && (
          <aside class="case-panel" aria-label="Case">
            <div class="row case-panel-bar no-print">
              <button type="button" class="quiet" onClick={() => move(-1)} aria-label="previous case" title="previous case (k)">↑</button>
              <button type="button" class="quiet" onClick={() => move(1)} aria-label="next case" title="next case (j)">↓</button>
              <span class="grow" />
              <a class="small" href={href(["run", run, "case", open], { ...Object.fromEntries(query), open: null })}>own page</a>
              <button type="button" class="quiet" onClick={() => setQuery({ open: null }, false)} aria-label="close the case" title="close (Esc)">✕</button>
            </div>
            <CasePage params={{ run, record: open, panel: "1" }} />
          </aside>
        )}
      </div>
    </div>
  );
}

function Nothing({ state }: { state: CasePages["state"]["value"] }) {
  if (state.searched < state.n_records) return <Waiting what="Searching" />;
  if (state.n_all === 0) return <Empty title="No case has been recorded yet." />;
  return (
    <Empty title="No case matches.">
      <button type="button" class="link" onClick={() => setQuery({ filter: null, search: null })}>Clear search and filter</button>
    </Empty>
  );
}

function fullPage(run: string, pages: CasePages, at: number | null): string | null {
  const row = at === null ? null : pages.row(at);
  return row ? href(["run", run, "case", row.key], { ...Object.fromEntries(place.peek().query), open: null, row: at }) : null;
}

/** What is wrong with a filter; null where it can be read. */
function problemOf(filter: string, columns: readonly Column[]): ViewerError | null {
  if (!filter.trim()) return null;
  try {
    parseFilter(filter, columns.map((column) => column.name));
    return null;
  } catch (error) {
    return error instanceof ViewerError ? error : null;
  }
}

/** The filter, or the last that could be read, whose rows need not be fetched again when one is being corrected. */
function useReadable(filter: string, columns: readonly Column[]): string | undefined {
  const last = useRef("");
  if (problemOf(filter, columns) === null) last.current = filter;
  return last.current || undefined;
}

/** A live run went on: fetch again what is in view. */
function useStale(pages: CasePages): void {
  const current = stamp.value;
  const before = useRef(current);
  useEffect(() => {
    if (before.current !== current) pages.refresh();
    before.current = current;
  }, [current]);
}

/** The selected row; the address follows after a moment, because browsers refuse addresses that change too often. */
function useSelection(pages: CasePages): [number | null, (at: number | null) => void] {
  const stored = place.peek().query.get("row");
  const [selected, setSelected] = useState<number | null>(stored === null ? null : Number(stored));
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const shown = useRef(pages);
  useEffect(() => {
    // Another sort or filter: the row at this place is another case.
    if (shown.current !== pages) setSelected(null);
    shown.current = pages;
  }, [pages]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const select = (at: number | null) => {
    setSelected(at);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ row: at }), 250);
  };
  return [selected, select];
}
