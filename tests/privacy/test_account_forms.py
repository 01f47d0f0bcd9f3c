"""Accounts by form, e-mail addresses in words, birth dates in many languages, fields of things; with near misses."""

from __future__ import annotations

import pytest

from agentunit.privacy.detection.secret_forms import account_spans
from agentunit.privacy.detectors import PatternDetector


def found(text: str, type: str) -> list[str]:
    return [text[each.start : each.end] for each in PatternDetector().find([text])[0] if each.type == type]


@pytest.mark.parametrize(
    ("text", "accounts"),
    [
        ('{"certificate_9932251": {"source": "certificate"}}', ["certificate_9932251"]),
        ("Charge gift_card_3871331 and paypal_1621947.", ["gift_card_3871331", "paypal_1621947"]),
        ("customer cus_NffrFeUfNV2Hib paid", ["cus_NffrFeUfNV2Hib"]),
        ("open /Users/mia.lindqvist/notes.txt", ["mia.lindqvist"]),
        ("C:\\Users\\Mia Lindqvist\\Desktop", ["Mia Lindqvist"]),
        ("cd /home/mlindqvist && ls", ["mlindqvist"]),
        ("postgresql://mlindqvist:pw@db.example.org/shop", ["mlindqvist"]),
        ("credit_card_12 is a column", []),
        ("/home/runner/work /Users/Shared/x /home/ubuntu/", []),
        ("redis://default:pw@cache:6379", []),
        ("https://example.org/Users/list", []),
        ("order_1234567 shipped", []),
    ],
)
def test_accounts_by_form(text: str, accounts: list[str]) -> None:
    assert [text[start:end] for start, end in account_spans(text)] == accounts


@pytest.mark.parametrize(
    ("text", "emails"),
    [
        ("Write to john at example dot com today", ["john at example dot com"]),
        ("jane dot doe at mail dot example dot co dot uk", ["jane dot doe at mail dot example dot co dot uk"]),
        ("ada [at] example.org", ["ada [at] example.org"]),
        ("john_smith(at)example(dot)com", ["john_smith(at)example(dot)com"]),
        ("maria arroba correo punto es", ["maria arroba correo punto es"]),
        ("Look at example dot com", []),
        ("The dot product at node dot js", []),
        ("We meet at noon dot matrix printers hum", []),
    ],
)
def test_spelled_out_email(text: str, emails: list[str]) -> None:
    assert found(text, "email") == emails


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("Née le 14 mars 1985 à Lyon", ["14 mars 1985"]),
        ("data urodzenia: 12 czerwca 1990", ["12 czerwca 1990"]),
        ("Född den 3 maj 1979", ["3 maj 1979"]),
        ("Narozen 4. července 1975", ["4. července 1975"]),
        ("Doğum tarihi: 12 Haziran 1988", ["12 Haziran 1988"]),
        ("született: 1985. március 12", ["1985. március 12"]),
        ("Дата рождения: 14 мая 1987", ["14 мая 1987"]),
        ("Ημερομηνία γέννησης: 5 Ιουλίου 1982", ["5 Ιουλίου 1982"]),
        ("تاريخ الميلاد: 12 مارس 1985", ["12 مارس 1985"]),
        ("תאריך לידה: 12 במרץ 1985", ["12 במרץ 1985"]),
        ("जन्म तिथि: 12 मार्च 1985", ["12 मार्च 1985"]),
        ("วันเกิด 12 มีนาคม 2528", ["12 มีนาคม 2528"]),
        ("1985年3月12日生まれ", ["1985年3月12日"]),
        ("생년월일: 1985년 3월 12일", ["1985년 3월 12일"]),
        ("tanggal lahir 5 Agustus 1990", ["5 Agustus 1990"]),
        ("Born in the USA, an album of 1984", []),
        ("Rechnung vom 14. März 1985", []),
        ("The birth rate was 12 per 1000 in 1990", []),
    ],
)
def test_birth_dates(text: str, dates: list[str]) -> None:
    assert found(text, "date_of_birth") == dates


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"customer_name": "Victoria Lindqvist"}', ["Victoria Lindqvist"]),
        ('{"name": "Victoria Lindqvist", "email": "v@example.org"}', ["Victoria Lindqvist"]),
        ('{"product_name": "Victoria Sponge"}', []),
        ('{"name": "Margherita", "price": 11}', []),
        ('{"city": "Charlotte", "state": "North Carolina"}', []),
        ("0x0072: 0x0072, # LATIN SMALL LETTER R", []),
        ("const Paige = require('x')", []),
        ("Amazon Lex wants to elicit an intent.", []),
        ("Kasse Drei hat heute früher geschlossen. Alte Gutscheine gelten noch bis Jahresende.", []),
        ("Ungültige Größe; der Wert muss größer sein und darf nicht leer bleiben.", []),
        ("Did Nigel already pay?", ["Nigel"]),
        ("Oğuzhan Demirtaş called about the invoice.", ["Oğuzhan Demirtaş"]),
        ("Jihoon and her brother live nearby.", ["Jihoon"]),
    ],
)
def test_people_are_told_from_things(text: str, names: list[str]) -> None:
    assert found(text, "name") == names
