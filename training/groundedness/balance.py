"""Takes away what the words of a claim alone tell about its label.

A classifier over the claims' words, without any evidence, should know nothing: where it does, a model learns that "not"
or "most" are signs of a falsehood, which is true of made data only. Made claims that give themselves away are dropped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from training.groundedness.agreement import auroc
from training.groundedness.groups import Group, number_of

MOST = 0.57
"""The AUROC of claims' words that is left standing in any maker's claims."""
_PARTS = 4
_SHARE = 0.08


def told_by_words(groups: Sequence[Group], seed: int = 1) -> np.ndarray:
    """How true the words of each claim make it look, by what other documents' claims show."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import LogisticRegression

    words = HashingVectorizer(
        n_features=2**14, ngram_range=(1, 2), alternate_sign=False, norm="l2", token_pattern=r"\S+"
    )
    inputs = words.transform([group.pairs[0].claim.replace(".", " .").replace(",", " ,") for group in groups])
    labels = np.array([group.label >= 0.5 for group in groups])
    # Claims about one thing stand in one part: else a classifier would know a claim from its double with the other label.
    parts = np.array([number_of(f"{seed} {group.pairs[0].claim[:24].lower()}") for group in groups]) % _PARTS
    told = np.zeros(len(groups))
    for part in range(_PARTS):
        train, tested = parts != part, parts == part
        if tested.any() and len(set(labels[train])) == 2:
            model = LogisticRegression(C=2.0, max_iter=80).fit(inputs[train], labels[train])
            told[tested] = model.decision_function(inputs[tested])
    return told


def balanced(groups: Sequence[Group]) -> list[Group]:
    """The groups without the made claims that give themselves away, in their order: neighbours share evidence."""
    gone = set()
    for some in _by_maker(groups).values():
        gone |= {id(group) for group in some} - {id(group) for group in _dropped_down(some)}
    return [group for group in groups if id(group) not in gone]


def _by_maker(groups: Sequence[Group]) -> dict[str, list[Group]]:
    """Groups by how they came about; those that were given, by the set they are from."""
    found: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        if group.pairs:
            found[group.maker if group.maker != "given" else f"given: {group.kind}"].append(group)
    return found


def _dropped_down(some: list[Group]) -> list[Group]:
    for _ in range(14):
        if len(some) < 200 or len({group.label for group in some}) < 2:
            return some
        told = told_by_words(some)
        labels = np.array([group.label for group in some])
        if auroc(labels, told) < MOST:
            return some
        gives_away = np.where(labels >= 0.5, told, -told)
        # As many of both labels go, so that neither becomes the rule.
        gone: set[int] = set()
        for label in (0.0, 1.0):
            here = np.flatnonzero(labels == label)
            count = int(_SHARE * min((labels == 0).sum(), (labels == 1).sum()))
            gone |= set(here[np.argsort(-gives_away[here])][:count].tolist())
        some = [group for number, group in enumerate(some) if number not in gone]
    return some


def table(groups: Sequence[Group]) -> str:
    """Makers with the number of their groups, the share that is true, and what the words of claims alone tell."""
    by_maker = _by_maker(groups)
    lines = [f"{'maker':34} {'groups':>8} {'true':>6} {'words':>6}"]
    for maker, some in sorted(by_maker.items()):
        labels = np.array([group.label >= 0.5 for group in some])
        known = len(some) >= 100 and 0 < labels.sum() < len(some)
        area = f"{auroc(labels.astype(float), told_by_words(some)):6.2f}" if known else "     –"
        lines.append(f"{maker:34} {len(some):8} {labels.mean():6.2f} {area}")
    return "\n".join(lines)
