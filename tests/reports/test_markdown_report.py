from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agentunit import DatasetCase, Outcome, Record, TraceLog
from agentunit.engine.deciding.compare import compare_runs
from agentunit.engine.deciding.decision import Decision, decide, decide_run
from agentunit.engine.deciding.gate_expressions import Gate, GateVerdict
from agentunit.reports.figures import describe_value
from agentunit.reports.github_annotations import write_step_summary
from agentunit.reports.markdown import MOST_CHARACTERS, run_markdown
from agentunit.reports.markdown_text import code, html_code, inline
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import ReportedRun, open_run

GITHUB_LIKE = MarkdownIt("gfm-like", {"linkify": False})


def test_the_table_says_value_coverage_trust_and_verdict(demo_run, faulty_tools):
    text = run_markdown(demo_run)
    assert text.startswith("### `desk`: ❌ FAIL\n\n**FAIL: 14 wrong (desk-001")
    assert "66 cases, the agent failed on 1 of 66 cases · run `run-1`" in text
    # What is wrong comes before any figure.
    assert 0 < text.index("of 66 cases wrong: ") < text.index("| metric |")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "| metric | value, 95 % | scored | backend | trust | gate |"
    row = next(row for row in demo_run.summary.metrics if row.metric == "tool_success")
    value, scored = inline(describe_value(row, "score")), f"{row.n_scored}/{row.n_cases}"
    rule = "`[trace] all == 1 coverage 0`"
    assert f"| `tool_success` ↑ | {value} | {scored} | trace | exact | {rule} ❌ FAIL |" in rows
    assert any("`faithfulness` ↑ _i_ |" in row and "AUROC 0.50" in row for row in rows)
    assert f"all == 1 coverage 0: {len(faulty_tools)} of {row.n_scored} values are not == 1" in text
    assert "<details><summary>Worst cases (10)</summary>" in text
    assert "<pre>Order A-1012 is with the carrier and arrives on 11 October.</pre>" in text
    assert text.count("<details") == text.count("</details>") == 3
    n_wrong = len({*demo_run.decision.failing_cases})
    why = "2 of 3 tool calls failed: track_parcel (carrier timeout after 8 s) (0.333, needs == 1)"
    summary = f"<details open><summary>Wrong ({n_wrong})</summary>"
    assert f"{summary}\n\n- `desk-001` {why} (tool_success" in text


def test_without_gates_there_is_no_verdict_and_without_cases_only_their_names(demo_run):
    demo_run.decision = Decision(0, None, "66 cases")
    text = run_markdown(demo_run, full_cases=False)
    assert text.startswith("### `desk`\n")
    assert "| gate |" not in text
    assert "<pre>" not in text
    assert "- **`desk-014`** (task_success)" in text


def test_a_gate_on_a_backend_stands_beside_that_backend(demo_run):
    demo_run.decision = decide_run(demo_run.run, ["task_success[state] >= 0.1 coverage 0"])
    text = run_markdown(demo_run)
    rows = [line for line in text.splitlines() if line.startswith("| `task_success`")]
    assert [("✅ met" in row, "state" in row) for row in rows] == [(False, False), (True, True)]


def test_everything_fits_a_comment_however_long_the_answers(store, keep):
    records = [
        Record(
            DatasetCase(f"{'long' * 40}-{number}", "|" * 5000), TraceLog(), Outcome(success=False, output="<" * 9000)
        )
        for number in range(40)
    ]
    keep(store, [records])
    reported = open_run("run-1", store)
    assert len(run_markdown(reported)) <= MOST_CHARACTERS
    gate = GateVerdict(Gate("m" * 900, ">=", 1.0), "fail", "|" * 4000, cases=tuple("|" * 500 for _ in range(50)))
    reported.decision = decide(reported.run, [gate] * 60)
    assert len(run_markdown(reported)) <= MOST_CHARACTERS


