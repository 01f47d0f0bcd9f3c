"""Data to train shipped weights further on two cores: ``python -m training.groundedness.further DATA LEXICON OUT TOKENIZER …``.

A processor reads a hundredth of what an accelerator reads in the same time. So evidence is cut to the sentences next to what
the claim is about, and of each maker only a share is used: most of those that the shipped weights have not learned from, and a
little of the others, so that they are not forgotten. ``OUT`` gets one file for each tokenizer, in their order.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
from dataclasses import replace
from pathlib import Path

from agentunit_local.grounding.evidence import Context

from training.groundedness import build
from training.groundedness.groups import Group, Pair

SHARES = {
    "mirrored": 0.8, "denied": 0.6, "speakers exchanged": 0.4, "chat edited": 0.5, "reworded": 0.3, "halved": 1.0,
    "summary": 0.3, "summary edited": 0.8, "bridge removed": 0.6, "sentence removed": 0.4, "answer removed": 0.4,
    "definition removed": 1.0, "detail": 1.0, "edited": 0.2, "relevance": 0.15, "question without answer": 0.7,
    "answer": 1.0, "answer to a question": 0.3, "given": 0.35,
}  # fmt: skip
"""The share of each maker's groups that is used, drawn by document."""
LONG_GIVEN = ("narrativeqa_lt", "pubmedqa_lt", "boolq_lt", "condaqa_yesno")
"""Given sets of long texts, of which a tenth is used."""
EVIDENCE_WORDS = (60, 90, 130)
"""How many words of evidence are kept: one of these for all claims about a document."""
SEED = 20261118
_WHOLE = ("answer", "answer to a question", "given", "bridge removed", "definition removed")
"""Makers whose evidence stays whole: people's labels are of all of it, and some claims need two sentences that lie apart."""


def chosen(groups: list[Group]) -> list[Group]:
    """The groups that are used. All about one document stay together, and so do a claim's true and false evidence."""
    found = []
    for group in groups:
        share = 0.1 if group.kind in LONG_GIVEN and group.maker == "given" else SHARES[group.maker]
        if group.fold != -2 and _draw(group, "share").random() < share:
            found.append(group)
    return found


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


def write(groups: list[Group], tokenizers: list[Path], out: Path) -> None:
    """Choose, shorten, tokenise, write."""
    with multiprocessing.Pool() as pool:
        kept = pool.map(shortened, chosen(groups), chunksize=256)
        parts = [kept[start : start + 4000] for start in range(0, len(kept), 4000)]
        for number, tokenizer in enumerate(tokenizers, 1):
            tokenised = pool.map(build.tokenize, [(part, str(tokenizer)) for part in parts], chunksize=1)
            build.write(kept, [pair for part in tokenised for pair in part], out / f"further-{number}.npz")
    print(len(kept), "groups")


if __name__ == "__main__":
    data, lexicon, folder, *files = map(Path, sys.argv[1:])
    write(build.groups_of(data, lexicon), files, folder)
