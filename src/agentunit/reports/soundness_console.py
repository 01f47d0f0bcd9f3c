"""Whether a test is sound, in the terminal: each fault with its cases, what hangs on it and what to do."""

from __future__ import annotations

from msgspec import structs
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from agentunit.reports.console import print_line
from agentunit.reports.figures import counted
from agentunit.reports.printable import printable_line
from agentunit.reports.reported_run import Mask
from agentunit.soundness.found import Effect, Evidence, Soundness, SoundnessWarning

_WARNINGS_SHOWN = 8
_CASES_SHOWN = 3
_LONGEST_ID = 40
_SHOWN_SHARE = 0.01
_LONGEST_EVIDENCE = 150


def print_soundness(soundness: Soundness, console: Console, *, everything: bool = False) -> None:
    """Print the warnings: the first of them with a few cases each, or everything."""
    print_line(_headline(soundness), console, "bold")
    shown = soundness.warnings if everything else soundness.warnings[:_WARNINGS_SHOWN]
    for number, warning in enumerate(shown, 1):
        _print_warning(number, warning, console, everything=everything)
    left = len(soundness.warnings) - len(shown)
    if soundness.functions_called:
        named = printable_line(", ".join(soundness.functions_called))
        console.print(Text(f"called with answers that no agent gave: {named} (functions of the suite)", style="dim"))
    for reason in soundness.not_examined:
        console.print(Text(f"not examined: {printable_line(reason)}", style="dim"))
    if left > 0 or any(each.n_cases > _CASES_SHOWN for each in shown):
        more = f"{counted(left, 'more warning')}, and " if left > 0 else ""
        console.print(Text(f"{more}all cases: --all, or --json", style="dim"))


def masked(soundness: Soundness, *, show_personal_data: bool) -> Soundness:
    """The same with personal data masked in the evidence, which quotes cases, and in questions that stand for an id."""
    mask = Mask(show_all=show_personal_data)

    def named(case: str) -> str:
        # An id stays, or its case could not be found again; a text with spaces is the question of a case without one.
        return mask.name(case) if " " in case else case

    warnings = [
        structs.replace(
            each,
            cases=[named(case) for case in each.cases],
            evidence=[Evidence(named(one.case), mask.text(one.text)) for one in each.evidence],
        )
        for each in soundness.warnings
    ]
    # Reasons why a part could not be read may quote it.
    return structs.replace(
        soundness, warnings=warnings, not_examined=[mask.name(each) for each in soundness.not_examined]
    )


def _headline(soundness: Soundness) -> str:
    parts = [counted(soundness.n_cases, "case")]
    if soundness.n_runs:
        parts.append(counted(soundness.n_runs, "run"))
    if soundness.rate is not None:
        means = f" by {printable_line(soundness.pass_means)}" if soundness.pass_means else ""
        mean = ", the mean of the runs" if soundness.n_runs > 1 else ""
        parts.append(f"pass rate {soundness.rate:.2f}{means}{mean}")
    found = counted(len(soundness.warnings), "warning") if soundness.warnings else "no warning"
    return f"{', '.join(parts)}: {found} about the test itself"


def _print_warning(number: int, warning: SoundnessWarning, console: Console, *, everything: bool) -> None:
    title = Text(f"{number:2} {printable_line(warning.title)}: ", style="yellow")
    console.print(title.append(counted(warning.n_cases, "case"), style="not bold"))
    shown = warning.evidence if everything else _first_of_each(warning.evidence)[:_CASES_SHOWN]
    for each in shown:
        case = printable_line(each.case, _LONGEST_ID)
        text = printable_line(each.text) if everything else printable_line(each.text, _LONGEST_EVIDENCE)
        console.print(Padding(Text(case, style="bold").append(f"  {text}", style="not bold"), (0, 0, 0, 5)))
    if not everything and warning.n_cases > len(shown):
        console.print(Padding(Text(f"… and {warning.n_cases - len(shown):,} more", style="dim"), (0, 0, 0, 5)))
    console.print(Padding(Text(f"{describe_effect(warning.effect, warning.n_cases)}; {warning.advice}"), (0, 0, 0, 3)))


def _first_of_each(evidence: list[Evidence]) -> list[Evidence]:
    return list({each.case: each for each in reversed(evidence)}.values())[::-1]


def describe_effect(effect: Effect, n_cases: int) -> str:
    """How much of the headline hangs on the cases of a warning, in words.

    >>> describe_effect(Effect(0.06, 0.71, 0.78, 4), 3)
    'without these 3 cases the pass rate is 0.78 instead of 0.71'
    >>> describe_effect(Effect(0.06), 3)
    'up to 0.06 of a pass rate depends on them'
    >>> describe_effect(Effect(0.0001), 1)
    'less than 0.01 of a pass rate depends on it'
    >>> describe_effect(Effect(0.5, n_tried=200), 100)
    '100 of the 200 cases that were tried: about 0.50 of a pass rate depends on such cases'
    """
    if effect.n_tried is not None:
        tried = f"{n_cases:,} of the {effect.n_tried:,} cases that were tried"
        return f"{tried}: about {effect.share:.2f} of a pass rate depends on such cases"
    these = "this case" if n_cases == 1 else f"these {n_cases:,} cases"
    if effect.rate is None or effect.rate_without is None:
        most = f"up to {effect.share:.2f}" if effect.share >= _SHOWN_SHARE else f"less than {_SHOWN_SHARE}"
        return f"{most} of a pass rate depends on {'it' if n_cases == 1 else 'them'}"
    if round(effect.rate, 2) == round(effect.rate_without, 2):
        return f"the pass rate is {effect.rate:.2f} with and without {these}"
    return f"without {these} the pass rate is {effect.rate_without:.2f} instead of {effect.rate:.2f}"
