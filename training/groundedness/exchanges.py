"""Words that may stand for one another and then say something else."""

from __future__ import annotations

EXCHANGES = [
    ("before", "after"), ("more", "less"), ("most", "least"), ("all", "some"), ("all", "none of the"),
    ("always", "sometimes"), ("may", "will"), ("might", "will"), ("can", "cannot"), ("could", "will"),
    ("increased", "decreased"), ("rose", "fell"), ("higher", "lower"), ("first", "last"), ("first", "second"),
    ("many", "few"), ("several", "all"), ("only", "also"), ("with", "without"), ("above", "below"),
    ("over", "under"), ("up", "down"), ("won", "lost"), ("accepted", "rejected"), ("agreed", "refused"),
    ("agree", "disagree"), ("likes", "dislikes"), ("liked", "disliked"), ("buy", "sell"), ("bought", "sold"),
    ("morning", "evening"), ("today", "tomorrow"), ("yesterday", "today"), ("he", "she"), ("his", "her"),
    ("son", "daughter"), ("mother", "father"), ("brother", "sister"), ("husband", "wife"), ("man", "woman"),
    ("boy", "girl"), ("north", "south"), ("east", "west"), ("northern", "southern"), ("eastern", "western"),
    ("million", "billion"), ("daily", "weekly"), ("weekly", "monthly"), ("monthly", "yearly"), ("minutes", "hours"),
    ("hours", "days"), ("days", "weeks"), ("weeks", "months"), ("months", "years"), ("early", "late"),
    ("begin", "end"), ("began", "ended"), ("start", "stop"), ("started", "stopped"), ("open", "closed"),
    ("easy", "difficult"), ("good", "bad"), ("better", "worse"), ("best", "worst"), ("success", "failure"),
    ("supported", "opposed"), ("supports", "opposes"), ("possible", "impossible"), ("likely", "unlikely"),
    ("free", "expensive"), ("cheap", "expensive"), ("new", "old"), ("large", "small"), ("public", "private"),
    ("left", "right"), ("explicit", "implicit"), ("internal", "external"), ("maximum", "minimum"), ("inside", "outside"),
    ("positive", "negative"), ("upper", "lower"), ("earlier", "later"), ("previous", "next"), ("indoor", "outdoor"),
    ("kilometers", "miles"), ("meters", "feet"), ("grams", "kilograms"), ("dollars", "euros"), ("percent", "points"),
    ("breakfast", "dinner"), ("lunch", "dinner"), ("north-east", "south-west"), ("parent", "child"), ("cash", "card"),
]  # fmt: skip

# What an editor changes in a summary of a chat, a meeting or a visit: who wants what how much, and how sure it is.
REPORTED = [
    ("asks", "tells"), ("asks", "orders"), ("asked", "told"), ("offers", "refuses"), ("offered", "refused"),
    ("wants", "refuses"), ("suggests", "rejects"), ("suggested", "rejected"), ("suggested", "demanded"),
    ("proposed", "dismissed"), ("agrees", "disagrees"), ("agreed", "disagreed"), ("confirms", "denies"),
    ("confirmed", "denied"), ("reports", "denies"), ("reported", "denied"), ("believes", "doubts"),
    ("believed", "doubted"), ("thought", "doubted"), ("recommended", "advised against"), ("recommends", "advises against"),
    ("discussed", "decided"), ("decided", "considered"), ("plans", "refuses"), ("planned", "refused"),
    ("continue", "stop"), ("continued", "stopped"), ("some", "most"), ("some", "all"), ("most", "few"), ("both", "neither of the"),
    ("everyone", "nobody"), ("would", "would never"), ("should", "should not"), ("will", "might"), ("must", "may"),
    ("because", "although"), ("since", "although"), ("and", "instead of"), ("easy", "hard"),
    ("simple", "complicated"), ("useful", "useless"), ("important", "unimportant"), ("necessary", "unnecessary"),
    ("granted", "denied"), ("dismissed", "upheld"), ("affirmed", "reversed"), ("plaintiffs", "defendants"),
    ("plaintiff", "defendant"), ("settled", "went to trial"), ("increase", "decrease"), ("increases", "decreases"),
    ("improve", "worsen"), ("improved", "worsened"), ("happy", "unhappy"), ("satisfied", "dissatisfied"),
    ("young", "elderly"), ("novice", "experienced"), ("mild", "severe"), ("acute", "chronic"), ("normal", "abnormal"),
    ("alone", "together"), ("often", "rarely"), ("usually", "rarely"), ("partly", "fully"), ("finally", "at first"),
    ("accept", "decline"), ("succeed", "fail"), ("succeeds", "fails"), ("managed", "failed"), ("remember", "forget"),
    ("arrive", "leave"), ("arrives", "leaves"), ("gives", "takes"), ("borrow", "lend"), ("save", "spend"),
]  # fmt: skip

DETAILS = [
    "in {year}", "on {day}", "in {month} {year}", "for the first time", "in front of {number} people",
    "for {number} years", "at the age of {number}", "according to officials", "with the help of {name}",
    "near {name}", "because of the weather", "despite strong opposition", "for about {number} dollars",
    "to celebrate the anniversary", "in order to save money", "with {name}", "every {day}", "after a long discussion",
    "and received an award for it", "as {name} had suggested", "which surprised everyone", "at no extra cost",
]  # fmt: skip


def both_ways(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    """What may stand for each word; a phrase of several words only comes in, since it is hard to find whole."""
    found: dict[str, list[str]] = {}
    for left, right in pairs:
        found.setdefault(left, []).append(right)
        if " " not in right:
            found.setdefault(right, []).append(left)
    return found
