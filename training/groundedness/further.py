"""Data to train shipped weights further on two cores.

``python -m training.groundedness.further DATA LEXICON PUBLISHED OUT small=TOKENIZER large=TOKENIZER``. ``PUBLISHED`` is a folder with
``vitaminc_real.zip``, ``vitaminc_synthetic.zip`` and ``infotabs`` (its folder ``data``), as their authors published them. ``OUT``
gets one file for each size.

A processor reads a hundredth of what an accelerator reads in the same time. So evidence is cut to the sentences next to what
the claim is about, and of each maker only a share is used: most of what people wrote and the shipped weights have not learned from,
and a little of the rest, so that it is not forgotten.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agentunit_local.grounding.evidence import Context

from training.groundedness import build, revisions, tables
from training.groundedness.groups import Group, Pair

SHARES = {
    "small": {
        "vitaminc_real": 1.0, "vitaminc_synthetic": 0.6, "table": 0.5, "mirrored": 0.15, "denied": 0.15,
        "speakers exchanged": 0.1, "chat edited": 0.15, "reworded": 0.06, "halved": 0.3, "summary": 0.08,
        "summary edited": 0.25, "bridge removed": 0.2, "sentence removed": 0.12, "answer removed": 0.1,
        "definition removed": 0.5, "detail": 0.4, "edited": 0.05, "relevance": 0.06, "question without answer": 0.15,
        "answer": 0.6, "answer to a question": 0.12, "given": 0.09, "long": 0.05,
    },
    "large": {
        "vitaminc_real": 0.8, "vitaminc_synthetic": 0.25, "table": 0.3, "mirrored": 0.04, "denied": 0.08,
        "speakers exchanged": 0.06, "chat edited": 0.08, "reworded": 0.02, "halved": 0.12, "summary": 0.04,
        "summary edited": 0.12, "bridge removed": 0.06, "sentence removed": 0.05, "answer removed": 0.05,
        "definition removed": 0.2, "detail": 0.2, "edited": 0.02, "relevance": 0.02, "question without answer": 0.05,
        "answer": 0.22, "answer to a question": 0.03, "given": 0.03, "long": 0.1,
    },
}  # fmt: skip
"""The share of each maker's groups that is used, drawn by document; ``long``: of given sets of long texts."""
LONG_GIVEN = ("narrativeqa_lt", "pubmedqa_lt", "boolq_lt", "condaqa_yesno")
EVIDENCE_WORDS = (40, 60, 90)
"""How many words of evidence are kept: one of these for all claims about a document."""
SEED = 20261118
_WHOLE = (
    "answer",
    "answer to a question",
    "given",
    "bridge removed",
    "definition removed",
    revisions.MAKER,
    tables.MAKER,
)
"""Makers whose evidence stays whole: people's labels are of all of it, and some claims need two sentences that lie apart."""


def published_groups(published: Path) -> list[Group]:
    """What people wrote and labelled elsewhere, which the first training did not have."""
    found = list(revisions.revised_groups(published / "vitaminc_real.zip"))
    found += revisions.revised_groups(published / "vitaminc_synthetic.zip", weight=0.7)
    found += tables.table_groups(published / "infotabs")
    return found


def chosen(groups: list[Group], shares: Mapping[str, float]) -> list[Group]:
    """The groups that are used. All about one document stay together, and so do a claim's true and false evidence."""
    return [group for group in groups if group.fold != -2 and _draw(group, "share").random() < _share(group, shares)]


def _share(group: Group, shares: Mapping[str, float]) -> float:
    if group.maker == "given" and group.kind in LONG_GIVEN:
        return shares["long"]
    return shares[group.kind if group.maker == revisions.MAKER else group.maker]


def shortened(group: Group) -> Group:
    """A group with less evidence."""
    if group.maker in _WHOLE:
        return group
    words = _draw(group, "length").choice(EVIDENCE_WORDS)
    pairs = []
    for pair in group.pairs:
        context = Context([pair.evidence])
        kept = context.evidence_for(pair.claim.removeprefix("The text answers the question: "), words)
        pairs.append(Pair(" ".join(context.sentences[n].sentence.text for n in kept), pair.claim, pair.wrong))
    return replace(group, pairs=pairs)


def _draw(group: Group, purpose: str) -> random.Random:
    """Chance that is the same for a document and its double, whose numbers are one apart; else for a claim."""
    claims = [pair.claim for pair in group.pairs]
    return random.Random(f"{SEED} {purpose} {group.document >> 1 if group.document >= 0 else claims}")


def write(groups: list[Group], tokenizers: Mapping[str, Path], out: Path) -> None:
    """Choose, shorten, tokenise, write, for each size."""
    with multiprocessing.Pool() as pool:
        for size, tokenizer in tokenizers.items():
            kept = pool.map(shortened, chosen(groups, SHARES[size]), chunksize=256)
            parts = [kept[start : start + 4000] for start in range(0, len(kept), 4000)]
            tokenised = pool.map(build.tokenize, [(part, str(tokenizer)) for part in parts], chunksize=1)
            build.write(kept, [pair for part in tokenised for pair in part], out / f"further-{size}.npz")
            print(size, len(kept), "groups")


if __name__ == "__main__":
    data, lexicon, published_in, folder = map(Path, sys.argv[1:5])
    sizes = {size: Path(file) for size, _, file in (argument.partition("=") for argument in sys.argv[5:])}
    write(build.groups_of(data, lexicon) + published_groups(published_in), sizes, folder)
