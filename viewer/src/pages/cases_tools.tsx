// Search, filter, columns and repeats of the table of cases.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { place, setQuery } from "../address";
import { count, counted } from "../figures";
import { useIsNarrow } from "../narrow";
import type { ViewerError } from "../source/errors";
import type { Column, RunPage } from "../types";
import type { CasesState } from "./case_pages";

const TYPING_MS = 250;

export function Tools({ page, state, problem, columns }: {
  page: RunPage; state: CasesState; problem: ViewerError | null; columns: readonly { column: Column }[];
}) {
  const { query } = place.value;
  const isNarrow = useIsNarrow();
  return (
    <div class="cases-tools no-print" role="search" aria-label="Cases">
      <div class="row">
        <Typed name="search" label="Search cases" placeholder={`Search id, question, answer${isNarrow ? "" : "  /"}`} isSearch />
        <Typed name="filter" label="Filter cases" placeholder={`Filter: ${example(page.columns)}${isNarrow ? "" : "  f"}`} problem={problem} />
        <Quick name="failing" filter="verdict == fail" />
        <Quick name="errors" filter="verdict == error" />
        {hasFlaky(page) && <Quick name="flaky" filter="state == flaky" />}
        {page.n_repeats > 1 && (
          <label class="row check" title={`One row a case: means, and pass only where all ${page.n_repeats} repeats passed`}>
            <input type="checkbox" checked={query.get("fold") === "1"} onChange={(event) => setQuery({ fold: event.currentTarget.checked ? 1 : null, row: null })} />
            fold repeats
          </label>
        )}
        {isNarrow && <SortChoice columns={page.columns} />}
        <ColumnChoice all={page.columns} shown={columns.map(({ column }) => column.name)} />
        <FilterHelp columns={page.columns} />
        <span class="soft small nowrap" role="status">{problem ? "" : standing(state)}</span>
      </div>
      {problem && <Problem expression={query.get("filter") ?? ""} problem={problem} />}
    </div>
  );
}

/** A field whose text goes into the address a moment after the last key. */
function Typed({ name, label, placeholder, problem, isSearch }: {
  name: string; label: string; placeholder: string; problem?: ViewerError | null; isSearch?: boolean;
}) {
  const current = place.value.query.get(name) ?? "";
  const [text, setText] = useState(current);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const sent = useRef(current);
  useEffect(() => {
    // Changed from elsewhere: a button, or the way back.
    if (current !== sent.current) setText(current);
    sent.current = current;
  }, [current]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (value: string) => {
    clearTimeout(timer.current);
    sent.current = value;
    setQuery({ [name]: value, row: null });
  };
  const type = (value: string) => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => apply(value), TYPING_MS);
  };
  return (
    <input id={name} type="search" class="grow" aria-label={label} placeholder={placeholder} value={text} autocomplete="off" spellcheck={false}
      data-search={isSearch ? "" : undefined} aria-invalid={problem ? "true" : undefined} aria-describedby={problem ? "filter-problem" : undefined}
      onInput={(event) => type(event.currentTarget.value)}
      onKeyDown={(event) => { if (event.key === "Enter") { apply(event.currentTarget.value); event.currentTarget.blur(); } }} />
  );
}

function Problem({ expression, problem }: { expression: string; problem: ViewerError }) {
  const at = Math.min(problem.at ?? 0, expression.length);
  const wrong = /^(?:[\w.]+|\S)?/.exec(expression.slice(at))?.[0] ?? "";
  const sentence = problem.message.charAt(0).toUpperCase() + problem.message.slice(1);
  return (
    <div id="filter-problem" class="filter-problem" role="alert">
      <span class="bad-text">{sentence}</span>
      <code class="small"> {expression.slice(Math.max(0, at - 40), at)}<mark>{wrong || " "}</mark>{expression.slice(at + wrong.length, at + wrong.length + 40)}</code>
    </div>
  );
}

function Quick({ name, filter }: { name: string; filter: string }) {
  const isOn = place.value.query.get("filter") === filter;
  return (
    <button type="button" class={isOn ? "toggle is-on" : "toggle"} aria-pressed={isOn} title={filter}
      onClick={() => setQuery({ filter: isOn ? null : filter, row: null })}>{name}</button>
  );
}

