"""Three agents that answer together: a lead, a searcher and a writer. What they say to whom is in the trace."""

from agentunit import Suite

FACTS = {"museum": "opens at ten", "library": "opens at nine", "pool": "is closed on Mondays"}


def team(query, trace):
    """The lead asks the searcher, then the writer; the searcher may need a second try."""
    place = next(name for name in FACTS if name in query)
    _say(trace, "lead", "searcher", f"Please find out about the {place}.")
    tries = 2 if place == "library" else 1
    for number in range(tries):
        works = number == tries - 1
        status = {"status": "success"} if works else {"status": "error", "error": "timeout"}
        trace.record("tool_call", name="open_page", agent="searcher", arguments={"place": place}, **status)
    _say(trace, "searcher", "lead", f"The {place} {FACTS[place]}.")
    _say(trace, "lead", "writer", f"Please write the answer about the {place}.")
    if place != "pool":  # planted bug: the writer never answers, so the lead sends the note of the searcher
        _say(trace, "writer", "lead", f"The {place} {FACTS[place]}. Have a nice day!")
    trace.interactions.append(
        {"from_agent": "lead", "to_agent": "customer", "interaction_type": "notification", "content": FACTS[place]}
    )
    return f"The {place} {FACTS[place]}."


def _say(trace, sender, receiver, text):
    kind = "request" if sender == "lead" else "response"
    trace.interactions.append({"from_agent": sender, "to_agent": receiver, "interaction_type": kind, "content": text})


suite = Suite(
    dataset=[
        {"id": "museum", "query": "When does the museum open?", "metadata": {"contains": "ten"}},
        {"id": "library", "query": "When does the library open?", "metadata": {"contains": "nine"}},
        {"id": "pool", "query": "Is the pool open on Monday?", "metadata": {"contains": "closed"}},
    ],
    agent=team,
    metrics=["contains", "tool_success", "unanswered_requests"],
    gates=["contains all == 1", "unanswered_requests all == 0"],
)
