// How values are written.
import assert from "node:assert/strict";
import { test } from "node:test";
import { percent, plusMinus } from "../src/figures";

test("an interval that lies unevenly around its value is told by its ends", () => {
  assert.equal(plusMinus(0.5, 0.4, 0.6, "score"), "± 0.100");
  assert.equal(plusMinus(0.714, 0.44, 0.88, "score"), "0.440 to 0.880");
  assert.equal(plusMinus(0, 0, 0.17, "score"), "0.000 to 0.170");
  assert.equal(plusMinus(0.5, null, null, "score"), "");
});

test("no share is rounded to all or to none", () => {
  assert.equal(percent(1), "100.0 %");
  assert.equal(percent(143_999 / 144_000), "> 99.9 %");
  assert.equal(percent(143.5 / 144, 0), "> 99 %");
  assert.equal(percent(1 / 10_000, 0), "< 1 %");
  assert.equal(percent(0, 0), "0 %");
  assert.equal(percent(127 / 144), "88.2 %");
});
