"""The shop's help pages, each a tuple of sentences that can stand alone."""

from __future__ import annotations

PAGES: dict[str, tuple[str, ...]] = {
    "Shipping": (
        "Standard shipping is free on orders over $75 and costs $6 below that.",
        "Standard parcels arrive in three to five working days.",
        "Express parcels cost $14 and arrive the next working day if you order before noon.",
        "The tracking link appears in your account when the parcel leaves our warehouse.",
    ),
    "Shipping abroad": (
        "We ship to Canada and Mexico too.",
        "A parcel to Canada costs $19 and takes six to nine working days.",
        "A parcel to Mexico costs $24 and takes seven to twelve working days.",
        "Customs duties are collected by the carrier at the door and are not part of our price.",
        "Fuel canisters and bear spray cannot be sent abroad.",
    ),
    "Returns": (
        "You can return unused gear within 45 days of delivery.",
        "The first return label is free; a second one for the same order costs $5.",
        "Opened socks, base layers and trail food cannot be returned.",
        "A refund reaches your card five to seven working days after the parcel is back in our warehouse.",
        "For damaged, wrong or lost goods we pay at once, and it reaches your card in five to seven days.",
    ),
    "Exchanges": (
        "To exchange an item for another size or colour, open a return and place a new order.",
        "We hold the new size for you for three days if you ask us when you open the return.",
    ),
    "Boot sizes": (
        "Our hiking boots run half a size small, so take half a size more than you usually wear.",
        "Try boots on in the evening, with the socks you will hike in.",
        "A finger should fit behind the heel when your toes touch the front.",
    ),
    "Jacket sizes": (
        "Between two jacket sizes, take the larger one if you wear a fleece under it.",
        "Measure your chest at its widest point and compare it with the chart on the product page.",
    ),
    "Warranty": (
        "Tents and backpacks carry a three-year warranty from the day of purchase, all else one year.",
        "The warranty covers faults in material and stitching.",
        "Wear, burns and accidents are not covered, but our workshop can often repair them.",
        "Send us a photo of the fault and your order number to make a claim.",
    ),
    "Repairs": (
        "Our workshop repairs zips, poles and torn seams, whether you bought the item from us or not.",
        "A new zip costs $18 and a patch costs $12, plus shipping.",
        "Repairs take about two weeks.",
    ),
    "Tent care": (
        "Never machine wash a tent: the spin cycle pulls the coating off.",
        "Clean a tent with cold water, a soft sponge and mild soap.",
        "Dry it fully before you pack it, or mildew will grow on the fabric.",
        "Reseal the seams every second season.",
    ),
    "Rain jacket care": (
        "When water no longer beads on your rain jacket, wash it at 30 degrees with a technical cleaner.",
        "Then spray the reproofing agent on the damp jacket and tumble dry it on low for 20 minutes.",
        "Fabric softener ruins the membrane.",
    ),
    "Down care": (
        "Wash down in a front loader on the gentle cycle with down soap.",
        "Tumble dry it on low with two clean tennis balls for up to three hours, until no clumps are left.",
        "Store a down sleeping bag loose in its large cotton sack, never compressed.",
    ),
    "Footwear care": (
        "Stuff soaked footwear with newspaper and let it dry slowly, away from heaters.",
        "Wax leather twice a season.",
    ),
    "Stoves and fuel": (
        "All our gas stoves fit canisters with a screw thread.",
        "Airlines do not allow fuel canisters on a plane, neither in the cabin nor in the hold.",
        "A 230 gram canister boils about twelve litres of water.",
    ),
    "Gift cards": (
        "Gift cards never expire.",
        "They work online and in the shop, but cannot be paid out in cash.",
        "A lost gift card can be replaced if you have the receipt.",
    ),
    "Payment": (
        "We take all major credit cards, bank transfer and gift cards.",
        "You can pay with one gift card and one credit card together, but not with two credit cards.",
        "We do not offer instalments.",
    ),
    "Price match": (
        "If you find the same item cheaper at another shop within 14 days, we match the price.",
        "Auction sites and clearance sales are excluded from the price match.",
    ),
    "Rental": (
        "You can rent tents, packs and sleeping bags from our shop in Bend, from $12 a night.",
        "A deposit of $100 is held on your card until the gear is back.",
    ),
    "Our shop": (
        "Our shop in Bend is open from 9 to 6 on weekdays and Saturdays, and from 11 to 5 on Sundays.",
        "Parking is behind the building, and dogs are welcome.",
    ),
    "Changing an order": (
        "You can cancel an order or change its address in your account until it is packed.",
        "Once a parcel is with the carrier, neither of us can change it; refuse it at the door instead.",
    ),
    "Trail points": (
        "You earn one trail point for every dollar, and 100 points are worth $5.",
        "Trail points lapse after 18 months without a purchase.",
    ),
    "Your data": (
        "To delete your account and its data, choose Close account in your profile.",
        "We erase everything within 30 days, except invoices, which the law makes us keep for seven years.",
    ),
}


def page_text(title: str) -> str:
    """One page as the single string that the retriever returns."""
    return f"{title}: {' '.join(PAGES[title])}"
