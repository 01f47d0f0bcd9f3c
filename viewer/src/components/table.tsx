// A table of a few dozen rows; on a phone each row is a small list. Long lists use useScaledRows or useLongList.
import type { ComponentChildren, Key } from "preact";

export interface Column<Row> {
  name: string;
  head: ComponentChildren;
  cell: (row: Row, at: number) => ComponentChildren;
  /** Numbers are set flush right with figures of one width. */
  isNumber?: boolean;
  /** Left out at phone width. */
  isWide?: boolean;
  /** At phone width beside its neighbors, without its name. */
  isInline?: boolean;
}

export function Table<Row>({ caption, columns, rows, keyOf, rowClass }: {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf?: (row: Row, at: number) => Key;
  rowClass?: (row: Row) => string;
}) {
  const classOf = (column: Column<Row>) => `${column.isNumber ? "num" : ""} ${column.isWide ? "wide" : ""} ${column.isInline ? "inline" : ""}`.trim();
  return (
    <div class="table-frame" tabIndex={0} role="group" aria-label={`${caption}, table`}>
      <table>
        <caption class="sr">{caption}</caption>
        <thead>
          <tr>{columns.map((column) => <th key={column.name} scope="col" class={classOf(column)}>{column.head}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={keyOf ? keyOf(row, at) : at} class={rowClass?.(row)}>
              {columns.map((column) => <td key={column.name} class={classOf(column)} data-head={typeof column.head === "string" ? column.head : ""}>{column.cell(row, at)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
