"""What customers asked that morning, with what a good answer needs. The agents never see the second part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .pages import PAGES, page_text
from .world import describe


@dataclass(frozen=True)
class Question:
    """One question. `sources` name the reference context: orders ("A-1004") or page sentences ("Returns/0").

    Without sources the case has no context of its own; the documents its trace retrieved stand in.
    """

    text: str
    category: str
    expected: str | None = None
    sources: tuple[str, ...] = ()
    calls: tuple[dict[str, Any], ...] = ()
    state: dict[str, Any] | None = None
    contains: tuple[str, ...] = ()

    def context(self) -> list[str] | None:
        """The passages that the sources name."""
        return [_passage(source) for source in self.sources] or None


def _passage(source: str) -> str:
    title, _, index = source.partition("/")
    if source.startswith("A-"):
        return describe(source)
    return PAGES[title][int(index)] if index else page_text(title)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A tool call that a good run makes."""
    return {"name": name, "arguments": arguments}


def order_state(order_id: str, **fields: Any) -> dict[str, Any]:
    """What the database must say about an order afterwards."""
    return {"orders": {order_id: fields}}


def _track(number: int, parcel_id: str) -> tuple[dict[str, Any], ...]:
    return call("find_order", order_id=f"A-{number}"), call("track_parcel", parcel_id=parcel_id)


def _open(number: int, reason: str) -> tuple[dict[str, Any], ...]:
    order_id = f"A-{number}"
    return call("find_order", order_id=order_id), call("create_return", order_id=order_id, reason=reason)


def _pay(number: int, amount_usd: float, **more: Any) -> tuple[dict[str, Any], ...]:
    order_id = f"A-{number}"
    return call("find_order", order_id=order_id), call("refund", order_id=order_id, amount_usd=amount_usd, **more)


def _move(number: int, address: str) -> tuple[dict[str, Any], ...]:
    order_id = f"A-{number}"
    return call("find_order", order_id=order_id), call("change_address", order_id=order_id, address=address)


