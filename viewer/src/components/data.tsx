// Data of any shape so that a person can read it: names and values, lists, small tables; JSON only where asked for.
import { useState } from "preact/hooks";
import { count } from "../figures";

const SHORT_TEXT = 60;
const LONG_TEXT = 600;
const FIRST_ENTRIES = 20;
const MORE_ENTRIES = 200;
const DEEPEST = 8;
const MOST_COLUMNS = 6;

type Data = Record<string, unknown>;

export function isData(value: unknown): value is Data {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A number without digits that nobody reads. */
function shownNumber(value: number): string {
  return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4)));
}

/** "n_context_sentences" as people write it. */
export function wordsOf(name: string): string {
  return name.replace(/_(s|ms|usd|kwh|kg)$/, " ($1)").replace(/_/g, " ");
}

/** A value in one line, for the head of something that can be opened. */
export function shortData(value: unknown, most = 120): string {
  const text = typeof value === "string" ? value : inline(value, most);
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

function inline(value: unknown, most: number, depth = 0): string {
  if (value === undefined || value === null) return "–";
  if (depth > DEEPEST) return "…";
  if (!isData(value)) {
    if (!Array.isArray(value)) return String(value);
    const shown = value.slice(0, 8).map((each) => inline(each, most, depth + 1)).join(", ");
    return `[${shown}${value.length > 8 ? ", …" : ""}]`;
  }
  let text = "";
  for (const [name, each] of Object.entries(value)) {
    text += `${text ? ", " : ""}${name}: ${inline(each, most, depth + 1)}`;
    if (text.length > most) break;
  }
  return text;
}

/** Whether a value is shown in the line of its name. */
function isShort(value: unknown): boolean {
  if (typeof value === "string") return value.length <= SHORT_TEXT && !value.includes("\n");
  if (Array.isArray(value)) return value.length === 0 || (value.length <= 6 && value.every((each) => !isNested(each) && isShort(each)) && inline(value, 200).length <= 80);
  return !isData(value) || Object.keys(value).length === 0;
}

function isNested(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

export function DataView({ value, depth = 0 }: { value: unknown; depth?: number }) {
  if (value === null || value === undefined) return <span class="soft">none</span>;
  if (typeof value === "string") return <LongText text={value} />;
  if (typeof value === "number") return <span class="data-number">{shownNumber(value)}</span>;
  if (typeof value === "boolean") return <span>{value ? "yes" : "no"}</span>;
  if (depth > DEEPEST) return <LongText text={asJson(value)} isCode />;
  if (Array.isArray(value)) return <ListView list={value} depth={depth} />;
  return <FieldsView fields={value as Data} depth={depth} />;
}

function FieldsView({ fields, depth }: { fields: Data; depth: number }) {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  const [shown, setShown] = useState(FIRST_ENTRIES * 2);
  if (entries.length === 0) return <span class="soft">empty</span>;
  return (
    <dl class="data-fields">
      {entries.slice(0, shown).map(([name, value]) => (
        <div key={name} class={isShort(value) ? "short" : ""}>
          <dt>{wordsOf(name)}</dt>
          <dd><DataView value={value} depth={depth + 1} /></dd>
        </div>
      ))}
      <More left={entries.length - shown} onMore={() => setShown(shown + MORE_ENTRIES)} />
    </dl>
  );
}

function ListView({ list, depth }: { list: readonly unknown[]; depth: number }) {
  const [shown, setShown] = useState(FIRST_ENTRIES);
  if (list.length === 0) return <span class="soft">none</span>;
  if (list.length <= 6 && list.every((each) => !isNested(each) && isShort(each)) && inline(list, 200).length <= 80) {
    return <span>{list.map((each) => (typeof each === "number" ? shownNumber(each) : inline(each, 80))).join(", ")}</span>;
  }
  const more = <More left={list.length - shown} onMore={() => setShown(shown + MORE_ENTRIES)} />;
  const columns = columnsOf(list);
  if (columns) {
    return (
      <div class="table-frame data-table" tabIndex={0} role="region" aria-label="table">
        <table>
          <thead><tr>{columns.map((name) => <th key={name} scope="col">{wordsOf(name)}</th>)}</tr></thead>
          <tbody>
            {list.slice(0, shown).map((row, at) => (
              <tr key={at}>{columns.map((name) => <td key={name}><DataView value={(row as Data)[name]} depth={depth + 1} /></td>)}</tr>
            ))}
          </tbody>
        </table>
        {more}
      </div>
    );
  }
  return (
    <>
      <ol class="data-list">{list.slice(0, shown).map((each, at) => <li key={at}><DataView value={each} depth={depth + 1} /></li>)}</ol>
      {more}
    </>
  );
}

/** The names of a table's columns, where all entries are alike and narrow enough. */
function columnsOf(list: readonly unknown[]): string[] | null {
  if (list.length < 2 || !list.slice(0, 50).every(isData)) return null;
  const names = new Set<string>();
  for (const row of list.slice(0, 50)) {
    for (const [name, value] of Object.entries(row as Data)) {
      if (isNested(value) && !isShort(value)) return null;
      names.add(name);
    }
  }
  return names.size > 0 && names.size <= MOST_COLUMNS ? [...names] : null;
}

function More({ left, onMore }: { left: number; onMore: () => void }) {
  if (left <= 0) return null;
  return <button type="button" class="link more" onClick={onMore}>{count(Math.min(left, MORE_ENTRIES))} more of {count(left)}</button>;
}

/** A text that opens on request where it is long. */
export function LongText({ text, isCode = false }: { text: string; isCode?: boolean }) {
  const [isOpen, setOpen] = useState(false);
  if (text === "") return <span class="soft">empty</span>;
  const isLong = text.length > LONG_TEXT;
  const shown = isLong && !isOpen ? `${text.slice(0, LONG_TEXT)}…` : text;
  return (
    <span class={`data-text ${isCode || text.includes("\n") ? "block" : ""}`} dir="auto">
      {shown}
      {isLong && (
        <button type="button" class="link more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "show less" : `show all ${count(text.length)} characters`}
        </button>
      )}
    </span>
  );
}

export function asJson(value: unknown): string {
  try {
    return JSON.stringify(value, null, 2) ?? "null";
  } catch {
    return "(nested too deeply to be shown as JSON)";
  }
}

/** Readable data with its JSON one click away. */
export function Data({ value, label }: { value: unknown; label: string }) {
  const [isJson, setJson] = useState(false);
  const canSwitch = isNested(value);
  return (
    <div class="data">
      {canSwitch && (
        <button type="button" class="link data-switch" aria-pressed={isJson} onClick={() => setJson(!isJson)}
          aria-label={`${label}: ${isJson ? "show readable" : "show as JSON"}`}>
          {isJson ? "readable" : "JSON"}
        </button>
      )}
      {isJson ? <pre class="plain" tabIndex={0}>{asJson(value)}</pre> : <DataView value={value} />}
    </div>
  );
}
