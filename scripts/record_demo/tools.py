"""The six tools of the desk, over one in-memory copy of the database."""

from __future__ import annotations

from typing import Any

from .pages import page_text
from .retriever import search
from .world import TODAY, Order, fresh_orders, spoken

RETURN_WINDOW_DAYS = 45
REFUND_LIMIT_USD = 150.0
TOOL_COST_USD = {"track_parcel": 0.002, "refund": 0.003}
TOOL_SECONDS = {
    "find_order": 0.09,
    "track_parcel": 0.7,
    "create_return": 0.2,
    "refund": 1.1,
    "change_address": 0.15,
    "search_help": 0.05,
}
TIMEOUT_SECONDS = 8.0
TOOL_NAMES = list(TOOL_SECONDS)


class ToolError(Exception):
    """A tool could not do what it was asked, and says why."""


class Tools:
    """What the agents may do to the shop during one question."""

    def __init__(self) -> None:
        self.orders = fresh_orders()
        self.returns: dict[str, dict[str, Any]] = {}
        self.touched: list[str] = []
        self._tries: dict[str, int] = {}

    def find_order(self, order_id: str | None = None, email: str | None = None) -> dict[str, Any]:
        """One order, by its number or by the customer's e-mail address (the newest one then)."""
        order = self._order(order_id) if order_id else self._newest_of(email or "")
        found: dict[str, Any] = {
            "order_id": order.order_id,
            "status": order.status,
            "items": list(order.items),
        }
        found |= {"total_usd": order.total_usd, "ordered_on": order.ordered_on.isoformat()}
        if order.delivered_on:
            found["delivered_on"] = order.delivered_on.isoformat()
        if order.parcel:
            found["parcel_id"] = order.parcel.parcel_id
        if order.refunded_on:
            found |= {"refunded_usd": order.refunded_usd, "refunded_on": order.refunded_on.isoformat()}
        if order.gift_from:
            found["gift_from"] = {"name": order.gift_from.name, "phone": order.gift_from.phone}
        found["customer"] = {
            "name": order.customer.name,
            "email": order.customer.email,
            "phone": order.customer.phone,
        }
        return found

    def track_parcel(self, parcel_id: str) -> dict[str, Any]:
        """Where the carrier last saw a parcel."""
        parcel = next(o.parcel for o in self.orders.values() if o.parcel and o.parcel.parcel_id == parcel_id)
        if self._hangs(parcel_id, parcel.timeouts):
            raise ToolError(f"carrier timeout after {TIMEOUT_SECONDS:.0f} s")
        due = spoken(parcel.due) if parcel.due else None
        return {"parcel_id": parcel_id, "place": parcel.place, "due": due, "note": parcel.note}

    def create_return(self, order_id: str, reason: str) -> dict[str, Any]:
        """Open a return and issue its label."""
        order = self._order(order_id)
        if order.delivered_on is None:
            raise ToolError(f"order {order_id} is not delivered yet")
        age_days = (TODAY - order.delivered_on).days
        if age_days > RETURN_WINDOW_DAYS:
            raise ToolError(f"delivered {age_days} days ago, the window is {RETURN_WINDOW_DAYS} days")
        order.status = "return_opened"
        return_id = order_id.replace("A-", "R-")
        self.returns[return_id] = {"order_id": order_id, "reason": reason}
        return {"return_id": return_id, "label": "sent"}

    def refund(self, order_id: str, amount_usd: float, approved_by: str | None = None) -> dict[str, Any]:
        """Pay an order's money back."""
        order = self._order(order_id)
        if order.refunded_usd:
            raise ToolError(f"order {order_id} was already refunded")
        if amount_usd > REFUND_LIMIT_USD and approved_by is None:
            raise ToolError(f"refunds over ${REFUND_LIMIT_USD:.0f} need a supervisor's approval")
        if self._hangs(f"pay {order_id}", order.payment_timeouts):
            raise ToolError(f"payment provider timeout after {TIMEOUT_SECONDS:.0f} s")
        order.refunded_usd, order.refunded_on, order.status = amount_usd, TODAY, "refunded"
        return {"order_id": order_id, "refunded_usd": amount_usd}

    def change_address(self, order_id: str, address: str) -> dict[str, Any]:
        """Send an order somewhere else, while that is still possible."""
        order = self._order(order_id)
        if order.status == "packed":
            return {"order_id": order_id, "note": "label already printed, address unchanged"}
        if order.status != "placed":
            raise ToolError(f"order {order_id} is {order.status}, its address is final")
        order.address = address
        return {"order_id": order_id, "address": address}

    def search_help(self, query: str) -> dict[str, Any]:
        """The best help page for a query."""
        found = search(query, limit=1)
        if not found:
            raise ToolError("no help page matches")
        return {"title": found[0][0], "text": page_text(found[0][0])}

    def state(self) -> dict[str, Any] | None:
        """What the database holds afterwards for the orders that were looked at; None if there were none."""
        if not self.touched:
            return None
        orders = {
            key: {
                "status": self.orders[key].status,
                "address": self.orders[key].address,
                "refunded_usd": self.orders[key].refunded_usd,
            }
            for key in self.touched
        }
        return {"orders": orders, "returns": self.returns}

    def _order(self, order_id: str) -> Order:
        if order_id not in self.orders:
            raise ToolError(f"unknown order number {order_id}")
        if order_id not in self.touched:
            self.touched.append(order_id)
        return self.orders[order_id]

    def _newest_of(self, email: str) -> Order:
        local_part = email.split("@")[0]
        matches = [o for o in self.orders.values() if o.customer.email.startswith(local_part)]
        if not matches:
            raise ToolError("no order under this e-mail address")
        return self._order(max(matches, key=lambda order: order.ordered_on).order_id)

    def _hangs(self, key: str, times: int) -> bool:
        self._tries[key] = self._tries.get(key, 0) + 1
        return self._tries[key] <= times
