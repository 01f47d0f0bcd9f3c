"""The orders agent: looks orders up, tracks them, redirects them."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from .reading import Reply, email_address, mentions, order_numbers
from .session import Session
from .tools import ToolError
from .world import spoken

CARRIER_TRIES = 2


def orders(session: Session, part: str) -> Reply:
    """Look orders up, track them, redirect them."""
    numbers, email = order_numbers(part), email_address(part)
    if not numbers and email is None:
        return Reply("Could you send us your order number? It begins with A and is in your confirmation e-mail.")
    lookups: list[dict[str, Any]] = [{"order_id": number} for number in numbers] or [{"email": email or ""}]
    replies = []
    for lookup in lookups:
        try:
            found = session.call("orders", "find_order", **lookup)
        except ToolError:
            what = f"an order {lookup['order_id']}" if numbers else "an order under this e-mail address"
            replies.append(Reply(f"We cannot find {what}. Could you check it and write to us again?"))
            continue
        replies.append(_about_order(session, part, found, email))
    return Reply(" ".join(reply.text for reply in replies), all(reply.settled for reply in replies))


def _about_order(session: Session, part: str, order: dict[str, Any], email: str | None) -> Reply:
    number = order["order_id"]
    if mentions(part, "address", "adress", "send it to", "go to", "instead"):
        return _redirect(session, part, order)
    if mentions(part, "what's in", "whats in", "what did i"):
        return Reply(f"Order {number} holds {' and '.join(order['items'])}.")
    if mentions(part, "how much", "total"):
        return Reply(f"Order {number} came to ${order['total_usd']:.2f}.")
    reply = _whereabouts(session, order)
    if email and order["customer"]["email"] != email:
        return Reply(f"We found order {number} under {order['customer']['email']}. {reply.text}", reply.settled)
    return reply


def _redirect(session: Session, part: str, order: dict[str, Any]) -> Reply:
    number = order["order_id"]
    if "gift_from" in order:
        phone = order["gift_from"]["phone"]
        return Reply(f"Order {number} is a gift, so only the buyer can redirect it. You can reach them on {phone}.")
    found = re.search(r"\bto (\d+ [\w ]+, [A-Z]\w+)", part)
    if found is None:
        return Reply(f"Where should we send order {number}? We need the street, the number and the town.")
    try:
        session.call("orders", "change_address", order_id=number, address=found.group(1))
    except ToolError:
        return Reply(f"Order {number} is already with the carrier, so its address can no longer be changed.")
    return Reply(f"Done: order {number} will go to the new address.")


def _whereabouts(session: Session, order: dict[str, Any]) -> Reply:
    number = order["order_id"]
    if order["status"] == "cancelled":
        return Reply(f"Order {number} was cancelled, so nothing is on its way.")
    if "parcel_id" not in order:
        return Reply(f"Order {number} is {order['status']} and has not left our warehouse yet.")
    try:
        seen = session.call("orders", "track_parcel", tries=CARRIER_TRIES, parcel_id=order["parcel_id"])
    except ToolError:
        promised_on = session.tools.orders[number].promised_on
        if promised_on:
            return Reply(f"Order {number} is with the carrier and arrives on {spoken(promised_on)}.")
        return Reply(
            f"The carrier does not answer at the moment. A colleague will look for order {number} "
            "and write to you by tomorrow noon.",
            settled=False,
        )
    if order["status"] == "delivered":
        delivered_on = date.fromisoformat(order["delivered_on"])
        return Reply(f"Order {number} was delivered on {spoken(delivered_on)}: {seen['note']}.")
    return Reply(
        f"Order {number} is with the carrier, last seen at the {seen['place']} depot, and is due on {seen['due']}."
    )
