// The rows of the table of cases: only those in view are in the page.
import { useEffect, useImperativeHandle, useMemo, useRef } from "preact/hooks";
import type { Ref } from "preact";
import { setQuery } from "../address";
import { Verdict } from "../components/badges";
import { useScaledRows } from "../components/scaled_rows";
import { counted, DIRECTIONS, duration, quantity } from "../figures";
import { isLow } from "../low";
import { useIsNarrow } from "../narrow";
import type { CaseRow, Column } from "../types";
import type { CasePages } from "./case_pages";

const ROW_PX = 33;
const NARROW_ROW_PX = 62;
const HEAD_PX = 44;

export interface GridHandle {
  show: (row: number) => void;
  rowsInView: number;
}

interface Shown {
  column: Column;
  at: number;
}

export function Grid({ handle, pages, columns, selected, onSelect, onOpen, sort, desc, isFolded, isTight }: {
  handle: Ref<GridHandle>;
  run: string;
  pages: CasePages;
  columns: readonly Shown[];
  selected: number | null;
  onSelect: (at: number) => void;
  onOpen: (at: number) => void;
  sort: string;
  desc: boolean;
  isFolded: boolean;
  /** Beside an open case: without the answer, which stands there. */
  isTight: boolean;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const isNarrow = useIsNarrow();
  const { total, version } = pages.state.value;
  const rows = useScaledRows(scroller, total, isNarrow ? NARROW_ROW_PX : ROW_PX, isNarrow ? 0 : HEAD_PX);
  useImperativeHandle(handle, () => ({ show: (row) => rows.show(row), rowsInView: rows.rowsInView }), [rows]);
  useEffect(() => pages.want(rows.first, rows.end), [pages, rows.first, rows.end, total]);
  useEffect(() => {
    if (selected !== null) rows.show(selected, "center");
  }, [pages, rows.rowsInView > 1]);
  const drawn = Array.from({ length: Math.max(0, rows.end - rows.first) }, (_, at) => rows.first + at);
  const template = `6.2rem 8.5rem minmax(10rem, 1.2fr) ${isTight ? "" : "minmax(10rem, 1.4fr) "}${columns.map(() => "6.9rem").join(" ")} 4.8rem`;
  return (
    <div class={`grid ${isNarrow ? "is-narrow" : ""}`} ref={scroller} tabIndex={0} role="grid" aria-label="Cases" aria-rowcount={total + 1}
      aria-activedescendant={selected === null ? undefined : `row-${selected}`} data-version={version}
      style={{ "--columns": template, "--least": `${(isTight ? 29.5 : 39.5) + 6.9 * columns.length}rem` }}>
      {!isNarrow && <Head columns={columns} sort={sort} desc={desc} isTight={isTight} />}
      <div class="grid-body" role="rowgroup" style={{ height: `${rows.height}px` }}>
        {drawn.map((at) => (
          <div key={at} id={`row-${at}`} role="row" aria-rowindex={at + 2} aria-selected={at === selected} class="grid-row"
            style={{ transform: `translateY(${rows.topOf(at)}px)` }} onClick={() => onSelect(at)} onDblClick={() => onOpen(at)}>
            <Cells row={pages.row(at)} columns={columns} isFolded={isFolded} isNarrow={isNarrow} isTight={isTight} onOpen={() => onOpen(at)} />
          </div>
        ))}
      </div>
    </div>
  );
}

function Head({ columns, sort, desc, isTight }: { columns: readonly Shown[]; sort: string; desc: boolean; isTight: boolean }) {
  const head = (name: string, words: string, isNumber = false, title = "", worstIsHigh = false) => {
    const isSorted = sort === name;
    // The worst first, then the best first, then the order of the dataset.
    const first = worstIsHigh;
    const press = () => {
      if (!isSorted) setQuery({ sort: name, desc: first ? 1 : null, row: null });
      else if (desc === first) setQuery({ desc: first ? null : 1, row: null });
      else setQuery({ sort: null, desc: null, row: null });
    };
    return (
      <div key={name} role="columnheader" class={isNumber ? "num" : ""} aria-sort={isSorted ? (desc ? "descending" : "ascending") : "none"}>
        <button type="button" onClick={press} title={title || `sort by ${words}`}>
          <span class="head-words">{breakable(words)}</span>{isSorted && <span aria-hidden="true">{desc ? " ▾" : " ▴"}</span>}
        </button>
      </div>
    );
  };
  return (
    <div class="grid-row grid-head" role="row" aria-rowindex={1}>
      {head("verdict", "verdict")}
      {head("case", "case")}
      <div role="columnheader">question</div>
      {!isTight && <div role="columnheader">answer</div>}
      {columns.map(({ column }) => head(column.name, `${column.name} ${DIRECTIONS[column.direction].mark}`, true,
        `${column.name}: ${column.summary} (${DIRECTIONS[column.direction].words}). Click: the worst first`, column.direction === "lower"))}
      {head("time", "time", true, "seconds that the agent took", true)}
    </div>
  );
}

interface CellsProps {
  row: CaseRow | null;
  columns: readonly Shown[];
  isFolded: boolean;
  isNarrow: boolean;
  isTight: boolean;
  onOpen: () => void;
}

/** Drawn anew only when the row has changed: while one scrolls, most have not. */
function Cells(props: CellsProps) {
  const latest = useRef(props);
  latest.current = props;
  const names = props.columns.map(({ column }) => column.name).join(",");
  return useMemo(() => <RowCells {...props} onOpen={() => latest.current.onOpen()} />, [props.row, names, props.isFolded, props.isNarrow, props.isTight]);
}

function RowCells({ row, columns, isFolded, isNarrow, isTight, onOpen }: CellsProps) {
  if (!row) return <div role="gridcell" class="loading-row"><span class="skeleton" /></div>;
  if (isNarrow) return <NarrowCells row={row} columns={columns} onOpen={onOpen} />;
  return (
    <>
      <div role="gridcell"><CaseVerdictCell row={row} /></div>
      <div role="gridcell" class="clip">
        <button type="button" class="link" tabIndex={-1} onClick={(event) => { event.stopPropagation(); onOpen(); }} title={row.case_id}>{row.case_id}</button>
        {!isFolded && row.repeat > 0 && <span class="soft small"> #{row.repeat + 1}</span>}
      </div>
      <div role="gridcell" class="clip" title={row.query}>{row.query}</div>
      {!isTight && <div role="gridcell" class={row.failed ? "clip bad-text" : "clip soft"} title={row.answer}>{row.answer}</div>}
      {columns.map(({ column, at }) => <ScoreCell key={column.name} row={row} column={column} at={at} />)}
      <div role="gridcell" class="num soft">{duration(row.elapsed_s)}</div>
    </>
  );
}

/** Two lines a case, for a phone. */
function NarrowCells({ row, columns, onOpen }: { row: CaseRow; columns: readonly Shown[]; onOpen: () => void }) {
  const known = columns.filter(({ at }) => row.values[at] !== null && row.values[at] !== undefined).slice(0, 3);
  return (
    <div role="gridcell" class="narrow-cell" onClick={onOpen}>
      <div class="row"><CaseVerdictCell row={row} /> <span class="clip narrow-query">{row.query || row.case_id}</span></div>
      <div class="soft small clip">
        {row.case_id}{known.map(({ column, at }) => ` · ${column.name} ${quantity(row.values[at], column.unit)}`).join("")}
      </div>
    </div>
  );
}

function CaseVerdictCell({ row }: { row: CaseRow }) {
  return (
    <>
      <Verdict word={row.verdict} />
      {row.repeats && row.repeats.n > 1 && (
        <span class="soft small" title={`${row.repeats.n_passed ?? "an unknown number"} of ${row.repeats.n} repeats passed; pass^${row.repeats.n} needs all`}>
          {" "}{row.repeats.n_passed ?? "?"}/{row.repeats.n}
        </span>
      )}
      {row.n_labels > 0 && <span class="soft small" title={counted(row.n_labels, "label")}> ✎</span>}
    </>
  );
}

/** Long names break behind an underscore. */
function breakable(words: string) {
  return words.split(/(?<=[_[])/).map((part, at) => <span key={at}>{at > 0 && <wbr />}{part}</span>);
}

const STATUS_WORDS: Record<string, string> = { n: "does not apply", e: "the metric failed here", "-": "not scored" };

function ScoreCell({ row, column, at }: { row: CaseRow; column: Column; at: number }) {
  const value = row.values[at] ?? null;
  const status = row.statuses[at] ?? "-";
  if (value === null) {
    return <div role="gridcell" class={status === "e" ? "num bad-text" : "num faint"} title={STATUS_WORDS[status]}>{status === "e" ? "! error" : status === "n" ? "n/a" : "–"}</div>;
  }
  return <div role="gridcell" class={`num ${status === "i" ? "soft" : ""} ${isLow(value, column, row.cuts[at] ?? null) ? "low" : ""}`}>{quantity(value, column.unit)}</div>;
}

