"""The returns agent, and the supervisor it asks about large refunds."""

from __future__ import annotations

from datetime import date
from typing import Any

from .orders import CARRIER_TRIES
from .reading import Reply, mentions, order_numbers
from .retriever import best_sentences
from .session import Session
from .tools import RETURN_WINDOW_DAYS, ToolError
from .world import TODAY, spoken

APPROVAL_LIMIT_USD = 600.0
SUPERVISOR_WAIT_SECONDS = 30.0


def returns(session: Session, part: str) -> Reply:
    """Open returns and pay refunds."""
    numbers = order_numbers(part)
    if not numbers:
        return Reply("Could you send us the number of the order you want to return? It begins with A.")
    number = numbers[0]
    try:
        order = session.call("returns", "find_order", order_id=number)
    except ToolError:
        return Reply(f"We cannot find an order {number}. Could you check it and write to us again?")
    if mentions(part, "where", "gone out", "yet") and mentions(part, "refund"):
        return _refund_status(session, order)
    if mentions(part, "refund", "money"):
        return _refund(session, part, order)
    return _open_return(session, part, order)


def _refund_status(session: Session, order: dict[str, Any]) -> Reply:
    number = order["order_id"]
    if "refunded_on" in order:
        refunded_on = spoken(date.fromisoformat(order["refunded_on"]))
        return Reply(f"We refunded ${order['refunded_usd']:.2f} for order {number} on {refunded_on}.")
    page = session.call("returns", "search_help", query="refund reaches card after return")
    return Reply(f"Your return of order {number} is registered. {best_sentences('refund working', page['title'])}")


def _open_return(session: Session, part: str, order: dict[str, Any]) -> Reply:
    number, thing = order["order_id"], order["items"][0]
    if "sock" in thing and mentions(part, "opened", "worn"):
        page = session.call("returns", "search_help", query="return opened socks")
        return Reply(best_sentences("opened socks", page["title"]))
    age_days = (TODAY - date.fromisoformat(order["ordered_on"])).days
    if age_days > RETURN_WINDOW_DAYS:
        return Reply(f"Order {number} is {age_days} days old, so the {RETURN_WINDOW_DAYS} days for returns are over.")
    exchange = mentions(part, "swap", "exchange")
    misfit = mentions(part, "tight", "big", "small")
    reason = "exchange" if exchange else "does not fit" if misfit else "not wanted"
    try:
        opened = session.call("returns", "create_return", order_id=number, reason=reason)
    except ToolError:
        return Reply(f"Order {number} has not arrived yet. Write to us when it has, and we will open the return.")
    text = f"Return {opened['return_id']} for the {thing} is open, and the label is on its way to you by e-mail."
    return Reply(f"{text} Please place a new order for the other size." if exchange else text)


def _refund(session: Session, part: str, order: dict[str, Any]) -> Reply:
    number, amount_usd = order["order_id"], order["total_usd"]
    if order["status"] == "shipped":
        refusal = _ask_where_it_is(session, order)
        if refusal:
            return refusal
    try:
        session.call("returns", "refund", tries=2, order_id=number, amount_usd=amount_usd)
    except ToolError as error:
        if "already" in str(error):
            return Reply(f"Order {number} was already refunded, so we cannot refund it again.")
        alternative = _ask_supervisor(session, part, order)
        if alternative:
            return alternative
    return Reply(f"We have refunded ${amount_usd:.2f} for order {number}. It reaches your card in five to seven days.")


def _ask_where_it_is(session: Session, order: dict[str, Any]) -> Reply | None:
    """Ask orders about a parcel; a reply means that there is no refund yet."""
    number = order["order_id"]
    since_s = session.now()
    question = session.tell(
        "returns",
        "orders",
        "collaboration",
        "parcel_question",
        f"Did order {number} arrive, parcel {order['parcel_id']}?",
    )
    session.start("orders", question["content"])
    seen = session.call("orders", "track_parcel", tries=CARRIER_TRIES, parcel_id=order["parcel_id"])
    report = session.write("orders", f"No. {seen['note'] or 'In transit, due ' + seen['due']}.")
    session.end("orders")
    session.answered(question)
    session.tell("orders", "returns", "response", "parcel_report", report)
    if seen["due"] is None:
        return None
    session.conflict(
        ["returns", "orders"],
        "goal",
        True,
        since_s,
        "returns meant to refund a parcel that orders sees in transit",
    )
    return Reply(
        f"Order {number} is still on its way and due on {seen['due']}. If it is not there by then, we refund it."
    )


def _ask_supervisor(session: Session, part: str, order: dict[str, Any]) -> Reply | None:
    """Ask for approval and pay; a reply means that something else was offered instead."""
    number, amount_usd = order["order_id"], order["total_usd"]
    since_s = session.now()
    plea = session.write("returns", f"Please approve a refund of ${amount_usd:.2f} for order {number}. {part}")
    request = session.tell("returns", "supervisor", "negotiation", "approval_request", plea)
    if amount_usd > APPROVAL_LIMIT_USD:
        session.wait(SUPERVISOR_WAIT_SECONDS)
        session.answered(request, success=False)
        session.conflict(
            ["returns", "supervisor"],
            "resource",
            False,
            since_s,
            f"no decision on a refund of ${amount_usd:.0f}",
        )
        return None
    session.start("supervisor", plea)
    approved = mentions(part, "broken", "snapped", "smashed", "faulty", "wrong", "damaged", "torn")
    verdict = "Approved: the goods are faulty." if approved else "Declined: a change of mind needs a return first."
    session.write("supervisor", verdict)
    session.end("supervisor")
    session.answered(request)
    session.tell("supervisor", "returns", "response", "approval" if approved else "decline", verdict)
    if approved:
        session.call("returns", "refund", tries=2, order_id=number, amount_usd=amount_usd, approved_by="supervisor")
        return None
    reply = _open_return(session, part, order)
    session.conflict(
        ["returns", "supervisor"],
        "policy",
        True,
        since_s,
        "returns proposed a refund, the supervisor a return first",
    )
    return Reply(f"We can refund you once the goods are back. {reply.text}", reply.settled)
