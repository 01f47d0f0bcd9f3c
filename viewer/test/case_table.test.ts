// Sorting, folding and searching in the browser, as the server does it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isLow } from "../src/low";
import { CaseTable } from "../src/source/case_table";
import type { CaseColumns, Column } from "../src/types";

const columns: Column[] = [{
  name: "quality", metric: "quality", unit: "score", direction: "higher", mean_of: "", low: 0, high: 1, status: "ok", summary: "", shown: true,
}];

function table(n_cases: number, n_repeats: number): Promise<CaseTable> {
  return CaseTable.of(parts(n_cases, n_repeats), columns);
}

function parts(n_cases: number, n_repeats: number): [CaseColumns] {
  const records = Array.from({ length: n_cases * n_repeats }, (_, at) => ({ position: Math.floor(at / n_repeats), repeat: at % n_repeats }));
  // A value that is unknown for every seventh case, and otherwise a shuffle of the cases.
  const value = (position: number) => (position % 7 === 3 ? null : ((position * 7919) % n_cases) / n_cases);
  const part: CaseColumns = {
    first: 0,
    position: records.map(({ position }) => position),
    repeat: records.map(({ repeat }) => repeat),
    case_id: records.map(({ position }) => `case-${position}`),
    query: records.map(({ position }) => `Question ${position}`),
    answer: records.map(({ repeat }) => `Answer ${repeat}`),
    verdict: records.map(({ position, repeat }) => (position % 2 === 0 || repeat === 0 ? "p" : "f")).join(""),
    state: records.map(({ position }) => (position % 2 === 0 ? "fine" : "flaky")),
    failed: records.map(() => 0),
    elapsed_s: records.map(({ position }) => position),
    values: [records.map(({ position }) => value(position))],
    statuses: [records.map(({ position }) => (value(position) === null ? "n" : "o")).join("")],
    cuts: [records.map(({ repeat }) => (repeat === 0 ? 0.3 : null))],
    n_labels: records.map(() => 0),
  };
  return [part];
}

for (const desc of [false, true]) {
  test(`sorted ${desc ? "down" : "up"}: all rows, in order, unknown last`, async () => {
    const page = await (await table(20_000, 1)).page({ offset: 0, limit: 20_000, sort: "quality", desc });
    const values = page.rows.map((row) => row.values[0] ?? null);
    const known = values.filter((value): value is number => value !== null);
    assert.equal(page.total, 20_000);
    assert.equal(new Set(page.rows.map((row) => row.key)).size, 20_000);
    assert.ok(values.slice(known.length).every((value) => value === null));
    assert.ok(page.rows.every((row) => row.statuses === (row.values[0] === null ? "n" : "o")));
    assert.ok(known.every((value, at) => at === 0 || (desc ? value <= (known[at - 1] ?? 0) : value >= (known[at - 1] ?? 0))));
  });
}

test("folded repeats pass where all passed", async () => {
  const page = await (await table(4, 3)).page({ offset: 0, limit: 10, fold: true });
  assert.deepEqual(page.rows.map((row) => row.verdict), ["pass", "fail", "pass", "fail"]);
  assert.deepEqual(page.rows.map((row) => row.repeats), [3, 1, 3, 1].map((n_passed) => ({ n: 3, n_passed })));
  assert.deepEqual([page.total, page.n_all, page.n_records], [4, 4, 12]);
});

test("a score is low below its own threshold, its mean below theirs", async () => {
  const made = await table(4, 2);
  assert.deepEqual((await made.page({ offset: 0, limit: 2 })).rows.map((row) => row.cuts), [[0.3], [null]]);
  assert.deepEqual((await made.page({ offset: 0, limit: 1, fold: true })).rows.map((row) => row.cuts), [[0.4]]);
  const [counted] = columns as [Column];
  const degree: Column = { ...counted, mean_of: "support" };
  assert.deepEqual([isLow(0.4, degree, 0.3), isLow(0.4, degree, null), isLow(0.3, degree, 0.3)], [false, true, false]);
  assert.deepEqual([isLow(0.5, degree, null), isLow(0.5, counted, null)], [false, true]);
  assert.deepEqual([isLow(0.6, { ...degree, direction: "lower" }, 0.7), isLow(0.6, { ...degree, direction: "lower" }, null)], [false, true]);
});

test("search and filter narrow the rows, a page is cut out of them", async () => {
  const page = await (await table(100, 1)).page({ offset: 1, limit: 2, search: "QUESTION 9", filter: "time >= 90", sort: "case", desc: true });
  assert.equal(page.total, 10);
  assert.deepEqual(page.rows.map((row) => row.case_id), ["case-98", "case-97"]);
});

test("cases are found by what they are called, folded or not, unless that was not kept", async () => {
  const made = await table(4, 3);
  assert.equal((await made.page({ offset: 0, limit: 9, filter: "state == flaky" })).total, 6);
  assert.deepEqual((await made.page({ offset: 0, limit: 9, filter: "state == fine", fold: true })).rows.map((row) => row.case_id), ["case-0", "case-2"]);
  const [part] = parts(2, 1);
  await assert.rejects((await CaseTable.of([{ ...part, state: [] }], columns)).page({ offset: 0, limit: 9, filter: "state == flaky" }), /not kept/);
});

test("a record is found by its key", async () => {
  const made = await table(5, 2);
  assert.deepEqual(made.named(made.numberOf(3, 1)), { key: "3-1", case_id: "case-3" });
  assert.equal(made.numberOf(9, 0), -1);
  assert.deepEqual(made.keysOf("case-4"), ["4-0", "4-1"]);
});