ORDER_QUESTIONS = (
    Question(
        "Where is my order A-1004? It was supposed to be here by now.",
        "tracking",
        "Order A-1004 is with the carrier, last seen at the Portland depot, and is due on 15 October.",
        ("A-1004",),
        _track(1004, "NB-04K"),
    ),
    Question(
        "hi, can u tell me when A1007 arives? going camping on the weekend",
        "tracking",
        "It is in Boise and should be there on 16 October.",
        ("A-1007",),
        _track(1007, "NB-07C"),
        contains=("16 October",),
    ),
    Question(
        "Tracking for A-1011 hasnt moved since saturday. is it lost?",
        "tracking",
        "No, the parcel was last seen in Spokane and is due on 17 October.",
        ("A-1011",),
        _track(1011, "NB-11R"),
    ),
    Question(
        "My tracking page shows nothing at all for order A-1012, when will it come?",
        "tracking",
        "The carrier cannot be reached at the moment; a colleague will find out and write back.",
        ("A-1012",),
        _track(1012, "NB-12M"),
        contains=("colleague",),
    ),
    Question(
        "Still no sign of A-1013. Where is it??",
        "tracking",
        "The carrier cannot be reached at the moment; a colleague will find out and write back.",
        ("A-1013",),
        _track(1013, "NB-13D"),
    ),
    Question(
        "Order A-1015 says delivered but there is nothing at my door. Where did they leave it?",
        "tracking",
        "The parcel was handed to your neighbour on 13 October.",
        ("A-1015",),
        _track(1015, "NB-15L"),
        contains=("neighbour",),
    ),
    Question(
        "What's in order A-1018, I ordered for the scout troop and forgot whether the stoves were on it",
        "order",
        "Order A-1018 holds four sleeping mats and two camping stoves.",
        ("A-1018",),
        (call("find_order", order_id="A-1018"),),
    ),
    Question(
        "how much did i pay in total for A-1019",
        "order",
        "Order A-1019 came to $212.40.",
        ("A-1019",),
        (call("find_order", order_id="A-1019"),),
    ),
    Question(
        "Please change the delivery address of A-1021 to 88 Juniper Street, Ashland. I've just moved.",
        "address",
        "The order goes to the new address in Ashland.",
        ("A-1021", "Changing an order/0"),
        _move(1021, "88 Juniper Street, Ashland"),
        order_state("A-1021", address="88 Juniper Street, Ashland"),
    ),
    Question(
        "I moved last week! Order A-1022 needs to go to 5 Quarry Road, Salem please, not my old address",
        "address",
        "The order is packed and its label printed, so the address can no longer be changed.",
        ("A-1022", "Changing an order/0"),
        _move(1022, "5 Quarry Road, Salem"),
        order_state("A-1022", address="9 Bridge Street, Hood River"),
        ("packed",),
    ),
    Question(
        "Can you send order A-1023 to 410 Mill Lane, Eugene instead? Nobody is home this week.",
        "address",
        "Order A-1023 is already with the carrier, so its address can no longer be changed.",
        ("A-1023", "Changing an order/1"),
        _move(1023, "410 Mill Lane, Eugene"),
    ),
    Question(
        "I only return from holiday on the 20th and the refund of my hotel is a mess. Can A-1024 be sent to "
        "19 Harbor Street, Newport instead of my home adress?",
        "address",
        "Yes, the order will go to Newport.",
        ("A-1024", "Changing an order/0"),
        _move(1024, "19 Harbor Street, Newport"),
        order_state("A-1024", address="19 Harbor Street, Newport"),
    ),
    Question(
        "Somebody sent me a gift, order A-1026, but the address is wrong. It is 31 Canyon Drive, Redmond",
        "address",
        "Only the person who bought a gift can redirect it; please ask them to change it in their account.",
        ("A-1026",),
        (call("find_order", order_id="A-1026"),),
    ),
    Question(
        "I lost my order number, my email is priya.raman@example.com. Has it shipped?",
        "tracking",
        "Order A-1057 is packed and has not left our warehouse yet.",
        ("A-1057",),
        (call("find_order", email="priya.raman@example.com"),),
    ),
    Question(
        "cant find my order number but my mail is sam@example.com, where is my parcel",
        "tracking",
        "There is no order under this e-mail address.",
        (),
        (call("find_order", email="sam@example.com"),),
        contains=("cannot find",),
    ),
    Question("wheres my stuff", "tracking", "Please send us your order number."),
    Question(
        "Status of order A-1942 please, its been a week",
        "tracking",
        "There is no order A-1942; please check the number.",
        (),
        (call("find_order", order_id="A-1942"),),
    ),
    Question(
        "Has order A-1O27 left your warehouse yet? My parcel app says nothing.",
        "tracking",
        "Order A-1027 has left and is due on 16 October.",
        ("A-1027",),
        _track(1027, "NB-27H"),
        contains=("16 October",),
    ),
    Question(
        "Are A-1028 and A-1029 coming in the same parcel?",
        "tracking",
        "No. A-1028 is due on 15 October, A-1029 is still in our warehouse.",
        ("A-1028", "A-1029"),
        (*_track(1028, "NB-28B"), call("find_order", order_id="A-1029")),
        contains=("A-1028", "A-1029"),
    ),
    Question(
        "Where is A-1030? My bank shows no charge.",
        "tracking",
        "Order A-1030 was cancelled, so nothing is on its way.",
        ("A-1030",),
        (call("find_order", order_id="A-1030"),),
    ),
)

