"""One case in the terminal: everything needed to understand why it went as it did."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from agentunit.metrics.base import MetricInfo
from agentunit.reports.case_view import (
    CaseView,
    Part,
    ScoreView,
    ToolCallView,
    TurnView,
    describe_own_threshold,
    plain,
    repeat_name,
)
from agentunit.reports.detail_text import claim_lines, comparison_line, in_words, without_internals
from agentunit.reports.figures import counted, duration, quantity
from agentunit.reports.printable import clipped, printable, printable_line
from agentunit.reports.terminal import Column, Terminal, Text, TextTable
from agentunit.store.labels import StoredLabel

_TEXT_LENGTH = 1_200
_PASSAGES_SHOWN = 8
_CALLS_SHOWN = 30
_ENTRIES_SHOWN = 40
_TURNS_SHOWN = 30
_LINKS_SHOWN = 20
_LANE_BLOCKS_SHOWN = 3
_VALUE_LENGTH = 300
_SHORT_LENGTH = 40
_SIDE_BY_SIDE_WIDTH = 90
_BETWEEN_SIDES = 4
_STATUS_STYLE = {"ok": "", "informational": "dim", "not_applicable": "dim", "error": "red"}


def print_case(
    view: CaseView, infos: Mapping[str, MetricInfo], console: Terminal, *, run_id: str = "", full: bool = False
) -> None:
    """Print one case. Long texts are cut unless ``full``; nothing in them reaches the terminal as a command."""
    page = _Page(console, infos, full)
    page.heading(view, run_id)
    if view.turns:
        page.conversation(view.turns)
    else:
        page.text("Question", view.query)
    if not view.recorded:
        console.print("a score table has the scores only: 'agentunit show TRACES CASE' shows the record", style="dim")
    elif not view.turns or view.expected:
        page.answer(view)
    page.passages(view.context)
    page.tool_calls(view.tool_calls)
    page.timeline(view)
    page.agents(view)
    for name, text in view.printed.items():
        page.text(f"Printed ({printable_line(name)})", text)
    page.scores(view.scores)
    page.labels(view.labels)
    page.judge_calls(view.scores)
    for name, data in (("State", view.state), ("Case", view.case_metadata), ("Trace", view.trace_metadata)):
        page.data(name, data)
    if page.cut:
        console.print("\n--why shows everything: whole texts and every detail of the scores", style="dim")


class _Page:
    """What is printed on, and whether anything had to be cut."""

    def __init__(self, console: Terminal, infos: Mapping[str, MetricInfo], full: bool) -> None:
        self.console = console
        self.cut = False
        self._infos = infos
        self._full = full
        # Where colors do not show, differences are marked with signs.
        self._signs = not console.shows_colors

    def heading(self, view: CaseView, run_id: str) -> None:
        facts = [f"case {view.position + 1}"]
        if run_id:
            took = [duration(view.elapsed_s)] if view.recorded or view.elapsed_s else []
            facts += [repeat_name(view.repeat - 1), *took, f"run {printable_line(run_id)}"]
        if view.attempts:
            facts.append(counted(view.attempts, "attempt"))
        line = Text(printable_line(view.case_id), style="bold")
        line.append("   " + " · ".join(facts), style="not bold dim")
        self.console.print(line, soft_wrap=True)
        if view.failed or view.error:
            kind = f" ({printable_line(view.failure)})" if view.failure else ""
            what = "the agent failed" if view.failed else "the agent reports an error"
            self.console.print(Text(f"{what}{kind}", style="bold red"))
            self._block(view.error)
        if view.user_failure:
            self.console.print(Text("not scored: the simulated user failed", style="bold yellow"))
            self._block(view.user_failure.partition(": ")[2])
        for number, earlier in enumerate(view.earlier_failures, 1):
            self._block(f"attempt {number}: {earlier}")

    def text(self, title: str, text: str | None) -> None:
        if text:
            self._title(title)
            self._block(text)

    def conversation(self, turns: Sequence[TurnView]) -> None:
        self._title("Conversation")
        grid = _grid(3)
        for turn in self._first(turns, _TURNS_SHOWN):
            grid.add_row(Text(str(turn.number), style="dim"), Text("user", style="dim"), Text(self._clip(turn.query)))
            names = ", ".join(
                printable_line(call.name) + ("" if call.ok is not False else " ✗") for call in turn.tool_calls
            )
            if names:
                grid.add_row("", Text("tools", style="dim"), Text(self._clip(names, _VALUE_LENGTH), style="dim"))
            answer = Text("(no answer)", style="red") if turn.answer is None else Text(self._clip(turn.answer))
            grid.add_row("", Text("agent", style="dim"), answer)
            if turn.expected:
                grid.add_row(
                    "", Text("expected", style="dim"), Text(self._clip(" | ".join(turn.expected)), style="green")
                )
        self._print_grid(grid, len(turns) - _TURNS_SHOWN, "turn")

    def answer(self, view: CaseView) -> None:
        answer = self._marked(view.answer, view.answer_parts, "red", ("[-", "-]"))
        if not view.expected:
            self._title("Answer")
            self.console.print(answer, indent=2)
            return
        expected = (
            self._marked(view.expected[0], view.expected_parts, "green", ("{+", "+}"))
            if len(view.expected) == 1
            else Text("\n".join(f"or  {self._clip(each)}" for each in view.expected).removeprefix("or  "))
        )
        if self.console.width >= _SIDE_BY_SIDE_WIDTH:
            half = self.console.width // 2 - _BETWEEN_SIDES // 2
            beside = TextTable(Column("Answer", width=half), Column("Expected", width=half), gap=_BETWEEN_SIDES)
            beside.add_row(answer, expected)
            self.console.print()
            self.console.print(beside)
        else:
            for title, shown in (("Answer", answer), ("Expected", expected)):
                self._title(title)
                self.console.print(shown, indent=2)
        if any(not same and part.strip() for part, same in (*view.answer_parts, *view.expected_parts)):
            ways = ("[-…-]", "{+…+}") if self._signs else ("red", "green")
            said = f"{ways[0]}: only in the answer; {ways[1]}: only in what was expected"
            self.console.print(f"  {said}", style="dim")

    def passages(self, passages: Sequence[str]) -> None:
        if not passages:
            return
        self._title("Context")
        grid = _grid(2)
        # As details name them: context[0], passage 0.
        for number, passage in enumerate(self._first(passages, _PASSAGES_SHOWN)):
            grid.add_row(Text(str(number), style="dim"), Text(self._clip(passage)))
        self._print_grid(grid, len(passages) - _PASSAGES_SHOWN, "passage")

    def tool_calls(self, calls: Sequence[ToolCallView]) -> None:
        if not calls:
            return
        self._title("Tool calls")
        grid = _grid(2)
        for call in self._first(calls, _CALLS_SHOWN):
            mark, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("?", "yellow")}[call.ok]
            grid.add_row(Text(mark, style=style), Text.stacked(self._call_lines(call)))
        self._print_grid(grid, len(calls) - _CALLS_SHOWN, "call")

    def timeline(self, view: CaseView) -> None:
        if not view.timeline:
            return
        self._title("Timeline")
        grid = _grid(3)
        grid.columns[0].right = True
        for entry in self._first(view.timeline, _ENTRIES_SHOWN):
            offset = "" if entry.offset_s is None else f"+{entry.offset_s:.2f} s"
            style = "red" if entry.failed else ""
            most = None if self._full else 160
            grid.add_row(
                Text(offset, style="dim"),
                Text(printable_line(entry.kind), style="dim"),
                Text(printable_line(entry.label, most), style=style),
            )
        self._print_grid(grid, len(view.timeline) - _ENTRIES_SHOWN, "entry")

    def agents(self, view: CaseView) -> None:
        if not view.agents:
            return
        # Most cases have one agent.
        from agentunit.reports._agents_console import BOTTLENECK, agents_grid, lane_blocks, links_grid, signs_used

        self._title("Agents")
        bottlenecks = view.network.bottlenecks if view.network else []
        self.console.print(agents_grid(view.agents, bottlenecks), indent=2)
        if bottlenecks:
            self.console.print(f"  {BOTTLENECK} a bottleneck: others need it to reach each other", style="dim")
        if view.network and view.network.links:
            self._title("Who writes to whom")
            links = view.network.links
            grid = links_grid(self._first(links, _LINKS_SHOWN), max(link.weight for link in links))
            self._print_grid(grid, len(links) - _LINKS_SHOWN, "link")
        if view.lanes and view.lanes.marks:
            self._title("Lanes")
            blocks = lane_blocks(view.lanes, self.console.width - 2)
            for block in self._first(blocks, _LANE_BLOCKS_SHOWN):
                self.console.print(block, indent=2)
            if not self._full and len(blocks) > _LANE_BLOCKS_SHOWN:
                self.cut = True
                self.console.print("  … and so on", style="dim")
            self.console.print(Text(f"  {signs_used(view.lanes)}", style="dim"))

    def scores(self, scores: Sequence[ScoreView]) -> None:
        self._title("Scores")
        if not scores:
            self.console.print("  none yet: 'agentunit score' makes them", style="dim")
            return
        grid = _grid(3)
        claims_of: dict[str, Any] = {}
        for score in scores:
            style = _STATUS_STYLE.get(score.status, "")
            info = self._infos.get(score.metric)
            value = "–" if score.value is None else quantity(score.value, info.unit if info else "score")
            amount = None if info is None or info.amount is None else score.detail.get(info.amount[0])
            if isinstance(amount, (int, float)) and info is not None and info.amount is not None:
                value = quantity(float(amount), info.amount[1])
            about = [printable_line(score.backend)]
            if score.status != "ok":
                about.append(score.status.replace("_", " "))
            if said := describe_own_threshold(score, info):
                about.append(printable_line(said))
            lines = [Text(", ".join(about), style="dim")]
            if score.reason:
                lines.append(Text(self._clip(score.reason), style=style))
            if isinstance(turns := score.detail.get("turns"), list):
                lines += [Text(f"turn {line}") for line in _turn_lines(turns, info.unit if info else "score")]
            claims = score.detail.get("claims")
            same = next((metric for metric, each in claims_of.items() if claims and each == claims), None)
            claims_of[score.metric] = claims
            lines += self._score_detail(score, same)
            grid.add_row(
                Text(printable_line(score.metric), style=style or "bold"), Text(value, style=style), Text.stacked(lines)
            )
        self._print_grid(grid, 0, "score")

    def labels(self, labels: Sequence[StoredLabel]) -> None:
        """What people said of the answer, who and when."""
        if not labels:
            return
        self._title("Labels")
        grid = _grid(3)
        for label in labels:
            said = "skipped" if label.value is None else {1.0: "yes", 0.0: "no"}.get(label.value, f"{label.value:g}")
            when = datetime.fromtimestamp(label.made_at).astimezone().strftime("%Y-%m-%d %H:%M")
            about = Text(f"{printable_line(label.rater)}, {when}, {printable_line(label.source)}", style="dim")
            if label.note:
                about.append(f"\n{self._clip(label.note)}", style="not dim")
            grid.add_row(Text(printable_line(label.metric), style="bold"), Text(said), about)
        self._print_grid(grid, 0, "label")

    def judge_calls(self, scores: Sequence[ScoreView]) -> None:
        """What a judge was asked and said, call by call; the instructions, always alike, only at full length."""
        for score in scores:
            if score.judge_calls:
                self._title(f"Judge calls of {printable_line(score.metric)}")
            for number, call in enumerate(score.judge_calls, 1):
                tried = call.get("attempts")
                facts = [
                    str(call.get("purpose") or ""),
                    f"sample {call['sample'] + 1}" if isinstance(call.get("sample"), int) else "",
                    str(call.get("model") or ""),
                    "from the cache" if call.get("cached") else "",
                    f"{len(tried)} attempts" if isinstance(tried, list) and len(tried) > 1 else "",
                ]
                line = " · ".join(fact for fact in facts if fact)
                self.console.print(f"  {number}  {printable_line(line)}", style="dim")
                texts = [("asked", call.get("user")), ("reply", call.get("reply")), ("problem", call.get("problem"))]
                for name, text in [("instructions", call.get("system")), *texts] if self._full else texts:
                    if isinstance(text, str) and text:
                        shown = Text(f"{name}: ", style="dim").append(self._clip(text), style="not dim")
                        self.console.print(shown, indent=5)

    def data(self, title: str, data: dict[str, Any] | None) -> None:
        if data:
            self._title(title)
            self.console.print(Text.stacked(self._detail_lines(data)), indent=2)

    def _call_lines(self, call: ToolCallView) -> Iterator[Text]:
        if isinstance(call.arguments, dict):
            inside = ", ".join(
                f"{printable_line(str(key))}={self._value(value)}" for key, value in call.arguments.items()
            )
        else:
            inside = "" if call.arguments is None else self._value(call.arguments, as_json=True)
        by = f"  by {printable_line(call.agent)}" if call.agent else ""
        yield Text(f"{printable_line(call.name)}({inside})").append(by, style="dim")
        if call.status and call.ok is not True and not call.error:
            yield Text(f"status: {printable_line(call.status)}", style="red")
        if call.error:
            yield Text(f"error: {self._clip(call.error)}", style="red")
        if call.result is not None:
            yield Text(f"→ {self._value(call.result, as_json=True)}", style="dim")

    def _score_detail(self, score: ScoreView, same_claims: str | None) -> list[Text]:
        """The lines about a score; ``same_claims`` is a metric above it that has the same claims."""
        detail = score.detail
        if self._full:
            return self._detail_lines(detail)
        useful = without_internals(detail)
        if len(useful) < len(detail):
            self.cut = True
        claims = claim_lines(useful.get("claims"))
        left_out = {"turns", "claims"} if claims else {"turns"}
        if claims and same_claims is not None:
            claims = [f"the same claims as {printable_line(same_claims)}"]
        compared = comparison_line(detail) if score.metric == "answer_correctness" else None
        if compared is not None:
            claims.insert(0, compared)
            left_out.add("rule")
        lines = self._detail_lines({key: value for key, value in useful.items() if key not in left_out})
        return [*(Text(line) for line in claims), *lines]

    def _detail_lines(self, detail: dict[str, Any]) -> list[Text]:
        """One line for all short facts together, and one for each of the others."""
        together = Text()
        lines: list[Text] = []
        for key, value in detail.items():
            if value is None or value in ({}, []):
                continue
            short = isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= _SHORT_LENGTH)
            line = together if short else Text()
            if line:
                line.append(" · ", style="dim")
            name = printable_line(str(key))
            line.append(f"{name if self._full else name.replace('_', ' ')} ", style="dim").append(self._value(value))
            if not short:
                lines.append(line)
        return [together, *lines] if together else lines

    def _value(self, value: Any, *, as_json: bool = False) -> str:
        if isinstance(value, float):
            return f"{value:.6g}"
        if isinstance(value, str):
            return f'"{self._clip(value, _VALUE_LENGTH)}"'
        if not self._full and not as_json:
            words = in_words(value)
            self.cut = self.cut or "…" in words
            return self._clip(words, _VALUE_LENGTH)
        try:
            text = json.dumps(plain(value), ensure_ascii=False, indent=2 if self._full and _is_deep(value) else None)
        except RecursionError:
            return "(nested too deeply to show)"
        return self._clip(text, _VALUE_LENGTH)

    def _marked(self, text: str | None, parts: Sequence[Part], colour: str, signs: tuple[str, str]) -> Text:
        if text is None:
            return Text("(none)", style="dim")
        if not parts or (not self._full and len(text) > _TEXT_LENGTH):
            return Text(self._clip(text))
        marked = Text()
        for part, same in parts:
            shown = printable(part)
            if same or not shown.strip():
                marked.append(shown)
            elif self._signs:
                marked.append(f"{signs[0]}{shown}{signs[1]}")
            else:
                marked.append(shown, style=f"bold {colour}")
        return marked

    def _clip(self, text: str, most: int = _TEXT_LENGTH) -> str:
        shown, left_off = (text, 0) if self._full else clipped(text, most)
        if left_off:
            self.cut = True
        return printable(shown) + (f"… ({left_off:,} more)" if left_off else "")

    def _first(self, entries: Sequence[Any], most: int) -> Sequence[Any]:
        return entries if self._full else entries[:most]

    def _print_grid(self, grid: TextTable, n_left: int, noun: str) -> None:
        self.console.print(grid, indent=2)
        if n_left > 0 and not self._full:
            self.cut = True
            self.console.print(
                f"  … {counted(n_left, f'more {noun}', 'more entries' if noun == 'entry' else None)}",
                style="dim",
            )

    def _title(self, title: str) -> None:
        self.console.print(f"\n{title}", style="bold")

    def _block(self, text: str | None) -> None:
        if text:
            self.console.print(Text(self._clip(text)), indent=2)


def _grid(n_columns: int) -> TextTable:
    return TextTable(*(Column(no_wrap=column < n_columns - 1) for column in range(n_columns)))


def _turn_lines(turns: Sequence[Any], unit: str) -> Iterator[str]:
    """What each turn of a conversation was scored, or why it was not."""
    for each in turns:
        if isinstance(each, dict) and "turn" in each:
            value = each.get("value")
            why = printable_line(str(each.get("reason") or "–"), 200)
            yield f"{each['turn']}: {quantity(value, unit) if isinstance(value, (int, float)) else why}"


def _is_deep(value: Any) -> bool:
    return isinstance(value, (dict, list)) and any(isinstance(each, (dict, list)) for each in _members(value))


def _members(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value
