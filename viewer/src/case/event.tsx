// One thing that happened in a trace: a message as in a chat, a call of a tool that opens, or a line.
import { useState } from "preact/hooks";
import { Data, shortData } from "../components/data";
import { Markdown } from "../components/markdown";
import { count, duration } from "../figures";
import type { ToolCall, TraceEvent } from "../types";
import { MediaList, type MediaOf } from "./media";

const TALL_TEXT = 1_800;

export interface EventState {
  isOpen: boolean;
  toggle: () => void;
  /** Load the event whole, where a text of it was cut. */
  whole: () => void;
  mediaOf: MediaOf;
}

const ROLE_WORDS: Record<string, string> = { user: "User", assistant: "Agent", system: "System", tool: "Tool" };

export function EventView({ event, state }: { event: TraceEvent; state: EventState }) {
  return (
    <>
      {body(event, state)}
      {event.media?.length ? <MediaList media={event.media} mediaOf={state.mediaOf} /> : null}
      {event.cut !== undefined && (
        <p class="soft small">
          A text was cut here ({count(event.cut)} characters in all).{" "}
          <button type="button" class="link" onClick={state.whole}>Show it whole</button>
        </p>
      )}
    </>
  );
}

function body(event: TraceEvent, state: EventState) {
  if (event.tool) return <ToolView event={event} tool={event.tool} state={state} />;
  if (event.kind === "message" && event.text !== undefined) return <MessageView event={event} state={state} />;
  return <LineView event={event} state={state} />;
}

function When({ event }: { event: TraceEvent }) {
  return (
    <span class="event-when">
      {event.duration_s !== undefined && <span title="how long it took">{duration(event.duration_s)}</span>}
      {event.at_s !== undefined && <span class="soft" title="since the beginning">+{duration(event.at_s)}</span>}
    </span>
  );
}

function Who({ event }: { event: TraceEvent }) {
  const to = event.to?.length ? ` → ${event.to.join(", ")}` : "";
  return event.agent || to ? <span class="event-agent"><bdi>{event.agent}{to}</bdi></span> : null;
}

function MessageView({ event, state }: { event: TraceEvent; state: EventState }) {
  const role = event.role ?? "message";
  const text = event.text ?? "";
  const isTall = text.length > TALL_TEXT || (text.match(/\n/g)?.length ?? 0) > 28;
  return (
    <div class={`bubble role-${["user", "assistant", "system"].includes(role) ? role : "other"} ${event.failed ? "failed" : ""}`}>
      <div class="bubble-head">
        <strong><bdi>{ROLE_WORDS[role] ?? role}</bdi></strong>
        <Who event={event} />
        <span class="grow" />
        <When event={event} />
      </div>
      {text === "" ? <p class="soft">(empty)</p> : (
        <div class={isTall && !state.isOpen ? "tall" : ""}><Markdown text={text} /></div>
      )}
      {isTall && (
        <button type="button" class="link" aria-expanded={state.isOpen} onClick={state.toggle}>
          {state.isOpen ? "show less" : `show all ${count(text.length)} characters`}
        </button>
      )}
      {hasMore(event.payload) && <Further payload={event.payload} />}
    </div>
  );
}

export function ToolView({ event, tool, state }: { event?: TraceEvent; tool: ToolCall; state: EventState }) {
  const word = tool.ok === true ? "succeeded" : tool.ok === false ? "failed" : "no status";
  const icon = tool.ok === true ? "✓" : tool.ok === false ? "✕" : "?";
  return (
    <div class={`tool ${tool.ok === false ? "failed" : tool.ok === null ? "unsure" : ""}`}>
      <button type="button" class="tool-head" aria-expanded={state.isOpen} onClick={state.toggle}>
        <span class="turner" aria-hidden="true">{state.isOpen ? "▾" : "▸"}</span>
        <span class={`tool-icon ${tool.ok === false ? "bad-text" : tool.ok === true ? "good-text" : "warn-text"}`} aria-hidden="true">{icon}</span>
        <strong class="mono"><bdi>{tool.name}</bdi></strong>
        <span class="tool-arguments mono soft">(<bdi>{shortData(tool.arguments ?? "", 140)}</bdi>)</span>
        <span class="sr">{tool.status ?? word}</span>
        <span class="grow" />
        {tool.agent && <span class="event-agent"><bdi>{tool.agent}</bdi></span>}
        {event && <When event={event} />}
      </button>
      {tool.error && <p class="tool-error" dir="auto">{state.isOpen ? tool.error : shortData(tool.error, 240)}</p>}
      {state.isOpen && (
        <div class="tool-body">
          <h4>Arguments</h4>
          <Data value={tool.arguments} label="arguments" />
          <h4>Result</h4>
          {tool.result === undefined || tool.result === null
            ? <span class="soft">none recorded</span> : <Data value={tool.result} label="result" />}
          <p class="soft small">Status: {tool.status ?? "not recorded"}</p>
          {event && hasMore(event.payload) && <Further payload={event.payload} />}
        </div>
      )}
    </div>
  );
}

const KIND_WORDS: Record<string, string> = {
  llm_call: "model call", agent_start: "begins", agent_end: "ends", retrieval: "retrieval", handoff: "handoff",
};

function LineView({ event, state }: { event: TraceEvent; state: EventState }) {
  const canOpen = hasMore(event.payload) || Boolean(event.documents?.length);
  const text = event.text ?? event.label ?? "";
  const content = (
    <>
      <span class="turner" aria-hidden="true">{canOpen ? (state.isOpen ? "▾" : "▸") : "·"}</span>
      {event.failed && <span class="bad-text" aria-hidden="true">✕</span>}
      {event.failed && <span class="sr">failed</span>}
      <span class={`event-kind kind-${kindOf(event.kind)}`}>{KIND_WORDS[event.kind] ?? event.kind.replace(/_/g, " ")}</span>
      {!(event.agent && text.startsWith(event.agent)) && <Who event={event} />}
      <span class="event-label" dir="auto">{shortData(text, 300)}</span>
      <span class="grow" />
      <When event={event} />
    </>
  );
  return (
    <div class={`event-line ${event.failed ? "failed" : ""}`}>
      {canOpen
        ? <button type="button" class="line-head" aria-expanded={state.isOpen} onClick={state.toggle}>{content}</button>
        : <div class="line-head">{content}</div>}
      {state.isOpen && canOpen && (
        <div class="tool-body">
          {event.documents?.map((document, at) => (
            <div key={at} class="passage"><h4>Document {at + 1}</h4><Data value={document} label={`document ${at + 1}`} /></div>
          ))}
          {hasMore(event.payload) && <Data value={event.payload} label="details" />}
        </div>
      )}
    </div>
  );
}

function Further({ payload }: { payload: Record<string, unknown> | undefined }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="further">
      <button type="button" class="link small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "hide what else was recorded" : "what else was recorded"}
      </button>
      {isOpen && <Data value={payload} label="further fields" />}
    </div>
  );
}

function hasMore(payload: Record<string, unknown> | undefined): boolean {
  return payload !== undefined && Object.keys(payload).length > 0;
}

/** The color of a kind of event. */
export function kindOf(kind: string): "tool" | "llm" | "talk" | "other" {
  if (kind === "tool_call" || kind === "retrieval") return "tool";
  if (kind === "llm_call") return "llm";
  return kind === "message" ? "talk" : "other";
}