RETURN_QUESTIONS = (
    Question(
        "I'd like to return the boots from order A-1032, they're too tight.",
        "return",
        "The return is open and the label was sent by e-mail.",
        ("A-1032", "Returns/0"),
        _open(1032, "does not fit"),
        order_state("A-1032", status="return_opened"),
    ),
    Question(
        "Please open a return for A-1033, the green looks nothing like the photo",
        "return",
        "Return R-1033 for the fleece pullover is open, and the label is on its way to you by e-mail.",
        ("A-1033", "Returns/0"),
        _open(1033, "not wanted"),
        order_state("A-1033", status="return_opened"),
        ("R-1033",),
    ),
    Question(
        "want to send back A1034 - jacket is way to big",
        "return",
        "Your return is open, you will get the label by e-mail.",
        ("A-1034", "Returns/0"),
        _open(1034, "does not fit"),
        order_state("A-1034", status="return_opened"),
    ),
    Question(
        "Can I still return the day pack? Order A-1035, bought in august, never used it.",
        "return",
        "No, the 45 days since delivery are over.",
        ("A-1035", "Returns/0"),
        (call("find_order", order_id="A-1035"),),
    ),
    Question(
        "The folding chair (A-1036) took almost three weeks to get here, now the season is over. I want to return it.",
        "return",
        "It was delivered 36 days ago, so the return is open.",
        ("A-1036", "Returns/0"),
        _open(1036, "not wanted"),
        order_state("A-1036", status="return_opened"),
    ),
    Question(
        "The mug in A-1037 arrived smashed to bits. Refund please.",
        "refund",
        "We have refunded $24.00.",
        ("A-1037", "Returns/4"),
        _pay(1037, 24.0),
        order_state("A-1037", status="refunded"),
    ),
    Question(
        "One pole of the tent in order A-1038 came snapped in two, I want my money back",
        "refund",
        "After approval we have refunded $289.00.",
        ("A-1038", "Returns/4"),
        _pay(1038, 289.0, approved_by="supervisor"),
        order_state("A-1038", status="refunded", refunded_usd=289.0),
    ),
    Question(
        "Changed my mind about the sleeping bag, order A-1039. Id like my money back before sending it.",
        "refund",
        "The refund comes after the return; we have opened it for you.",
        ("A-1039", "Returns/3"),
        (
            call("find_order", order_id="A-1039"),
            call("create_return", order_id="A-1039", reason="not wanted"),
        ),
        order_state("A-1039", status="return_opened", refunded_usd=0.0),
    ),
    Question(
        "The floor of our new family tent (A-1040) is torn along the seam. We want a refund.",
        "refund",
        "We have refunded $640.00 for order A-1040. It reaches your card in five to seven days.",
        ("A-1040", "Returns/4"),
        _pay(1040, 640.0, approved_by="supervisor"),
        order_state("A-1040", status="refunded", refunded_usd=640.0),
    ),
    Question(
        "I returned A-1042 two weeks ago, where's my refund?",
        "refund",
        "Refunds reach your card five to seven working days after the parcel is back with us.",
        ("A-1042", "Returns/3"),
        (call("find_order", order_id="A-1042"),),
        contains=("five to seven",),
    ),
    Question(
        "has my refund for A-1043 gone out?",
        "refund",
        "We refunded $59.00 for order A-1043 on 9 October.",
        ("A-1043",),
        (call("find_order", order_id="A-1043"),),
    ),
    Question(
        "I want to return what came in order A-1044, I thought I had cancelled it",
        "return",
        "Order A-1044 was cancelled and holds no items, so there is nothing to return.",
        ("A-1044",),
        (call("find_order", order_id="A-1044"),),
    ),
    Question(
        "A-1045 never arrived and the carrier says they stopped looking. Please refund it.",
        "refund",
        "We have refunded $68.00 for order A-1045. It reaches your card in five to seven days.",
        ("A-1045", "Returns/4"),
        (
            call("find_order", order_id="A-1045"),
            call("track_parcel", parcel_id="NB-45G"),
            call("refund", order_id="A-1045", amount_usd=68.0),
        ),
        order_state("A-1045", status="refunded"),
    ),
    Question(
        "A-1046 is not here, i want my money back!!",
        "refund",
        "The parcel is due on 15 October; if it does not come we refund it.",
        ("A-1046",),
        _track(1046, "NB-46S"),
        order_state("A-1046", status="shipped", refunded_usd=0.0),
    ),
    Question(
        "Return A-1047 pls, found nicer ones",
        "return",
        "Order A-1047 has not arrived yet. Write to us when it has, and we will open the return.",
        ("A-1047",),
        _open(1047, "not wanted"),
        order_state("A-1047", status="shipped"),
    ),
    Question(
        "Can I swap the medium gloves in A-1048 for a large?",
        "return",
        "Yes: we have opened the return, please order the larger pair.",
        ("A-1048", "Exchanges/0"),
        _open(1048, "exchange"),
        order_state("A-1048", status="return_opened"),
    ),
    Question(
        "I opened the socks from A-1049 and they itch like mad. I want to return them",
        "return",
        "Opened socks, base layers and trail food cannot be returned.",
        ("A-1049", "Returns/2"),
        (call("find_order", order_id="A-1049"),),
    ),
    Question(
        "You sent me the wrong trekking poles (order A-1050). I want a refund.",
        "refund",
        "We have refunded $79.00, which takes five to seven days to reach the card.",
        ("A-1050", "Returns/4"),
        _pay(1050, 79.0),
        order_state("A-1050", status="refunded"),
    ),
    Question(
        "My new bottle (A-1051) leaks, refund please, the lid is broken",
        "refund",
        "We have refunded $26.00 for order A-1051. It reaches your card in five to seven days.",
        ("A-1051", "Returns/4"),
        _pay(1051, 26.0),
        order_state("A-1051", status="refunded"),
    ),
)