def test_hostile_text_is_shown_as_text(hostile_run):
    text = run_markdown(hostile_run)
    html = GITHUB_LIKE.render(text)
    for page in (text, html):
        assert "<script" not in page
        assert "<b>" not in page
        assert "<!--" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page
    assert "&lt;script&gt;" in html
    # Outside of code, where GitHub would look for people to call, nobody is named.
    outside = [line for line in text.splitlines() if not line.startswith("<pre>")]
    assert not [line for line in outside if "@octocat" in line]


TABLE_BREAKERS = st.text(st.sampled_from("|`*_[]()<>&#@$~\\:/! \nab-.+=1;"), max_size=30)


@given(TABLE_BREAKERS)
def test_no_text_breaks_a_table_or_becomes_markup(text):
    table = f"| a | b |\n|---|---|\n| {code(text)} | {inline(text)} |\n"
    tokens = GITHUB_LIKE.parse(table)
    assert [token.type for token in tokens].count("td_open") == 2
    # A cell holds the text and the code that we made of it: no other markup, and nothing is lost.
    name, cell = [token.children or [] for token in tokens if token.type == "inline"][2:]
    assert {child.type for child in name} <= {"text", "text_special", "html_inline", "code_inline"}
    assert [child.type for child in cell if child.type not in ("text", "text_special")] == []
    for shown in (name, cell):
        said = "".join(child.content for child in shown if child.type != "html_inline")
        assert said.strip() == printable_line(text, 120).strip()


@given(TABLE_BREAKERS)
def test_a_line_of_foreign_text_starts_no_list_heading_or_quotation(text):
    tokens = GITHUB_LIKE.parse(f"{inline(text)}\n\n- {inline(text)}\n")
    blocks = [token.type for token in tokens if token.type.endswith("_open")]
    own = ["bullet_list_open", "list_item_open", "paragraph_open"]
    assert blocks in (own, own[:2], ["paragraph_open", *own])


def test_ordinary_text_stays_readable():
    said = "tool_success: 0.64 [0.53, 0.73], p = 0.002 (c1, c2 and 3 more); cost $0.02; fell by 14 % > margin"
    assert inline(said) == said
    assert code("exact_match >= 0.8 {x} (y)") == "`exact_match >= 0.8 {x} (y)`"
    assert html_code("a_b") == "<code>a&#95;b</code>"


def test_a_comparison_says_what_became_worse(store, keep):
    def records(wrong: range) -> list[Record]:
        return [
            Record(DatasetCase(f"q{number}", "?"), TraceLog(), Outcome(success=number not in wrong, output="a"))
            for number in range(60)
        ]

    keep(store, [records(range(0))], run_id="old", metrics=["task_success"])
    keep(store, [records(range(30))], run_id="new", metrics=["task_success"])
    old, new = open_run("old", store).run, open_run("new", store).run
    text = run_markdown(ReportedRun(new, decision=decide_run(new, comparison=compare_runs(new, old))))
    assert text.startswith("### `desk`: ❌ FAIL")
    assert "**Against `desk (old)`**, 60 cases in both" in text
    assert "| `task_success` outcome | 1.00 | 0.50 | -0.500 [" in text
    assert "**regression**" in text
    same = run_markdown(ReportedRun(new, decision=decide_run(new, comparison=compare_runs(new, new))))
    assert same.splitlines()[0].endswith(": ✅ PASS")


def test_an_unscored_run_says_so(store, keep):
    keep(store, [[Record(DatasetCase("q1", "?"), TraceLog(), "a")]], metrics=[])
    assert "Nothing is scored yet." in run_markdown(open_run("run-1", store))


def test_the_step_summary_is_appended_to(demo_run, tmp_path, monkeypatch):
    target = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    target.write_text("# another step\n\n")
    assert write_step_summary(demo_run)
    assert write_step_summary(demo_run)
    one = run_markdown(demo_run, full_cases=False).rstrip("\n") + "\n\n"
    assert target.read_text() == "# another step\n\n" + one + one


def test_without_a_place_for_a_summary_nothing_happens(demo_run, tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert not write_step_summary(demo_run)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "such" / "folder.md"))
    assert not write_step_summary(demo_run)
