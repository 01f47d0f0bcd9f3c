// The steps of two traces, put beside each other: those of the same kind and name in the same order share a line.
import type { TraceEvent } from "../types";

export interface Step {
  event: TraceEvent;
  kind: string;
  name: string;
  /** One line of what it held. */
  detail: string;
}

const MOST_DETAIL = 300;

export function stepOf(event: TraceEvent): Step {
  const kind = event.kind === "tool_call" ? "tool" : event.kind === "llm_call" ? "model" : event.kind;
  if (event.tool) {
    const { name, arguments: received, result, error } = event.tool;
    return { event, kind, name, detail: oneLine([plain(received), error ?? plain(result)].filter(Boolean).join(" → ")) };
  }
  const name = event.role ?? event.agent ?? "";
  return { event, kind, name, detail: oneLine(event.text ?? event.label ?? plain(event.payload)) };
}

export function alignSteps(before: readonly TraceEvent[], after: readonly TraceEvent[]): [Step | null, Step | null][] {
  const a = before.map(stepOf);
  const b = after.map(stepOf);
  const isAlike = (i: number, j: number) => a[i]?.kind === b[j]?.kind && a[i]?.name === b[j]?.name;
  // The longest common subsequence; both lists are short.
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const row = best[i] as Uint16Array;
      const below = best[i + 1] as Uint16Array;
      row[j] = isAlike(i, j) ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
    }
  }
  const rows: [Step | null, Step | null][] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && isAlike(i, j)) rows.push([a[i++] ?? null, b[j++] ?? null]);
    else if (j >= b.length || (i < a.length && (best[i + 1]?.[j] ?? 0) >= (best[i]?.[j + 1] ?? 0))) rows.push([a[i++] ?? null, null]);
    else rows.push([null, b[j++] ?? null]);
  }
  return rows;
}

function plain(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > MOST_DETAIL ? `${line.slice(0, MOST_DETAIL)}…` : line;
}
