"""The shop's tiny database on Tuesday, 14 October 2025: customers, orders and parcels, all invented."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date

TODAY = date(2025, 10, 14)
_MONTH_LIST = "January February March April May June July August September October November December"
MONTHS = _MONTH_LIST.split()


def spoken(day: date) -> str:
    """A date as the desk writes it.

    >>> spoken(date(2025, 10, 9))
    '9 October'
    """
    year = "" if day.year == TODAY.year else f" {day.year}"
    return f"{day.day} {MONTHS[day.month - 1]}{year}"


@dataclass(frozen=True)
class Customer:
    """Who ordered, and how to reach them."""

    name: str
    email: str
    phone: str
    address: str


@dataclass(frozen=True)
class Parcel:
    """What the carrier knows. `timeouts` is how often its server hangs before it answers."""

    parcel_id: str
    place: str
    due: date | None
    note: str = ""
    timeouts: int = 0


@dataclass
class Order:
    """One order; the tools change `status`, `address` and `refunded_usd`."""

    order_id: str
    customer: Customer
    items: tuple[str, ...]
    total_usd: float
    status: str
    ordered_on: date
    delivered_on: date | None = None
    promised_on: date | None = None
    parcel: Parcel | None = None
    gift_from: Customer | None = None
    refunded_usd: float = 0.0
    refunded_on: date | None = None
    payment_timeouts: int = 0
    address: str = field(default="")

    def __post_init__(self) -> None:
        self.address = self.address or self.customer.address


_PEOPLE = {
    key: Customer(name, f"{email}@example.com", f"541-555-01{line}", address)
    for key, name, email, line, address in (
        ("maya", "Maya Lindqvist", "maya.lindqvist", "02", "7 Aspen Court, Bend"),
        ("tom", "Tom Abara", "t.abara", "07", "220 Ninth Street, Boise"),
        ("priya", "Priya Raman", "priya.raman", "11", "64 Orchard Way, Salem"),
        ("sam", "Sam Delgado", "sam.delgado", "19", "3 Ferry Road, Astoria"),
        ("ines", "Ines Kowalik", "ines.k", "24", "18 Cedar Row, Portland"),
        ("joel", "Joel Tanaka", "joeltanaka", "28", "501 Lava Lane, Bend"),
        ("ruth", "Ruth Ekwall", "ruth.ekwall", "33", "9 Bridge Street, Hood River"),
        ("omar", "Omar Fitch", "omar.fitch", "37", "77 Union Avenue, Medford"),
        ("lena", "Lena Orsini", "lena.orsini", "42", "12 Basalt Drive, Redmond"),
        ("carl", "Carl Nwosu", "carl.nwosu", "48", "340 Pine Street, Eugene"),
        ("beth", "Beth Halvorsen", "beth.h", "52", "26 Tanner Road, Sisters"),
        ("dev", "Dev Castellan", "dev.castellan", "57", "8 Garden Street, Corvallis"),
    )
}


def _on(month: int, day: int, year: int = 2025) -> date:
    return date(year, month, day)


def _order(
    number: int,
    who: str,
    items: str,
    total_usd: float,
    status: str,
    ordered_on: date,
    delivered_on: date | None = None,
    *,
    promised_on: date | None = None,
    parcel: Parcel | None = None,
    gift_from: str | None = None,
    refunded_on: date | None = None,
    payment_timeouts: int = 0,
) -> Order:
    return Order(
        f"A-{number}",
        _PEOPLE[who],
        tuple(item for item in items.split(" + ") if item),
        total_usd,
        status,
        ordered_on,
        delivered_on,
        promised_on,
        parcel,
        _PEOPLE[gift_from] if gift_from else None,
        total_usd if refunded_on else 0.0,
        refunded_on,
        payment_timeouts,
    )


_ORDERS = (
    _order(
        1004,
        "maya",
        "two-person tent",
        189.0,
        "shipped",
        _on(10, 9),
        parcel=Parcel("NB-04K", "Portland", _on(10, 15)),
    ),
    _order(1007, "tom", "headlamp", 42.5, "shipped", _on(10, 10), parcel=Parcel("NB-07C", "Boise", _on(10, 16))),
    _order(
        1011,
        "ruth",
        "down jacket",
        168.0,
        "shipped",
        _on(10, 8),
        parcel=Parcel("NB-11R", "Spokane", _on(10, 17), "", 1),
    ),
    _order(
        1012,
        "omar",
        "trekking poles",
        79.0,
        "shipped",
        _on(10, 6),
        promised_on=_on(10, 11),
        parcel=Parcel("NB-12M", "Reno", _on(10, 20), "", 99),
    ),
    _order(
        1013,
        "dev",
        "rain jacket",
        139.0,
        "shipped",
        _on(10, 7),
        parcel=Parcel("NB-13D", "Reno", _on(10, 18), "", 99),
    ),
    _order(
        1015,
        "lena",
        "camping stove",
        58.0,
        "delivered",
        _on(10, 7),
        _on(10, 13),
        parcel=Parcel("NB-15L", "Redmond", None, "handed to the neighbour, tel. 541-555-0163"),
    ),
    _order(1018, "beth", "four sleeping mats + two camping stoves", 371.0, "placed", _on(10, 13)),
    _order(
        1019,
        "carl",
        "rain jacket + dry bag",
        212.4,
        "shipped",
        _on(10, 9),
        parcel=Parcel("NB-19P", "Eugene", _on(10, 15)),
    ),
    _order(1021, "ines", "cooking set", 54.0, "placed", _on(10, 13)),
    _order(1022, "ruth", "day pack", 88.0, "packed", _on(10, 12)),
    _order(
        1023,
        "carl",
        "water filter",
        39.0,
        "shipped",
        _on(10, 10),
        parcel=Parcel("NB-23W", "Eugene", _on(10, 15)),
    ),
    _order(1024, "maya", "fleece pullover", 72.0, "placed", _on(10, 13)),
    _order(1026, "lena", "enamel mug + coffee press", 46.0, "placed", _on(10, 13), gift_from="carl"),
    _order(
        1027,
        "dev",
        "headlamp",
        42.5,
        "shipped",
        _on(10, 11),
        parcel=Parcel("NB-27H", "Corvallis", _on(10, 16)),
    ),
    _order(1028, "tom", "tent pegs", 18.0, "shipped", _on(10, 10), parcel=Parcel("NB-28B", "Boise", _on(10, 15))),
    _order(1029, "tom", "guy lines", 14.0, "packed", _on(10, 12)),
    _order(1030, "omar", "bear canister", 84.0, "cancelled", _on(10, 2)),
    _order(1032, "ines", "hiking boots", 145.0, "delivered", _on(9, 25), _on(9, 30)),
    _order(1033, "joel", "fleece pullover", 72.0, "delivered", _on(9, 17), _on(9, 22)),
    _order(1034, "priya", "rain jacket", 139.0, "delivered", _on(9, 29), _on(10, 3)),
    _order(1035, "tom", "day pack", 88.0, "delivered", _on(8, 6), _on(8, 12)),
    _order(1036, "beth", "folding chair", 66.0, "delivered", _on(8, 20), _on(9, 8)),
    _order(1037, "maya", "enamel mug", 24.0, "delivered", _on(10, 4), _on(10, 9)),
    _order(1038, "carl", "four-person tent", 289.0, "delivered", _on(10, 1), _on(10, 6)),
    _order(1039, "ruth", "winter sleeping bag", 380.0, "delivered", _on(10, 2), _on(10, 8)),
    _order(1040, "omar", "family tent", 640.0, "delivered", _on(9, 30), _on(10, 7)),
    _order(1042, "lena", "trail shoes", 119.0, "returned", _on(9, 12), _on(9, 17)),
    _order(1043, "joel", "camp lantern", 59.0, "refunded", _on(9, 15), _on(9, 19), refunded_on=_on(10, 9)),
    _order(1044, "ines", "", 0.0, "cancelled", _on(10, 1)),
    _order(
        1045,
        "priya",
        "gaiters",
        68.0,
        "shipped",
        _on(9, 24),
        parcel=Parcel("NB-45G", "Salem", None, "lost, search closed on 10 October"),
    ),
    _order(1046, "tom", "dry bag", 36.0, "shipped", _on(10, 9), parcel=Parcel("NB-46S", "Boise", _on(10, 15))),
    _order(
        1047,
        "beth",
        "trekking poles",
        79.0,
        "shipped",
        _on(10, 10),
        parcel=Parcel("NB-47T", "Sisters", _on(10, 15)),
    ),
    _order(1048, "carl", "gloves", 38.0, "delivered", _on(9, 30), _on(10, 4)),
    _order(1049, "maya", "hiking socks", 21.0, "delivered", _on(9, 29), _on(10, 2)),
    _order(1050, "ruth", "trekking poles", 79.0, "delivered", _on(10, 3), _on(10, 8)),
    _order(1051, "dev", "water bottle", 26.0, "delivered", _on(10, 2), _on(10, 7), payment_timeouts=1),
    _order(1052, "omar", "two-person tent", 189.0, "delivered", _on(9, 28), _on(10, 3)),
    _order(1053, "lena", "rain trousers", 95.0, "delivered", _on(9, 22), _on(9, 27)),
    _order(
        1054,
        "ines",
        "camp pillow",
        29.0,
        "shipped",
        _on(10, 10),
        parcel=Parcel("NB-54U", "Portland", _on(10, 16)),
    ),
    _order(
        1055,
        "joel",
        "stove windscreen",
        17.0,
        "shipped",
        _on(10, 11),
        parcel=Parcel("NB-55V", "Bend", _on(10, 16)),
    ),
    _order(1056, "priya", "backpack", 178.0, "delivered", _on(5, 3, 2024), _on(5, 8, 2024)),
    _order(1057, "priya", "camp towel", 19.0, "packed", _on(10, 13)),
    _order(
        1058,
        "sam",
        "bivouac sack",
        112.0,
        "shipped",
        _on(10, 8),
        parcel=Parcel("NB-58E", "Astoria", _on(10, 15)),
    ),
)


def fresh_orders() -> dict[str, Order]:
    """The database as it stands in the morning; every question meets its own copy."""
    return {order.order_id: replace(order) for order in _ORDERS}


def describe(order_id: str) -> str:
    """What the database knows about an order in the morning, as one passage of reference context."""
    order = fresh_orders()[order_id]
    facts = [f"Order {order_id}: {', '.join(order.items) or 'no items'}, ${order.total_usd:.2f}"]
    facts.append(f"placed on {spoken(order.ordered_on)}, status {order.status}")
    if order.delivered_on:
        facts.append(f"delivered on {spoken(order.delivered_on)}")
    if order.refunded_on:
        facts.append(f"refunded on {spoken(order.refunded_on)}")
    if order.parcel:
        facts.append(f"parcel {order.parcel.parcel_id} last seen at the {order.parcel.place} depot")
        if order.parcel.due:
            facts.append(f"due on {spoken(order.parcel.due)}")
        if order.parcel.note:
            facts.append(f"carrier note: {order.parcel.note}")
    return ", ".join(facts) + "."
