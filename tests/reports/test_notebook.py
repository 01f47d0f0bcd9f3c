from __future__ import annotations

from html.parser import HTMLParser

from agentunit import MetricResult, score
from agentunit.engine.deciding.comparison import CaseDifference, Comparison, MetricComparison

HOSTILE = "<img src=x onerror=alert(1)>'\"&\x1b[31m"
TAGS = {"div", "p", "strong", "span", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}


class Tags(HTMLParser):
    """What a browser would make of markup: its elements, its attributes and its text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


class Hostile:
    name = f"hostile {HOSTILE}"

    def evaluate(self, case: object, trace: object, outcome: object) -> MetricResult:
        return MetricResult(self.name, None, {"reason": f"{HOSTILE} ada@example.org"})


def test_a_run_shows_itself_without_being_scored_by_it() -> None:
    run = score([{"case": {"id": "q1", "expected_output": "4"}, "outcome": "4"}], ["answer_correctness"])
    assert "run.summary() scores the rest" in run._repr_html_()
    assert run.n_cases == 0
    summary = run.summary()
    for shown in (run, summary):
        text = Tags(shown._repr_html_()).text
        assert "answer_correctness ↑" in text
        assert "1.00" in text
        assert "1 case" in text


def test_what_records_wrote_is_text_and_masked() -> None:
    run = score([{"case": {"id": "q1"}, "outcome": "4"}], [Hostile()])
    run.summary()
    seen = Tags(run._repr_html_())
    assert seen.names <= TAGS
    assert seen.attributes <= {"class", "style", "scope"}
    assert "<img src=x onerror=alert(1)>" in seen.text
    assert "\x1b" not in seen.text
    assert "ada@example.org" not in seen.text
    assert "<EMAIL_1>" in seen.text


def test_a_comparison_names_the_cases_that_changed() -> None:
    comparison = Comparison(
        "a", f"b{HOSTILE}", 9, 0, 0, 0.05,
        (MetricComparison("contains", "check", "regression", "so it is", True, "higher", difference=-0.5),),
        differences=(CaseDifference(f"q7{HOSTILE}", "broken"),), n_by_kind={"broken": 1, "unchanged": 8},
    )  # fmt: skip
    seen = Tags(comparison._repr_html_())
    assert seen.names <= TAGS
    assert "Broken (1): q7<img" in seen.text
    assert "-0.500" in seen.text
