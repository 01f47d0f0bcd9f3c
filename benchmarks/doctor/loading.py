"""Rows of public suites as the cases of a dataset."""

from __future__ import annotations

from typing import Any

from agentunit.core.case import DatasetCase
from agentunit.datasets.readers import DatasetError, load_dataset


def loaded(cases: list[dict[str, Any]]) -> list[DatasetCase]:
    """The cases as a dataset; ids that stand there twice are made different, which a dataset demands."""
    seen: dict[str, int] = {}
    for case in cases:
        seen[case["id"]] = seen.get(case["id"], 0) + 1
        if seen[case["id"]] > 1:
            case["id"] = f"{case['id']}#{seen[case['id']]}"
    return load_dataset(cases)


def repeated_ids(cases: list[dict[str, Any]]) -> list[str]:
    """The id that a dataset of these cases is refused for, because two cases have it."""
    try:
        load_dataset(cases)
    except DatasetError as error:
        return [case["id"] for case in cases if f"id {case['id']!r} is taken" in str(error)][:1]
    return []
