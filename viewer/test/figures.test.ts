// How values are written.
import assert from "node:assert/strict";
import { test } from "node:test";
import { plusMinus } from "../src/figures";

test("an interval that lies unevenly around its value is told by its ends", () => {
  assert.equal(plusMinus(0.5, 0.4, 0.6, "score"), "± 0.100");
  assert.equal(plusMinus(0.714, 0.44, 0.88, "score"), "0.440 to 0.880");
  assert.equal(plusMinus(0, 0, 0.17, "score"), "0.000 to 0.170");
  assert.equal(plusMinus(0.5, null, null, "score"), "");
});
