"""Known values in every way to write them: encodings, separators, markup. None is left, and nothing else is taken."""

from __future__ import annotations

import base64
import html
import json
import quopri
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from agentunit.privacy.detectors import PatternDetector, StructuredDetector
from agentunit.privacy.findings import PII_TYPES
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor
from agentunit.privacy.spellings import KnownValues
from agentunit.reports.reported_run import Mask

VALUES = {
    "email": "mia.lindqvist@example.org",
    "phone": "555-010-4477",
    "credit_card": "4111 1111 1111 1111",
    "ssn": "536-22-8741",
    "name": "Mia Lindqvist",
}
_MARK = re.compile(r"<[A-Z]+(?:_[A-Z]+)*_[0-9]+>")
_OF_MARKUP = re.compile(
    r"<!--.*?-->|</?[a-z][^>]*>|&lt;/?b&gt;|\\u003c/?b\\u003e|%3C/?b%3E|textbf|\x1b\[[0-9]*m|\[/?b\]"
    r"|&(?:nbsp|shy|#8203);|%(?:25)*20"
)


def base_64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def wrapped(text: str, width: int, end: str) -> str:
    return end.join(text[at : at + width] for at in range(0, len(text), width))


def in_a_letter(value: str) -> bytes:
    return f"Details of the customer: {value} (primary). Please call back, and thank you for everything.".encode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "base64": lambda value: base_64(value.encode()),
    "base64 without its end": lambda value: base_64(value.encode()).rstrip("="),
    "base64 for a URL": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "base64 of a letter": lambda value: base_64(in_a_letter(value)),
    "base64 in lines": lambda value: wrapped(base_64(in_a_letter(value)), 76, "\n"),
    "base64 in lines of a mail": lambda value: wrapped(base_64(in_a_letter(value)), 64, "\r\n"),
    "base64 in short lines": lambda value: wrapped(base_64(value.encode()), 8, "\n"),
    "base64 in lines, in JSON": lambda value: wrapped(base_64(in_a_letter(value)), 76, "\\n"),
    "base64 in quoted lines": lambda value: wrapped(base_64(in_a_letter(value)), 60, "\n> "),
    "base64 put together": lambda value: f'"{wrapped(base_64(in_a_letter(value)), 40, chr(34) + " + " + chr(34))}"',
    "base64 of UTF-16": lambda value: base_64(value.encode("utf-16-le")),
    "base64 of UTF-16, big end first": lambda value: base_64(value.encode("utf-16-be")),
    "base64 of UTF-16 with its mark": lambda value: base_64(value.encode("utf-16")),
    "base64 of UTF-32": lambda value: base_64(value.encode("utf-32")),
    "base64 of Latin 1": lambda value: base_64("Caf\u00e9: ".encode("latin-1") + in_a_letter(value)),
    "base64 twice": lambda value: base_64(base_64(value.encode()).encode()),
    "base64 of JSON": lambda value: base_64(json.dumps({"to": value}).encode()),
    "base64 of HTML": lambda value: base_64(f"<p>{value.replace('@', '<b>@</b>')}</p>".encode()),
    "base64 between other bytes": lambda value: base_64(b"\x00\x01\xff\xfe" + value.encode() + b"\x00\x80"),
    "base64 as a value": lambda value: f"token={base_64(value.encode())}",
    "base64 as a path": lambda value: f"/x/{base_64(value.encode())}/y",
    "base64 as a quoted-printable text": lambda value: base_64(value.encode()).replace("=", "=3D"),
    "base32": lambda value: base64.b32encode(value.encode()).decode(),
    "base32 in lines": lambda value: wrapped(base64.b32encode(value.encode()).decode(), 16, "\n"),
    "hexadecimal": lambda value: value.encode().hex(),
    "hexadecimal capitals": lambda value: "0x" + value.encode().hex().upper(),
    "hexadecimal with colons": lambda value: value.encode().hex(":"),
    "hexadecimal with spaces": lambda value: value.encode().hex(" "),
    "hexadecimal with dashes": lambda value: value.encode().hex("-"),
    "hexadecimal in groups": lambda value: value.encode().hex(" ", 2),
    "hexadecimal in lines": lambda value: wrapped(value.encode().hex(), 20, "\n"),
    "hexadecimal as numbers": lambda value: ", ".join(f"0x{byte:02x}" for byte in value.encode()),
    "hexadecimal of UTF-16": lambda value: value.encode("utf-16-le").hex(),
    "hexadecimal of a URL": lambda value: quote(value, safe="").encode().hex(),
    "codes": lambda value: json.dumps(list(value.encode())),
    "bytes": lambda value: "".join(f"\\x{byte:02x}" for byte in value.encode()),
    "octal": lambda value: "".join(f"\\{byte:03o}" for byte in value.encode()),
    "URL": lambda value: quote(value, safe=""),
    "URL in lower case": lambda value: re.sub("%..", lambda found: found[0].lower(), quote(value, safe="")),
    "URL of every byte": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "URL three times": lambda value: quote(quote(quote(value, safe=""), safe=""), safe=""),
    "URL of a script": lambda value: "".join(f"%u{ord(letter):04x}" for letter in value),
    "URL in HTML": lambda value: quote(value, safe="").replace("%", "&#37;"),
    "HTML": lambda value: "".join(f"&#{ord(letter)};" for letter in value),
    "HTML, hexadecimal": lambda value: "".join(f"&#x{ord(letter):x};" for letter in value),
    "HTML without ends": lambda value: "".join(f"&#{ord(letter)}" for letter in value) + " ",
    "HTML by names": lambda value: value.replace("@", "&commat;").replace(".", "&period;").replace(" ", "&nbsp;"),
    "HTML twice": lambda value: html.escape("".join(f"&#{ord(letter)};" for letter in value)),
    "JSON": lambda value: "".join(f"\\u{ord(letter):04x}" for letter in value),
    "JSON in JSON": lambda value: "".join(f"\\\\u{ord(letter):04X}" for letter in value),
    "JavaScript": lambda value: "".join(f"\\u{{{ord(letter):x}}}" for letter in value),
    "CSS": lambda value: "".join(f"\\{ord(letter):06x}" for letter in value),
    "code points": lambda value: " ".join(f"U+{ord(letter):04X}" for letter in value),
    "quoted-printable": lambda value: quopri.encodestring(value.encode(), True).decode().replace("@", "=40"),
    "quoted-printable bytes": lambda value: "".join(f"={byte:02X}" for byte in value.encode()),
    "quoted-printable in lines": lambda value: wrapped(value, 3, "=\n"),
    "quoted-printable in lines of a mail": lambda value: value[:4] + "=\r\n" + value[4:],
    "a header of a mail": lambda value: f"=?utf-8?B?{base_64(value.encode())}?=",
    "full width": lambda value: "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in value),
    "circled": lambda value: "".join(chr(ord(each) + 0x246F) if "a" <= each <= "z" else each for each in value),
    "struck out": lambda value: "".join(f"{letter}\u0336" for letter in value),
    "capitals": str.upper,
    "Markdown": lambda value: re.sub(r"([@.+-])", r"\\\1", value),
    "strings put together": lambda value: f"'{value[:4]}' + '{value[4:]}'",
}  # fmt: skip
SEPARATORS = (
    "\u200b", "\u00ad", "\u2060", "\u200d", "\ufeff", " ", "  ", "\u00a0", "\n", "\r\n", "\t", "\\n", ",", "|", ".",
    "/", "-", "_", "\u00b7", "*", "<br>", "<wbr>", "&shy;", "&#8203;", "&nbsp;", "<!-- -->", "<span></span>", "\x00",
    "\u200e", "\x1b[0m",
)  # fmt: skip
MARKUP = (
    ("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("`", "`"), ("~~", "~~"), ("***", "***"), ("==", "=="),
    ("\\*\\*", "\\*\\*"), ("<span>", "</span>"), ('<span class="a b" style="color:red">', "</span>"), ("<b>", "</b>"),
    ("<b><i>", "</i></b>"), ("&lt;b&gt;", "&lt;/b&gt;"), ("<b>", "<\\/b>"), ("\\u003cb\\u003e", "\\u003c/b\\u003e"),
    ("%3Cb%3E", "%3C/b%3E"), ("[", "]"), ("(", ")"), (" [", "] "), ("{", "}"), ('"', '"'), (" ", " "), ("", "\n"),
    ("\n", ""), ("", "\r\n"), ("\\", ""), ("\\textbf{", "}"), ("{\\b ", "}"), ("\x1b[1m", "\x1b[0m"), ("[", "](#)"),
    ("[b]", "[/b]"), ("<!-- x -->", ""), ("<wbr>", "<wbr>"),
)  # fmt: skip


def forms_of(value: str) -> Iterator[str]:
    """A value in every encoding, with each separator in three places, and with each markup around three parts."""
    sign = re.search("[@ .-]", value[1:])
    assert sign is not None
    at = sign.start() + 1
    yield from (encode(value) for encode in ENCODINGS.values())
    for between in SEPARATORS:
        yield between.join(value)
        yield value[:at] + between + value[at] + between + value[at + 1 :]
        yield value[:2] + between + value[2:]
    for opening, closing in MARKUP:
        yield value[:at] + opening + value[at] + closing + value[at + 1 :]
        yield value[:-4] + opening + value[-4:] + closing
        yield opening + value[:4] + closing + value[4:]


def what_is_left(form: str, masked: str) -> str:
    """What still stands of a form where it was masked, without markup: up to four letters may have been around it."""
    text = re.sub(r"[\W_]", "", _OF_MARKUP.sub("", _MARK.sub("", masked)))
    return "" if _MARK.search(masked) and len(text) <= 5 else text or form


@pytest.mark.parametrize("type", VALUES)
def test_no_way_to_write_a_known_value_is_left(type):
    value = VALUES[type]
    forms = list(dict.fromkeys(forms_of(value)))
    assert len(forms) > 200
    left = {}
    for form in forms:
        redactor = Redactor(PatternDetector(), PII_TYPES, Pseudonyms())
        record = {"case": {"id": "q", "query": f"It is {value}, thanks."}, "outcome": {"output": f"1: {form} ;2"}}
        redactor.redact_data([record])
        masked = record["outcome"]["output"]
        if rest := what_is_left(form, masked.removeprefix("1: ").removesuffix(" ;2")):
            left[form] = rest
        assert not redactor.survivors, form
    assert left == {}


@pytest.mark.parametrize(
    "form",
    [
        "bo @ shop.de", "bo@\nshop.de", "bo@ shop.de", r"bo\@shop\.de", "bo**@**shop.de", "bo<span>@</span>shop.de",
        "<b>bo</b>@shop.de", "bo=40shop.de", "bo@sh=\nop.de", "Ym9A\nc2hvcC5kZQ==", "62:6f:40:73:68:6f:70:2e:64:65",
        base_64("bo@shop.de".encode("utf-16")), base_64(base_64(b"bo@shop.de").encode()),
    ],
)  # fmt: skip
def test_an_address_in_such_a_form_is_found_where_nothing_else_tells_it(form):
    # Reports, exports and bundles mask one case at a time: nothing of another case is known there.
    assert what_is_left(form, Mask().text(f"1: {form} ;2").removeprefix("1: ").removesuffix(" ;2")) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Lunch @ example.com today", "Find us @ facebook.com", "meet @ twitter.com/foo", "thanks @bob.de",
        "5 apples @ 2.50 each", "CEO @ openai.com", "Booth 12 @ expo.org", "see you @ 10.30", "@ example.org",
        "2**10 and a*b*c = 12*34*56", "f(a=12, b=40, c=0x41)", "the loop\nruns again\nuntil morning comes",
        "id=8F3A2B4C5D6E7F80 sha=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "2026-11-18 10:20:30, 11:20:31, 12:20:32", "12, 34, 56, 78, 90, 12, 33, 44", "<td>555</td><td>0104478</td>",
        "| 12 | 34 | 56 | 78 |", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    ],
)  # fmt: skip
def test_ordinary_texts_stay(text):
    known = KnownValues((type, value) for type, value in VALUES.items())
    assert known.places(text) == []
    assert not known.stand_in(text)
    assert [each for each in StructuredDetector().find([text])[0] if each.type == "email"] == []
    record = {"case": {"id": "q", "query": f"Write to {VALUES['email']}."}, "outcome": {"output": text}}
    Redactor(PatternDetector(), {"email"}, Pseudonyms()).redact_data([record])
    assert record["outcome"]["output"] == text
