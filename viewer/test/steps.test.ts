import assert from "node:assert/strict";
import { test } from "node:test";
import { alignSteps } from "../src/pages/steps";
import type { TraceEvent } from "../src/types";

const call = (n: number, name: string): TraceEvent =>
  ({ n, kind: "tool_call", tool: { name, arguments: {}, result: n, error: null, status: null, ok: true, agent: null } });

test("steps of the same name share a line, others stand alone", () => {
  const before = ["search", "read", "answer"].map((name, n) => call(n, name));
  const after = ["search", "search", "answer"].map((name, n) => call(n, name));
  const lines = alignSteps(before, after).map((pair) => pair.map((step) => step?.name ?? null));
  assert.deepEqual(lines, [["search", "search"], ["read", null], [null, "search"], ["answer", "answer"]]);
});
