// The agents of a case: what each did, who wrote to whom, and lanes of what happened in order.
import { useMemo } from "preact/hooks";
import { Table } from "../components/table";
import { count, counted, duration, percent } from "../figures";
import type { AgentRow, CaseDetail, LaneMark, Lanes, Network } from "../types";

export function Agents({ detail }: { detail: CaseDetail }) {
  return (
    <>
      <AgentsTable rows={detail.agents} />
      {detail.network && detail.network.agents.length > 1 && <Graph network={detail.network} />}
      {detail.lanes && detail.lanes.marks.length > 0 && <LanesView lanes={detail.lanes} />}
    </>
  );
}

function AgentsTable({ rows }: { rows: readonly AgentRow[] }) {
  return (
    <Table caption="Agents" rows={rows} keyOf={(row) => row.agent} columns={[
      { name: "agent", head: "agent", cell: (row) => <strong>{row.agent}</strong> },
      { name: "messages", head: "messages", isNumber: true, cell: (row) => count(row.messages) },
      { name: "received", head: "received", isNumber: true, isWide: true, cell: (row) => count(row.received) },
      { name: "calls", head: "tool calls", isNumber: true, cell: (row) => count(row.tool_calls) },
      { name: "failed", head: "failed", isNumber: true, cell: (row) => (row.outcomes ? `${count(row.failures)} of ${count(row.outcomes)}` : "–") },
      { name: "tokens", head: "tokens", isNumber: true, isWide: true, cell: (row) => (row.tokens === null ? "–" : count(row.tokens)) },
      { name: "share", head: "share of work", isNumber: true, isWide: true, cell: (row) => percent(row.share, 0) },
      { name: "linked", head: "linked to", isNumber: true, isWide: true, cell: (row) => percent(row.centrality, 0) },
    ]} />
  );
}

const MOST_DRAWN = 40;
const SIZE = 460;
const HEIGHT = 390;

/** Who writes to whom: agents on a circle, arrows as wide as they are busy. */
function Graph({ network }: { network: Network }) {
  const agents = network.agents.slice(0, MOST_DRAWN);
  const radius = agents.length < 3 ? 120 : 160;
  const at = new Map(agents.map((agent, number) => {
    const angle = (2 * Math.PI * number) / agents.length - Math.PI / 2;
    return [agent, { x: SIZE / 2 + radius * Math.cos(angle), y: HEIGHT / 2 + radius * Math.sin(angle) * 0.9 }] as const;
  }));
  const links = network.links.filter((link) => at.has(link.sender) && at.has(link.receiver) && link.sender !== link.receiver);
  const most = Math.max(1, ...links.map((link) => link.messages || link.handoffs));
  const words = links.map((link) => `${link.sender} to ${link.receiver}: ${counted(link.messages, "message")}, ${counted(link.handoffs, "handoff")}`);
  return (
    <figure class="card graph">
      <figcaption><h2>Who writes to whom</h2></figcaption>
      <svg viewBox={`0 0 ${SIZE} ${HEIGHT}`} role="img" aria-label={`${counted(agents.length, "agent")}. ${words.slice(0, 30).join("; ")}`}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">
            <path d="M0 0L8 4L0 8Z" />
          </marker>
        </defs>
        {links.map((link) => {
          const from = at.get(link.sender) ?? { x: 0, y: 0 };
          const to = at.get(link.receiver) ?? { x: 0, y: 0 };
          const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
          const ux = (to.x - from.x) / length;
          const uy = (to.y - from.y) / length;
          // Bent to its right side, so that the two directions of a pair lie apart.
          const bend = { x: (from.x + to.x) / 2 - uy * 22, y: (from.y + to.y) / 2 + ux * 22 };
          const start = { x: from.x + ux * 24, y: from.y + uy * 24 };
          const end = { x: to.x - ux * 26, y: to.y - uy * 26 };
          const busy = link.messages || link.handoffs;
          return (
            <g key={`${link.sender}\n${link.receiver}`} class={link.failed ? "failed" : ""}>
              <path class="link" d={`M${start.x} ${start.y}Q${bend.x} ${bend.y} ${end.x} ${end.y}`} stroke-width={1 + (3 * busy) / most} marker-end="url(#arrow)">
                <title>{`${link.sender} → ${link.receiver}: ${counted(link.messages, "message")}, ${counted(link.handoffs, "handoff")}${link.failed ? `, ${link.failed} failed` : ""}`}</title>
              </path>
              <text class="busy" x={(start.x + 2 * bend.x + end.x) / 4} y={(start.y + 2 * bend.y + end.y) / 4}>{busy}{link.failed ? " ✕" : ""}</text>
            </g>
          );
        })}
        {agents.map((agent) => {
          const { x, y } = at.get(agent) ?? { x: 0, y: 0 };
          const isNeck = network.bottlenecks.includes(agent);
          return (
            <g key={agent} transform={`translate(${x} ${y})`} class={isNeck ? "neck" : ""}>
              <title>{`${agent}: sent ${network.sent[agent] ?? 0}${isNeck ? "; others reach each other only through it" : ""}`}</title>
              {isNeck ? <path class="node" d="M0 -21L21 0L0 21L-21 0Z" /> : <circle class="node" r="17" />}
              <text class="name" y={y > HEIGHT / 2 ? 34 : -26}>{agent.length > 22 ? `${agent.slice(0, 21)}…` : agent}</text>
              <text class="sent" y="4">{network.sent[agent] ?? ""}</text>
            </g>
          );
        })}
      </svg>
      <p class="soft small">
        Numbers are messages sent.{network.bottlenecks.length > 0 && " A diamond: others reach each other only through it."}
        {links.some((link) => link.failed) && " Dashed, ✕: something failed on it."}
        {network.agents.length > MOST_DRAWN && ` The first ${MOST_DRAWN} of ${network.agents.length} agents are drawn.`}
      </p>
    </figure>
  );
}

