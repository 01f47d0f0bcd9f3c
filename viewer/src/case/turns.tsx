// A conversation, turn by turn: what the user said, what the agent called, and its answer, held against what was expected.
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { Markdown } from "../components/markdown";
import { words } from "../text/diff";
import type { ToolCall, Turn } from "../types";
import { ToolView } from "./event";

export function Turns({ turns }: { turns: readonly Turn[] }) {
  return (
    <section class="card turns" aria-labelledby="turns-title">
      <h2 id="turns-title">Conversation</h2>
      <ol>
        {turns.map((turn) => (
          <li key={turn.number}>
            <div class="bubble role-user"><div class="bubble-head"><strong>User</strong><span class="soft small">turn {turn.number}</span></div><Markdown text={turn.query} /></div>
            {turn.tool_calls.map((call, at) => <Call key={at} call={call} />)}
            <div class="bubble role-assistant">
              <div class="bubble-head"><strong>Agent</strong></div>
              {turn.answer === null ? <p class="bad-text">(no answer)</p> : <Markdown text={turn.answer} />}
            </div>
            {turn.expected.length > 0 && <TurnExpected answer={turn.answer} expected={turn.expected} />}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Call({ call }: { call: ToolCall }) {
  const [isOpen, setOpen] = useState(false);
  const nothing = () => Promise.reject(new Error("no media"));
  return <ToolView tool={call} state={{ isOpen, toggle: () => setOpen(!isOpen), whole: () => undefined, mediaOf: nothing }} />;
}

function TurnExpected({ answer, expected }: { answer: string | null; expected: readonly string[] }) {
  const only = expected.length === 1 && answer !== null ? expected[0] ?? "" : null;
  return (
    <p class="turn-expected small" dir="auto">
      <strong class="soft">expected </strong>
      {only === null ? expected.join(" | ") : words(answer ?? "", only).map((word, at) => (
        <Fragment key={at}>{word.kind === "same" ? word.text : word.kind === "is" ? <ins>{word.text}</ins> : <del>{word.text}</del>}</Fragment>
      ))}
    </p>
  );
}
