"""A desk that answers from a handbook, with two planted bugs: one in the search, one in the answer."""

from agentunit import Suite

HANDBOOK = {
    "returns": "Shoes can be returned within 30 days. They must be unworn.",
    "shipping": "Shipping within the country takes 3 days and costs 5 dollars.",
    "gift cards": "Gift cards are valid for 24 months. They cannot be paid out.",
    "repairs": "Tents are repaired free of charge for 5 years.",
    "opening hours": "The shop is open from 9 to 18 on weekdays and from 10 to 16 on Saturdays.",
    "members": "Members get a discount of 10 percent on everything but gift cards.",
    "price match": "A lower price found elsewhere is matched within 14 days of the purchase.",
    "rental": "Skis are rented by the day. The deposit is 50 dollars.",
}


def search(question):
    """The passage with the most words of the question."""
    wanted = set(question.lower().strip("?").split())
    passages = list(HANDBOOK.values())[:-1]  # planted bug: the last passage is never found
    return max(passages, key=lambda text: len(wanted & set(text.lower().replace(".", "").split())))


def answer(query, trace):
    """Say what the passage says."""
    passage = search(query)
    trace.record("retrieval", query=query, documents=[passage])
    if "discount" in query:
        return "Members get a discount of 15 percent on everything."  # planted bug: not what the passage says
    return passage


suite = Suite(
    dataset=[
        {"id": "return-shoes", "query": "How long can shoes be returned?", "metadata": {"contains": "30 days"}},
        {"id": "shipping-cost", "query": "What shipping costs are there?", "metadata": {"contains": "5 dollars"}},
        {"id": "gift-card", "query": "How long are gift cards valid?", "metadata": {"contains": "24 months"}},
        {"id": "tent-repair", "query": "Are tents repaired?", "metadata": {"contains": "5 years"}},
        {"id": "saturday", "query": "Is the shop open on Saturdays?", "metadata": {"contains": "10 to 16"}},
        {"id": "discount", "query": "Which discount do members get?", "metadata": {"contains": "10 percent"}},
        {"id": "lower-price", "query": "Is a lower price matched?", "metadata": {"contains": "14 days"}},
        {"id": "ski-deposit", "query": "What is the deposit for skis?", "metadata": {"contains": "50 dollars"}},
    ],
    agent=answer,
    metrics=["contains", "faithfulness"],
    gates=["contains all == 1"],
)