const MOST_MARKS = 1_500;
const LANE = 38;
const LEFT = 130;

/** What each agent did, a lane for each: at its time where all times are known, else in order. */
function LanesView({ lanes }: { lanes: Lanes }) {
  const marks = lanes.marks.slice(0, MOST_MARKS);
  const drawn = useMemo(() => placesOf(marks), [lanes]);
  const lane = new Map(lanes.agents.map((agent, number) => [agent, 30 + number * LANE]));
  const width = LEFT + drawn.width + 30;
  const height = 40 + lanes.agents.length * LANE;
  return (
    <figure class="card">
      <figcaption><h2>What happened, agent by agent</h2></figcaption>
      <div class="lanes-frame" tabIndex={0} role="region" aria-label="Lanes of the agents">
        <svg class="lanes" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img"
          aria-label={`${counted(lanes.agents.length, "agent")}, ${counted(lanes.marks.length, "step")}${drawn.isTimed ? `, ${duration(drawn.span_s)}` : ""}`}>
          {lanes.agents.map((agent) => (
            <g key={agent}>
              <line class="lane" x1={LEFT - 10} x2={width} y1={lane.get(agent)} y2={lane.get(agent)} />
              <text class="lane-name" x="4" y={(lane.get(agent) ?? 0) + 4}>{agent.length > 18 ? `${agent.slice(0, 17)}…` : agent}<title>{agent}</title></text>
            </g>
          ))}
          {marks.map((mark, at) => <MarkView key={at} mark={mark} x={LEFT + (drawn.x[at] ?? 0)} lane={lane} />)}
        </svg>
      </div>
      <p class="soft small">
        {drawn.isTimed ? `By time, ${duration(drawn.span_s)} in all.` : "In order; not all times are known."} ● message, ■ tool call, ▲ model call, ◆ handoff;
        {" "}✕ failed.
        {lanes.marks.length > MOST_MARKS && ` The first ${count(MOST_MARKS)} of ${count(lanes.marks.length)} steps are drawn; the transcript has all.`}
        {lanes.n_nameless > 0 && ` ${counted(lanes.n_nameless, "step")} name no agent.`}
      </p>
    </figure>
  );
}

function placesOf(marks: readonly LaneMark[]): { x: number[]; width: number; isTimed: boolean; span_s: number } {
  const times = marks.map((mark) => mark.at_s);
  const isTimed = times.every((time) => time !== null) && times.some((time) => time !== 0);
  const span_s = Math.max(1e-9, ...times.map((time) => time ?? 0));
  const width = Math.min(12_000, Math.max(900, marks.length * 26));
  let before = -12;
  const x = marks.map((mark, at) => {
    const wanted = isTimed ? (width * (mark.at_s ?? 0)) / span_s : at * 26;
    before = Math.max(wanted, before + 12);
    return before;
  });
  return { x, width: Math.max(width, before), isTimed, span_s };
}

const SHAPES: Record<string, string> = {
  message: "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0", call: "M-6 -6H6V6H-6Z", model: "M0 -7L7 6H-7Z", handoff: "M0 -8L8 0L0 8L-8 0Z",
};

function MarkView({ mark, x, lane }: { mark: LaneMark; x: number; lane: ReadonlyMap<string, number> }) {
  const y = lane.get(mark.agent) ?? 0;
  return (
    <g class={`lane-mark kind-${mark.kind} ${mark.failed ? "failed" : ""}`}>
      <title>{`${mark.agent}, ${mark.kind}: ${mark.label}${mark.failed ? " (failed)" : ""}`}</title>
      {mark.to.map((name) => {
        const to = lane.get(name);
        return to === undefined || to === y ? null : <path key={name} class="lane-link" d={`M${x} ${y}L${x + 5} ${to - Math.sign(to - y) * 5}`} />;
      })}
      <path class="shape" d={SHAPES[mark.kind] ?? SHAPES.message} transform={`translate(${x} ${y})`} />
      {mark.failed && <text class="cross" x={x} y={y - 9}>✕</text>}
    </g>
  );
}
