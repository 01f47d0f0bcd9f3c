"""Write the pages of docs/ that are made from the code: ``python -m scripts.generate_docs [--check]``."""

from __future__ import annotations

import sys
from pathlib import Path

from agentunit.metrics.base import MetricInfo, describe
from agentunit.metrics.registry import DEFAULT_METRICS, MetricRegistry, parameter_defaults
from agentunit.metrics.trust import trust_words
from agentunit.reports.catalog import known_backends, spoken_direction, spoken_range

DOCS = Path(__file__).resolve().parent.parent / "docs"


def metrics_page() -> str:
    """The metrics page: one table, then a card for each metric."""
    # Only AgentUnit's own metrics: what else is installed on the machine that writes the docs must not show.
    own = MetricRegistry(entry_point_group=None)
    metrics = [own.create(name) for name in own.names()]
    lines = [
        "# Metrics",
        "",
        "*This page is generated from the metrics themselves (`make docs`); do not edit it by hand.*",
        "",
        "A score is a number, or `None` with a reason. ↑ higher is better, ↓ lower is better, * in the standard set.",
        "`agentunit metrics NAME` prints the same in a terminal. What the trust column means: [validity](validity.md).",
        "",
        "| metric | family | range | trust | what it says |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(describe(metric)) for metric in metrics]
    for metric in metrics:
        lines += ["", *_card(metric)]
    return "\n".join(lines) + "\n"


def _row(info: MetricInfo) -> str:
    mark = {"higher": " ↑", "lower": " ↓", "none": ""}[info.direction]
    star = " *" if info.name in DEFAULT_METRICS else ""
    cells = (
        f"[`{info.name}`](#{info.name}){mark}{star}",
        info.family,
        spoken_range(info),
        trust_words(info, info.backend),
        info.summary,
    )
    return f"| {' | '.join(cells)} |"


def _card(metric: object) -> list[str]:
    info = describe(metric)
    prose = (type(metric).__doc__ or "").partition(">>>")[0]
    prose = "\n".join(line.strip() for line in prose.strip().splitlines()).replace("``", "`")
    defaults = parameter_defaults(metric)
    spoken_parameters = ", ".join(f"`{name}={value!r}`" for name, value in defaults.items()) or "none"
    trust = [
        f"`{backend}`: {trust_words(info, backend, at_length=True)}"
        + (" (informational: shown, gated only when named)" if backend in info.informational else "")
        for backend in known_backends(info)
    ]
    return [
        f"## {info.name}",
        "",
        f"`{type(metric).__module__}.{type(metric).__qualname__}`",
        "",
        prose,
        "",
        f"- range: {spoken_range(info)}; {spoken_direction(info.direction)}",
        f"- needs: {'; '.join(info.inputs) or 'nothing'}",
        *_answer_keys(info),
        f"- parameters: {spoken_parameters}",
        f"- detail: {', '.join(f'`{key}`' for key in [*info.detail_keys, 'backend'])}",
        f"- trust: {'; '.join(trust)}",
    ]


def _answer_keys(info: MetricInfo) -> list[str]:
    keys = [f"`{key}`" for key, use in info.metadata_inputs.items() if use == "answer_key"]
    return [f"- answer keys in the metadata, which agents do not receive: {', '.join(keys)}"] if keys else []


PAGES = {"metrics.md": metrics_page}


def main() -> int:
    """Write the pages, or with ``--check`` say which are stale."""
    stale = []
    for name, make in PAGES.items():
        page, text = DOCS / name, make()
        if page.exists() and page.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            page.write_text(text, encoding="utf-8")
            print(f"wrote docs/{name}")
    if stale and "--check" in sys.argv:
        print(f"stale: {', '.join(stale)}; write them anew with: make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