TWO_PART_QUESTIONS = (
    Question(
        "How many days after delivery can I return a tent? And can you open a return for A-1052, please?",
        "two parts",
        "45 days from delivery. The return for A-1052 is open.",
        ("Returns/0", "A-1052"),
        _open(1052, "not wanted"),
        order_state("A-1052", status="return_opened"),
        ("45 days", "R-1052"),
    ),
    Question(
        "Please open a return for A-1053 and also tell me whether gift cards expire.",
        "two parts",
        "Return R-1053 is open. Gift cards never expire.",
        ("A-1053", "Returns/0", "Gift cards/0"),
        _open(1053, "not wanted"),
        order_state("A-1053", status="return_opened"),
        ("never expire",),
    ),
    Question(
        "Where is A-1054? Also, how do I wash a down jacket?",
        "two parts",
        "It is due on 16 October. Wash down on the gentle cycle of a front loader, with down soap.",
        ("A-1054", "Down care/0"),
        _track(1054, "NB-54U"),
        contains=("16 October", "down soap"),
    ),
    Question(
        "Is my order A-1055 coming this week? And do you match prices if I saw the same thing cheaper?",
        "two parts",
        None,
        ("A-1055", "Price match/0"),
        _track(1055, "NB-55V"),
    ),
    Question(
        "Is the backpack I bought in order A-1056 still under warranty?",
        "two parts",
        "Yes: it was bought on 3 May 2024 and backpacks carry a three-year warranty.",
        ("A-1056", "Warranty/0"),
        (call("find_order", order_id="A-1056"),),
        contains=("three-year",),
    ),
)

ADVICE_QUESTIONS = (
    Question(
        "How long does standard shipping take, in working days?",
        "advice",
        "Standard parcels arrive in three to five working days.",
    ),
    Question(
        "do you ship to canada and what does it cost",
        "advice",
        "Yes, for $19, in six to nine working days.",
        ("Shipping abroad/0", "Shipping abroad/1"),
        contains=("$19",),
    ),
    Question(
        "Is the label free when i return something?",
        "advice",
        "The first return label is free.",
        ("Returns/1",),
    ),
    Question(
        "Do your hiking boots run small? I'm normaly a 9",
        "advice",
        "Yes, half a size, so take a 9.5.",
        ("Boot sizes/0",),
    ),
    Question("Which faults does the warranty cover?", "advice", "Faults in material and stitching."),
    Question("Do gift cards expire?", "advice", "Gift cards never expire.", ("Gift cards/0",)),
    Question(
        "Can I machine wash my tent",
        "advice",
        "Never machine wash a tent: the spin cycle pulls the coating off.",
    ),
    Question(
        "Water no longer beads on my rain jacket. How do I fix that?",
        "advice",
        "Wash it at 30 degrees with a technical cleaner, then reproof it.",
        ("Rain jacket care/0", "Rain jacket care/1"),
    ),
    Question(
        "What are your shop's opening hours on sundays?",
        "advice",
        "On Sundays we are open from 11 to 5.",
        ("Our shop/0",),
        contains=("11 to 5",),
    ),
    Question(
        "Can I take fuel canisters on a plane?",
        "advice",
        "Airlines do not allow fuel canisters on a plane, neither in the cabin nor in the hold.",
    ),
    Question(
        "The zip of my old tent is gone. What does a new zip cost?",
        "advice",
        "A new zip is $18 plus shipping.",
    ),
    Question("how long do repairs take", "advice", "Repairs take about two weeks.", ("Repairs/2",)),
    Question("do u rent tents and sleeping bags", "advice", "Yes, from $12 a night in our shop in Bend."),
    Question(
        "How should I store my down sleeping bag over the summer?",
        "advice",
        "Store it loose in its large cotton sack, never compressed.",
        ("Down care/2",),
    ),
    Question(
        "I found the same tent cheaper at another shop, will you match it",
        "advice",
        "If you find the same item cheaper at another shop within 14 days, we match the price.",
        ("Price match/0",),
    ),
    Question(
        "when do my trail points run out?",
        "advice",
        "After 18 months without a purchase.",
        ("Trail points/1",),
    ),
    Question("Hello, I would like you to delete my account and all my data. How?", "advice", None, ("Your data",)),
    Question("Do you sell kayaks?", "advice"),
    Question(
        "Who pays customs duties when you ship to Mexico?",
        "advice",
        "You do, the carrier collects them at the door.",
        ("Shipping abroad/3",),
    ),
    Question(
        "I'm between two jacket sizes, which one should I take?",
        "advice",
        "The larger one if you wear a fleece under it.",
    ),
    Question(
        "My boots are wet through after the Timber trail, whats the best way to dry them",
        "advice",
        "Stuff them with newspaper and let them dry slowly, away from heaters.",
        ("Footwear care/0",),
        contains=("newspaper",),
    ),
)

QUESTIONS = ORDER_QUESTIONS + RETURN_QUESTIONS + TWO_PART_QUESTIONS + ADVICE_QUESTIONS
