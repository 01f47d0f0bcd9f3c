// Texts of strangers are read as Markdown, however they are nested.
import assert from "node:assert/strict";
import { test } from "node:test";
import { asJson, shortData } from "../src/components/data";
import { markupOf } from "../src/text/markup";

test("Markdown becomes markup, and markup stays text", () => {
  assert.equal(markupOf("*a* <b>"), "<p><em>a</em> &lt;b&gt;</p>\n");
  assert.equal(markupOf(`${"> ".repeat(30)}a`)?.match(/<blockquote>/g)?.length, 30);
  assert.ok(markupOf("> a\n\n- b\n\n".repeat(200))?.includes("<li>b"), "many side by side are not deep");
});

test("marks nested too deeply are not drawn", () => {
  for (const mark of [">", "> ", "- ", "1. ", "> - "]) {
    for (const times of [31, 500, 2_000, 30_000]) assert.equal(markupOf(`${mark.repeat(times)}a`), null, `${times} × ${mark}`);
  }
  const emphasis = "*".repeat(40_000);
  assert.equal(markupOf(`${emphasis}a${emphasis}`), null);
});

test("deep data is shown in a line, and as JSON or as a sentence", () => {
  for (const wrap of [(inner: unknown): unknown => [inner], (inner: unknown): unknown => ({ a: inner })]) {
    let value: unknown = 1;
    for (let level = 0; level < 20_000; level++) value = wrap(value);
    assert.match(shortData(value, 200), /…/);
    assert.match(asJson(value), /too deeply/);
  }
});