function SortChoice({ columns }: { columns: readonly Column[] }) {
  const { query } = place.value;
  return (
    <select aria-label="Sort" value={query.get("sort") ?? ""} onChange={(event) => {
      const name = event.currentTarget.value;
      const worstIsHigh = name === "time" || columns.find((column) => column.name === name)?.direction === "lower";
      setQuery({ sort: name, desc: worstIsHigh ? 1 : null, row: null });
    }}>
      <option value="">dataset order</option>
      <option value="verdict">by verdict</option>
      <option value="case">by id</option>
      <option value="time">slowest first</option>
      {columns.map((column) => <option key={column.name} value={column.name}>worst {column.name}</option>)}
    </select>
  );
}

function ColumnChoice({ all, shown }: { all: readonly Column[]; shown: readonly string[] }) {
  const choose = (names: readonly string[] | null) => setQuery({ columns: names === null ? null : names.map(encodeURIComponent).join(",") || "," });
  const toggle = (name: string) => {
    const next = shown.includes(name) ? shown.filter((each) => each !== name) : [...shown, name];
    choose(all.map((column) => column.name).filter((each) => next.includes(each)));
  };
  return (
    <Menu words={`Columns ${shown.length}/${all.length}`}>
      <div class="row small">
        <button type="button" class="link" onClick={() => choose(all.map((column) => column.name))}>all</button>
        <button type="button" class="link" onClick={() => choose([])}>none</button>
        <button type="button" class="link" onClick={() => choose(null)}>usual</button>
      </div>
      {all.map((column) => (
        <label key={column.name} class="check" title={column.summary}>
          <input type="checkbox" checked={shown.includes(column.name)} onChange={() => toggle(column.name)} /> {column.name}
        </label>
      ))}
    </Menu>
  );
}

function FilterHelp({ columns }: { columns: readonly Column[] }) {
  const first = example(columns);
  return (
    <Menu words="?" label="How to write a filter">
      <p><b>Filters</b> compare columns with values:</p>
      <ul class="lines small">
        <li><code>{first}</code></li>
        <li><code>verdict == fail and time &gt; 10</code></li>
        <li><code>answer ~ "refund" or not (id == "case-7")</code></li>
        <li><code>faithfulness is not known</code></li>
      </ul>
      <p class="small soft">Operators: &lt; &lt;= &gt; &gt;= == != and ~ (contains). Beside the metrics: <code>verdict</code> (pass, fail, error, aside, unknown),{" "}
        <code>time</code> (seconds), <code>repeat</code>, <code>labels</code>, <code>id</code>, <code>question</code>, <code>answer</code>,
        and <code>state</code> of the case (fine, wrong, flaky, doubtful, broken, …).
        A name with spaces stands in backquotes. What is unknown matches no comparison.</p>
    </Menu>
  );
}

/** A button with a panel below; closes on Escape and on a click elsewhere. */
function Menu({ words, label, children }: { words: string; label?: string; children: preact.ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    if (!isOpen) return undefined;
    const onClick = (event: MouseEvent) => {
      if (!frame.current?.contains(event.target as Node)) setOpen(false);
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      setOpen(false);
      frame.current?.querySelector("button")?.focus();
    };
    document.addEventListener("click", onClick);
    document.addEventListener("keydown", onKey, true);
    return () => {
      document.removeEventListener("click", onClick);
      document.removeEventListener("keydown", onKey, true);
    };
  }, [isOpen]);
  return (
    <div class="menu" ref={frame}>
      <button type="button" aria-expanded={isOpen} aria-controls={id} aria-label={label} title={label} onClick={() => setOpen(!isOpen)}>{words}</button>
      {isOpen && <div class="menu-panel" id={id}>{children}</div>}
    </div>
  );
}

function hasFlaky({ decision }: RunPage): boolean {
  return decision !== null && !decision.decided_now && decision.groups.some((group) => group.word === "flaky");
}

function example(columns: readonly Column[]): string {
  const column = columns.find((each) => each.shown && each.low === 0 && each.high === 1) ?? columns[0];
  if (!column) return "time > 10";
  return `${/^[\w.]+(\[\w+\])?$/.test(column.name) ? column.name : `\`${column.name}\``} ${column.direction === "lower" ? ">" : "<"} 0.5`;
}

function standing({ total, n_all, searched, n_records, isReady }: CasesState): string {
  if (!isReady) return "";
  const shown = total === n_all ? counted(total, "row") : `${count(total)} of ${counted(n_all, "row")}`;
  return searched < n_records ? `${shown} · searched ${count(searched)} of ${count(n_records)} …` : shown;
}
