"""Several judges on one question: whom to ask, and what their verdicts make together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import fsum, isfinite
from typing import Any, Literal

from agentunit.backends.quality import Verdict

FAR_APART = 0.5
"""Values at least this far apart are a disagreement: half of the way from the worst to the best."""
VOTES = ("mean", "majority")
Vote = Literal["mean", "majority"]
_PASS = 0.5
# What holds for a panel as a whole.
OF_THE_PANEL = (
    "judges", "quorum", "vote", "repeats", "transcripts", "max_spend_usd", "run_timeout_s", "cache", "cache_max_mb"
)  # fmt: skip
_OWN = ("name", "weight")
# What was set for one address, and goes to no other.
_OF_THE_ADDRESS = ("api_key", "api_key_env", "headers", "organization", "profile", "extra_body")


@dataclass(frozen=True)
class Member:
    """A judge of a panel: what it is called, how much its word counts, and how it is asked (``JudgeSettings``)."""

    name: str
    weight: float
    settings: Any


def checked_judges(received: Any) -> tuple[dict[str, Any], ...]:
    """The judges of a panel as settings each: a text is the name of a model at the panel's own address.

    >>> checked_judges(["a", {"model": "b", "weight": 2}])
    ({'model': 'a'}, {'model': 'b', 'weight': 2})
    """
    rule = "judges must be a list of models' names, or of settings such as {model: …, url: …, weight: …}"
    if isinstance(received, (str, Mapping)) or not isinstance(received, Sequence):
        raise ValueError(f"JudgeSettings: {rule}; received {_shown(received)}")
    found = [{"model": each} if isinstance(each, str) else each for each in received]
    for each in found:
        if not isinstance(each, Mapping) or not isinstance(each.get("model"), str) or not each["model"].strip():
            raise ValueError(f"JudgeSettings: {rule}; received {_shown(each)}")
        weight = each.get("weight", 1.0)
        if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not (isfinite(weight) and weight > 0):
            raise ValueError(f"JudgeSettings: the weight of a judge must be a number above 0; received {weight!r:.60}")
        for name in sorted(each.keys() & set(OF_THE_PANEL)):
            raise ValueError(f"JudgeSettings: {name} is for the whole panel; received it for {each['model']!r:.60}")
    names = [str(each.get("name") or each["model"]) for each in found]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"JudgeSettings: judges must have different names; received {twice[0]!r:.60} twice (add name)")
    return tuple(dict(each) for each in found)


def _shown(received: Any) -> str:
    """What was received, without what may be a key."""
    return f"{{{', '.join(map(str, received))}}}" if isinstance(received, Mapping) else f"{received!r:.80}"


def members_of(settings: Any, judges: Sequence[Mapping[str, Any]] | None = None) -> list[Member]:
    """The judges that these settings name: those of the panel, else the one judge itself.

    A judge has the settings of the panel where it states none of its own; the key of the panel goes only to the
    panel's own address. Of the spend cap each gets the share that its price has in one question to all.
    """
    judges = settings.judges if judges is None else judges
    if not judges:
        return [Member(settings.model, 1.0, settings)]
    known = {each.name for each in fields(settings)}
    members = []
    for each in judges:
        unknown = [name for name in each if name not in known and name not in _OWN]
        if unknown:
            raise ValueError(f"JudgeSettings: a judge of a panel has no setting {unknown[0]!r:.60}")
        changes = {name: value for name, value in each.items() if name not in _OWN}
        if changes.get("url", settings.url) != settings.url:
            changes = {**dict.fromkeys(_OF_THE_ADDRESS), **changes}
        elif "api_key_env" in changes:
            changes.setdefault("api_key", None)
        if changes["model"] != settings.model and "usd_per_million_input" not in changes:
            changes |= {"usd_per_million_input": None, "usd_per_million_output": None}
        own = replace(settings, **{"judges": (), "quorum": None, **changes})
        members.append(Member(str(each.get("name") or each["model"]), float(each.get("weight", 1.0)), own))
    return _sharing_the_cap(members, settings.max_spend_usd)


def _sharing_the_cap(members: list[Member], cap_usd: float | None) -> list[Member]:
    if cap_usd is None:
        return members
    from agentunit.addons.judge._call_limits import Tariff

    prices = [Tariff(each.settings).cost_usd(1000, 100) for each in members]
    known = [price for price in prices if price]
    total = fsum(known)
    shares = [price / total if price else 1 / len(members) for price in prices if price is not None]
    if len(known) < len(members):
        # A judge without a price cannot keep a cap, and is refused for it; the others share equally.
        shares = [1 / len(members)] * len(members)
    return [
        replace(each, settings=replace(each.settings, max_spend_usd=cap_usd * share))
        for each, share in zip(members, shares, strict=True)
    ]


def quorum_of(settings: Any) -> int:
    """How many judges must give a value: as many as the settings say, else more than half."""
    return settings.quorum or len(settings.judges) // 2 + 1


def together(members: Sequence[Member], verdicts: Sequence[Verdict], quorum: int, vote: Vote = "mean") -> Verdict:
    """What the judges of a panel say of one question together; each verdict stands in ``detail["judges"]``.

    The rest of the detail is that of the first judge with a value. ``judge_spread`` is how far the values lie apart,
    ``judges_disagree`` whether that is half of the scale or more. A judge that failed is left out and named in
    ``panel_note``; with fewer values than the quorum, or a vote that is split, there is none.
    """
    rows = [_row(member, verdict) for member, verdict in zip(members, verdicts, strict=True)]
    valued = [
        (each, verdict.value) for each, verdict in zip(members, verdicts, strict=True) if verdict.value is not None
    ]
    missing = [row for row in rows if row["value"] is None]
    failed = [verdict for verdict in verdicts if "error" in verdict.detail]
    shown = next((verdict for verdict in verdicts if verdict.value is not None), (failed or list(verdicts))[0])
    detail = {key: value for key, value in shown.detail.items() if key not in ("judge", "error", "reason", "raw")}
    detail = {key: value for key, value in detail.items() if key not in ("judge_values", "judge_sd", "n_failed")}
    detail |= {"judges": rows, "vote": vote, "quorum": quorum}
    if missing:
        detail["panel_note"] = "; ".join(f"{row['judge']} gave no value: {row['reason']}" for row in missing)
    detail["judge"] = _spent(members, verdicts)
    if len(valued) < quorum:
        reason = f"{len(valued)} of {len(members)} judges gave a value, {quorum} are needed: {detail['panel_note']}"
        # With a judge that failed it may be an outage; without, the judges see nothing to score.
        error = {"error": {"type": "JudgeFailed", "message": reason}} if failed else {}
        return Verdict(None, {**detail, "reason": reason, **error})
    values = [value for _, value in valued]
    detail["judge_spread"] = max(values) - min(values)
    detail["judges_disagree"] = detail["judge_spread"] >= FAR_APART
    detail |= _repeats(members, verdicts, vote)
    value = _decided([(each.weight, value) for each, value in valued], vote)
    if value is None:
        return Verdict(None, {**detail, "reason": "the votes of the judges are split in equal parts"})
    return Verdict(value, detail)


def _decided(weighted: Sequence[tuple[float, float]], vote: Vote) -> float | None:
    total = fsum(weight for weight, _ in weighted)
    if vote == "mean":
        return fsum(weight * value for weight, value in weighted) / total
    for_it = fsum(weight for weight, value in weighted if value >= _PASS)
    return None if 2 * for_it == total else float(2 * for_it > total)


def _row(member: Member, verdict: Verdict) -> dict[str, Any]:
    about = {key: value for key, value in verdict.detail.items() if key != "judge"}
    row: dict[str, Any] = {"judge": member.name, "value": verdict.value, "weight": member.weight}
    if verdict.value is None:
        row["reason"] = about.pop("reason", "no reason given")
        row["failed"] = "error" in about
    return {**row, "detail": about}


def _repeats(members: Sequence[Member], verdicts: Sequence[Verdict], vote: Vote) -> dict[str, Any]:
    """What the panel said each time, where every judge was asked several times."""
    repeated = [
        (member.weight, verdict.detail["judge_values"])
        for member, verdict in zip(members, verdicts, strict=True)
        if verdict.value is not None and isinstance(verdict.detail.get("judge_values"), list)
    ]
    if not repeated:
        return {}
    said = []
    for at in range(min(len(values) for _, values in repeated)):
        there = [(weight, values[at]) for weight, values in repeated if values[at] is not None]
        said.append(_decided(there, vote) if there else None)
    return {"judge_values": said}


def _model(member: Member) -> str:
    return str(getattr(member.settings, "model", None) or member.name)


def _spent(members: Sequence[Member], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    spent = [verdict.detail.get("judge") or {} for verdict in verdicts]
    # The judges that were asked, whether or not they answered: a failure must not make it look like another panel.
    total: dict[str, Any] = {"model": None, "models": [_model(member) for member in members]}
    total |= {name: sum(each.get(name) or 0 for each in spent) for name in ("calls", "cached")}
    for name in ("prompt_tokens", "completion_tokens", "cost_usd"):
        amounts = [each.get(name, 0) for each in spent]
        total[name] = None if None in amounts else sum(amounts)
    if unstated := sum(each.get("unstated") or 0 for each in spent):
        total["unstated"] = unstated
    transcripts = [
        {"judge": member.name, **entry}
        for member, each in zip(members, spent, strict=True)
        for entry in each.get("transcripts") or ()
    ]
    return {**total, "transcripts": transcripts} if transcripts else total
