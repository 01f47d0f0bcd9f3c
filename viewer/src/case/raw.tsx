// The record as JSON, line by line: only the lines that are seen are in the page, so that large records open at once.
import { useMemo, useRef, useState } from "preact/hooks";
import { CopyButton } from "../components/copy_button";
import { asJson } from "../components/data";
import { Shown } from "../components/states";
import { useLongList } from "../components/long_list";
import { bytes, count, counted } from "../figures";
import { useLoad } from "../loading";
import { source } from "../source";
import type { CaseDetail } from "../types";

const lineHeight = () => 20;
const LONGEST_LINE = 4_000;
/** Records with more events are read only when asked for: they may be as large as the memory of a tab. */
const ASK_FROM = 20_000;

export function Raw({ detail }: { detail: CaseDetail }) {
  const [isAsked, setAsked] = useState(detail.n_events < ASK_FROM);
  if (isAsked) return <RawRecord detail={detail} />;
  return (
    <div class="state">
      <p>This record has {counted(detail.n_events, "event")}.</p>
      <button type="button" onClick={() => setAsked(true)}>Read all of it</button>
    </div>
  );
}

function RawRecord({ detail }: { detail: CaseDetail }) {
  const loaded = useLoad(`${detail.run}/${detail.key}`, () => source.raw(detail.run, detail.key));
  return <Shown of={loaded} what="the record">{(record) => <Code text={asJson(record)} name={`${detail.case_id}.json`} />}</Shown>;
}

/** Lines of code with their numbers; a line beyond all measure goes on in the next. */
export function linesOf(text: string): { text: string; number: number | null }[] {
  return text.split("\n").flatMap((line, at) => {
    if (line.length <= LONGEST_LINE) return [{ text: line, number: at + 1 }];
    const pieces = [];
    for (let start = 0; start < line.length; start += LONGEST_LINE) {
      pieces.push({ text: line.slice(start, start + LONGEST_LINE), number: start === 0 ? at + 1 : null });
    }
    return pieces;
  });
}

function Code({ text, name }: { text: string; name: string }) {
  const scroller = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => linesOf(text), [text]);
  const list = useLongList(lines.length, scroller, lineHeight);
  return (
    <section aria-label="The record as JSON">
      <div class="row no-print">
        <CopyButton text={text} what="the record" />
        <button type="button" onClick={() => download(name, text, "application/json")}>Download</button>
        <span class="soft small">{counted(lines.length, "line")}, {bytes(text.length)}</span>
      </div>
      <div class="code" ref={scroller} tabIndex={0} role="region" aria-label={`JSON, ${count(lines.length)} lines`}>
        <div style={{ height: `${list.totalSize}px`, position: "relative" }}>
          {list.items.map(({ index, start }) => (
            <div key={index} class="code-line" style={{ transform: `translateY(${start}px)` }}>
              <span class="code-number" aria-hidden="true">{lines[index]?.number ?? ""}</span>
              <code>{lines[index]?.text}</code>
            </div>
          ))}
        </div>
      </div>
    </section>
  );
}

/** Hand a text to the reader as a file; nothing leaves the browser. */
export function download(name: string, text: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name.replace(/[^\w.-]+/g, "_") });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
