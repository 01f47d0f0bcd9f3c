"""One case as a rater sees it: what was asked, what came out, and the evidence.

No score is on the page, and no doubtful word is marked before the rater asks for it or has answered: a rater who knows
what the scorer says would agree with it too often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from agentunit.core.outcome import outcome_text
from agentunit.metrics.base import MetricInfo
from agentunit.reports.case_view import Part, ToolCallView, conversation_text, view_case
from agentunit.reports.doubts import doubted_claims
from agentunit.reports.printable import printable, printable_line
from agentunit.reports.reported_run import Mask, ReportedCase

_VALUE_LENGTH = 400


class LabelPage(Struct):
    """What a rater reads of one case; ``answer`` is cut into parts, each with whether nothing in it is doubted."""

    case_id: str
    question: str
    answer: list[Part]
    expected: list[str] = field(default_factory=list)
    criteria: list[str] = field(default_factory=list)
    evidence: list[tuple[str, str]] = field(default_factory=list)


def label_page(recorded: ReportedCase, info: MetricInfo, mask: Mask, *, marked: bool = False) -> LabelPage:
    """The page of one case for one metric, masked; what the metric does not look at is left out.

    ``marked``: with what the scorer doubts in the answer.
    """
    case = mask.case(recorded)
    view = view_case(case, brief=True)
    score = case.scores.get(info.name)
    detail = {} if score is None else score.result.detail
    answer = view.answer or ""
    reads = " ".join(info.inputs)
    texts, sources = _texts(detail.get("references")), _texts(detail.get("sources"))
    if not texts and "expected_output" not in reads:
        texts, sources = view.context, []
        calls = [(f'tool "{call.name}"', _result_of(call)) for call in view.tool_calls]
    else:
        calls = []
    named = [sources[at] if at < len(sources) else f"passage {at}" for at in range(len(texts))]
    return LabelPage(
        case.case_id,
        conversation_text(view.turns) if view.turns else view.query or "",
        marked_doubts(answer, detail if marked else {}, outcome_text(recorded.record.outcome), info.direction),
        view.expected if "expected_output" in reads or info.name == "task_success" else [],
        _texts(detail.get("criteria")),
        [*zip(named, texts, strict=True), *calls],
    )


def marked_doubts(
    answer: str, detail: Mapping[str, Any], scored: str | None = None, direction: str = "higher"
) -> list[Part]:
    """The answer cut where the scorer doubts it: its doubtful words, or a whole claim that nothing supports.

    ``scored`` and ``direction`` are those of ``doubted_claims``.

    >>> claim = {"text": "It costs 9 €.", "probability": 0.2, "doubtful": [{"start": 14, "end": 17}]}
    >>> marked_doubts("Yes. It costs 9 €.", {"claims": [claim]})
    [('Yes. It costs ', True), ('9 €', False), ('.', True)]
    """
    doubted = bytearray(len(answer))
    for claim in doubted_claims(answer, detail, direction, scored):
        for start, end in [(each.start, each.end) for each in claim.words] or [(claim.start, claim.end)]:
            doubted[start:end] = b"\1" * (end - start)
    parts: list[Part] = []
    start = 0
    for at in range(1, len(answer) + 1):
        if at == len(answer) or doubted[at] != doubted[start]:
            parts.append((answer[start:at], not doubted[start]))
            start = at
    return parts


def page_blocks(page: LabelPage, *, signs: bool) -> Group:
    """The page for a terminal. With ``signs``, where colors do not show, doubts are put in [? ?]."""
    blocks: list[RenderableType] = []

    def section(title: str, body: RenderableType) -> None:
        blocks.extend([Text(title, style="bold"), Padding(body, (0, 0, 1, 2), expand=False)])

    section("Question", Text(printable(page.question) or "(none)"))
    answer = Text()
    for part, is_sure in page.answer:
        shown = printable(part)
        if is_sure or not shown.strip():
            answer.append(shown)
        else:
            answer.append(f"[?{shown}?]" if signs else shown, style="" if signs else "bold yellow underline")
    section("Answer", answer or Text("(none)", style="dim"))
    if page.expected:
        section("Expected", Text("\nor  ".join(map(printable, page.expected)), style="green"))
    if page.criteria:
        section("Criteria", Text("\n".join(map(printable, page.criteria))))
    for source, text in page.evidence:
        section(f"Evidence: {printable_line(source, 60)}", Text(printable(text)))
    return Group(*blocks)


def rendered_lines(page: LabelPage, console: Console) -> list[str]:
    """The page as lines of the console's width, to scroll through."""
    signs = console.no_color or console.color_system is None
    with console.capture() as captured:
        console.print(page_blocks(page, signs=signs))
    return [line.rstrip() for line in captured.get().rstrip().split("\n")]


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, (list, tuple)) else []


def _result_of(call: ToolCallView) -> str:
    if call.error:
        return f"error: {call.error}"
    return printable_line(str(call.result if call.result is not None else call.status or "?"), _VALUE_LENGTH)
