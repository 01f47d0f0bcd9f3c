"""Postal addresses: what is found and what is left, a text with the addresses in ⟦double brackets⟧."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.names.addresses import find_addresses, find_addresses_in

STREETS = [
    "I live at ⟦12 High Street⟧ now.",
    "The venue is ⟦740 Water Street Southwest⟧, and it is full.",
    "Drive to ⟦15555 East 14th Street, Suite 366⟧.",
    "It is at ⟦375 40th Street⟧.",
    "Enter on ⟦Sludevej 13⟧ please.",
    "The shop in ⟦Hauptstraße 5, 10115 Berlin⟧ is open.",
    "Send it to ⟦ul. Jesionowa 127⟧ today.",
    "He went to ⟦36 rue de Pologne⟧ yesterday.",
    "Meet me at ⟦Via delle Coste 41⟧ at noon.",
    "The house in ⟦Rákóczi út 66.⟧ burned.",
    "He lives on the north side of ⟦Joaquin Suarez 2906⟧.",
    "send it to ⟦0605 πεντέλης 210 apt. 999\ndelmas, mp 35739⟧",
]

WITH_TAIL = [
    "Ship to ⟦14 Crown Street, Suite 321, London, United Kingdom 75419⟧, please.",
    "New address: ⟦224 Bond Street\n Suite 413\n Warwick\n United States⟧",
    "⟦971 Kesk 53\n Suite 343\n Pärnu\n Estonia⟧",
    "⟦6076 Piroska u. 97.\nPorto Alegre\n, RS\n Brazil 95828⟧\nMobile: 99 57 74",
    "Bill ⟦1 Main St, Springfield, IL 62704⟧. Thanks!",
    "⟦99449 18 McPherson Road Suite 019 CHARLEROI Victoria⟧? I am away.",
    "⟦Storgarden 52 Trajanka Forks\n Suite 894\n HARSTAD\n Norway 95441⟧",
    "Call at ⟦12 Main Street⟧\nThanks\nJohn",
    "On file: ⟦476 Maple Drive, Suite 432, New York, NY 10093⟧.",
    "Ship to ⟦9 Elm Avenue, San Diego, CA 92164⟧ or ⟦8 Oak Lane, South Bend, IN 46236⟧.",
    "her address: ⟦450 Præstevænget 15⟧, København V",
    "Ship to ⟦Flat 4, 18 Elm Grove, Leeds LS6 2QT⟧.",
    "I live at ⟦45 King St W, Toronto, ON M5H 1J8⟧ since May.",
    "Mi casa: ⟦Calle Mayor 5, 2º B, 28013 Madrid⟧.",
    "Entregue em ⟦Rua Augusta, 1508⟧ amanhã.",
    "It is ⟦Flat 4B, Rose Apartments, MG Road, Bengaluru 560001⟧.",
    "It is ⟦Block 123 Ang Mo Kio Avenue 3, #04-56, Singapore 560123⟧.",
    "Office: ⟦3-12-8 Shibuya, Shibuya-ku, Tokyo 150-0002⟧.",
    "Adres: ⟦Atatürk Caddesi No: 12⟧.",
]

BOXES_AND_FLATS = [
    "Write to ⟦P.O. Box 255⟧ only.",
    "⟦PSC 6293, Box 8158\nAPO AP 04336⟧",
    "⟦Unit 0822 Box 8858\nDPO AA 13319⟧",
    "⟦USNS Bergman\nFPO AP 93757⟧",
    "They meet at ⟦the corner of Kuusiku 7 and Alexander Flat⟧.",
    '{"address1": "⟦833 Highland Drive⟧", "address2": "⟦Suite 740⟧", "city": "Denver"}',
    "Mrs. Barbara Yudina ⟦Apt. 675⟧",
]

NO_ADDRESSES = [
    "I moved on 12 May 2020 and paid 35 dollars.",
    "Windows 95 and Boeing 747 are old.",
    "Flight 123 leaves from Gate 5 at 10 am.",
    "See Chapter 3, Table 4 and Unit 2.",
    "In 2020 Anna won 3 of 5 games.",
    "The cost is $12 Main course included.",
    "Version 2.0 of Python 3 runs on port 8080.",
    "There are 3 ways to drive there.",
    "Look for the house in the book with DOI 10.1353/book.24372.",
    "It stayed in Textual Cultures, Spring 2008, and moved from Disney's 1973 film.",
    "Box Office Mojo is more reliable. Upvote 9. Downvote.",
    "Address: google: Federico Lauria 2014 dissertation",
]


def marked(text: str) -> str:
    for finding in reversed(find_addresses(text)):
        text = f"{text[: finding.start]}⟦{text[finding.start : finding.end]}⟧{text[finding.end :]}"
    return text


@pytest.mark.parametrize("expected", STREETS + WITH_TAIL + BOXES_AND_FLATS + NO_ADDRESSES)
def test_addresses_are_found_whole_and_near_misses_are_left(expected: str) -> None:
    assert marked(re.sub("[⟦⟧]", "", expected)) == expected


def test_a_country_or_code_makes_an_address_more_certain() -> None:
    street, full = find_addresses("12 High Street")[0], find_addresses("12 High Street, Leeds, England 12345")[0]
    assert 0.5 <= street.confidence < full.confidence < 1
    assert street.type == full.type == "address"


@given(
    st.lists(
        st.sampled_from(
            ["12", "345 ", "Main ", "Street", "\n", ", ", "Apt. 5", " Ümit ", "rue de ", "Berlin", " 10115", "é"]
        )
    )
)
def test_findings_are_in_order_and_do_not_overlap(parts: list[str]) -> None:
    text = "".join(parts)
    ends = 0
    for finding in find_addresses(text):
        assert ends <= finding.start < finding.end <= len(text)
        ends = finding.end


@given(st.lists(st.text()))
def test_any_texts_can_be_searched_together(texts: list[str]) -> None:
    assert find_addresses_in(texts) == [find_addresses(text) for text in texts]


@pytest.mark.parametrize(
    "piece", ["1234567890", "12 34 ", "1.2.", "Abc 12 ", "12 Abc\n", "Apt. ", "12 rue de la ", "the corner of "]
)
def test_repeated_pieces_are_searched_to_the_end(piece: str) -> None:
    text = piece * 2_000 + "\nI live at 12 High Street, Leeds, United Kingdom 75419"
    assert find_addresses(text)[-1].end == len(text)


IN_OTHER_SCRIPTS = [
    "⟦東京都千代田区丸の内1-1-1⟧", "住所は⟦東京都千代田区丸の内1-1-1⟧です。", "住所は⟦大阪府大阪市北区梅田3丁目1番3号⟧",
    "⟦〒100-0005 東京都千代田区丸の内1-1-1 丸ビル5階⟧", "⟦横浜市西区みなとみらい2-2-1⟧",
    "東京都の人口は1400万人で、大阪市の2-3倍です", "阪神は千葉市の試合で3-1で勝った",
    "⟦北京市朝阳区建国路88号⟧", "地址:⟦北京市朝阳区建国路88号⟧", "我住在⟦北京市朝阳区建国路88号3号楼501室⟧,谢谢",
    "⟦台北市信義區信義路五段7號⟧", "请寄到⟦广州市天河区体育西路103号⟧", "北京地铁8号线很挤, 第88号文件, 2024年3月5号",
    "⟦서울특별시 강남구 테헤란로 152⟧ 로 보내세요", "주소는 ⟦부산광역시 해운대구 우동 1408번지⟧입니다",
]  # fmt: skip
POSTCODES = [
    "⟦london nw1 6xe⟧", "send it to ⟦london nw1 6xe⟧ please", "I live at ⟦221b baker street, london nw1 6xe⟧.",
    "postcode: ⟦m1 1ae⟧", "⟦London NW1 6XE⟧", "version b2 1st and phase e1 2nd, London a1 2bb",
]  # fmt: skip


@pytest.mark.parametrize("expected", IN_OTHER_SCRIPTS + POSTCODES)
def test_addresses_in_other_scripts_and_by_postcode(expected: str) -> None:
    text = re.sub("[⟦⟧]", "", expected)
    for found in reversed(find_addresses_in([text])[0]):
        text = f"{text[: found.start]}⟦{text[found.start : found.end]}⟧{text[found.end :]}"
    assert text == expected


def test_a_long_run_without_spaces_is_read_in_pieces() -> None:
    for run in ("北京市区路" * 20_000, "東京都1-1" * 20_000, "市区1号" * 20_000, "서울 " * 20_000):
        assert len(find_addresses_in([run])) == 1
