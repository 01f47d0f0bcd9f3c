// The filters that the server is tested with, too.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ViewerError } from "../src/source/errors";
import { parseFilter, type Value } from "../src/source/expression";

interface FilterCases {
  columns: string[];
  rows: Record<string, Value>[];
  filters: { text: string; wanted: string[] }[];
  refused: { text: string; at: number }[];
}

const cases = JSON.parse(readFileSync("filter_cases.json", "utf8")) as FilterCases;

for (const { text, wanted } of cases.filters) {
  test(`filter ${text}`, () => {
    const holds = parseFilter(text, cases.columns);
    const found = cases.rows.filter((row) => holds((name) => (name === "verdict" ? (row[name] ?? "unknown") : (row[name] ?? null))));
    assert.deepEqual(found.map((row) => row.id), wanted);
  });
}

for (const { text, at } of cases.refused) {
  test(`refused ${text}`, () => {
    assert.throws(() => parseFilter(text, cases.columns), (error) => error instanceof ViewerError && error.at === at);
  });
}
