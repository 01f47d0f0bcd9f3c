"""What each recognizer finds and what it leaves: a text with the findings in ⟦double brackets⟧."""

from __future__ import annotations

import base64
import re

import pytest

from agentunit.privacy.detection.engine import Tables, without_overlaps
from agentunit.privacy.detectors import TABLES, TABLES_ALONE
from agentunit.privacy.findings import PII_TYPES

COMPILED = Tables(TABLES, TABLES_ALONE)


def marked(pii_type: str, text: str) -> str:
    findings = without_overlaps(COMPILED.find([text])[0])
    for each in reversed([each for each in findings if each.type == pii_type]):
        text = f"{text[: each.start]}⟦{text[each.start : each.end]}⟧{text[each.end :]}"
    return text


def check(pii_type: str, expected: str) -> None:
    assert marked(pii_type, re.sub("[⟦⟧]", "", expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "⟦ada@example.org⟧",
        "Write to ⟦ada.lovelace+news@mail.example.co.uk⟧.",
        "<⟦ada@example.org⟧>, (⟦a@b.io⟧); \"⟦x_1@y-2.dev⟧\"!",
        "mailto:⟦ada@example.org⟧?subject=hello",
        "Ada Lovelace <⟦ada@example.org⟧>",
        "email=⟦ada@example.org⟧&name=ada",
        "{'to': '⟦ada@example.org⟧'}",
        "⟦müller@bücher.example⟧ und ⟦info@xn--bcher-kva.example⟧",
        "⟦почта@пример.рф⟧ пишите",
        "⟦user%dept@example.com⟧",
        "⟦ADA@EXAMPLE.ORG⟧",
        '⟦"john doe"@example.com⟧', 'Write to ⟦"john doe"@example.com⟧.', '⟦"a@b c"@example.com⟧',
        '⟦"say \\"hi\\""@example.com⟧',
        '{"text": "mail \\⟦"john doe\\"@example.com⟧"}', "⟦user@[192.168.1.1]⟧", "⟦user@[IPv6:2001:db8::1]⟧, then",
        '⟦"john doe"@[192.168.1.1]⟧', "⟦o'brien@example.com⟧", "f'⟦ada@example.org⟧'", "x='⟦ada@example.org⟧'",
        '""@example.com', '"@example.com', "user@[home]", "user@[192.168.1]", "list@[0]", '"two\nlines"@example.com',
        "a@b", "a@b.", "@handle", "no at example.org", "ada@localhost", "ada@@example.org", "@example.org",
        "ada.@example.org", "a..b@example.org", "ada@.org", "ada@-example", "git@", "user@10",
        "5 apples @ 3.50 each",
        "https://user:pa55word@example.org/path",
        "@media.print", "decorator @app.route",
        "pip install foo@1.2.3",
    ],
)  # fmt: skip
def test_email(text: str) -> None:
    check("email", text)


@pytest.mark.parametrize(
    "text",
    [
        "Call ⟦+1-604-696-5272⟧ now", "⟦+1 (604) 696-5272⟧", "⟦+16046965272⟧", "⟦+447700900123⟧", "⟦+44 20 7946 0958⟧.",
        "⟦+44 (0)20 7946 0958⟧", "⟦+41 (0)38 549 02 90⟧", "⟦+46 (0)8 928 571 38⟧", "⟦+49 89/1234567⟧",
        "⟦+33.1.42.68.53.00⟧",
        "⟦0049 30 901820⟧", "⟦001-253-366-9781⟧", "⟦+91 98765 43210⟧", "⟦+86 138 0013 8000⟧", "⟦+358 40 123 4567⟧",
        "⟦(602) 272-9781⟧", "⟦(602)272-9781⟧", "⟦602-272-9781⟧", "⟦602.272.9781⟧", "⟦602 272 9781⟧", "⟦1-800-356-9377⟧",
        "⟦345-899-3560x4587⟧", "⟦345-899-3560 ext. 12⟧", "⟦(898)666-3621 x0135⟧", "⟦345-899-3560 #77⟧",
        "⟦020 7946 0958⟧", "⟦(020) 7946 0958⟧", "⟦07700 900123⟧", "⟦01 42 68 53 00⟧", "⟦03.93.92.16.85⟧",
        "⟦0490 39 07 81⟧",
        "⟦089/1234567⟧", "⟦0171-1234567⟧", "⟦044 668 18 00⟧", "⟦02 9374 4000⟧",
        "**⟦602-272-9781⟧**", "tel:⟦+16046965272⟧", "phone=⟦602-272-9781⟧", "⟦602\u2011272\u20119781⟧",
        "⟦+33\u00a01\u00a042\u00a068\u00a053\u00a000⟧",
        "⟦602-272-9781⟧ ⟦602-272-9782⟧", "⟦+1 555 123 4567⟧ 4111 1111 1111 1111",
        "Phone: ⟦5403926876⟧", "my number is ⟦723 813 266⟧", "Mobile: ⟦99 577450⟧", "fax ⟦28-64-66-98⟧",
        "⟦781 1704⟧ office",
        '"phone_number": "⟦5403926876⟧"', '{\\"phone\\": \\"⟦5403926876⟧\\"}', "Tel. ⟦030 901820⟧",
        "Call me at ⟦5551234⟧",
        "WhatsApp: ⟦07911 123456⟧", "phone is ⟦(11) 96123-4567⟧",
        "Update phone: ⟦5403926876⟧", "Contact card, phone ⟦5403926876⟧",
        "Update ⟦416 60 039⟧ office",
        "⟦123-456-7890⟧", "⟦(123) 456-7890⟧", "⟦123.456.7890⟧", "⟦123 456 7890⟧", "⟦000-000-0000⟧",
        "Call ⟦111-111-1111⟧.",
        "ID-123-456-7890", "123-456-7890-1", "123-456-78901", "1 123 456 7890 12",
        "order 5403926876", "Order number 12345678, call us", "call about ticket 12345678", "phone model 12345678",
        "2024-05-01", "2024-05-01 12:30:45", "01.02.2024 10:30", "05/06/2024", "call on 2024-05-01",
        "call before 05.06.2024",
        "1714557045", "1714557045123", "2024", "1,234,567.89", "$1234567.89", "0.123456789", "3.14159265358979",
        "version 10.0.19045.4291", "192.168.100.200", "978-3-16-148410-0", "0-306-40615-2", "4111 1111 1111 1111",
        "call 1234567.89", "phone 2019-2020", "SKU-602-272-9781", "602-272-9781-22", "1602-272-9781", "id_602-272-9781",
        "+1", "+100%", "1 + 23456789", "555-1234", "+1111111111", "12 34 56 78 90 12 34",
        "UUID 123e4567-e89b-12d3-a456-426614174000", "credit_card_4421486", "10-20-30", "0123", "phone: none",
    ],
)  # fmt: skip
def test_phone(text: str) -> None:
    check("phone", text)


@pytest.mark.parametrize(
    "text",
    [
        "⟦536-22-6789⟧", "SSN: ⟦536-22-6789⟧.", "⟦536 22 6789⟧", "⟦832-13-6314⟧", "ssn ⟦536226789⟧",
        '"ssn": "⟦536226789⟧"',
        "Social Security number is ⟦536226789⟧", "social security: ⟦536.22.6789⟧", "⟦536\u201322\u20136789⟧",
        "My SSN is ⟦123-45-6789⟧.", "⟦123-45-6789⟧", "⟦000-22-6789⟧", "⟦666-22-6789⟧", "⟦900-22-6789⟧", "⟦536-00-6789⟧",
        "⟦536-22-0000⟧", "⟦078-05-1120⟧", "⟦219-09-9999⟧", "⟦123\u201145\u20116789⟧",
        "SSN ⟦123456789⟧", "ssn: ⟦123 45 6789⟧", "SSN#⟦123-45-6789⟧", "ssn ⟦000226789⟧",
        "123 45 6789", "666 22 6789", "900 22 6789", "536 00 6789", "123456789", "ID-123-45-6789", "123-45-6789-A1",
        "ssn 123-45-6789-22", "ssn 123-45-67890",
        "536226789", "order 536226789", "536-22-67890", "1536-22-6789", "A536-22-6789", "536-22-6789-1",
        "10 536 22 6789",
        "536-226-789", "53-622-6789", "ssn is required",
    ],
)  # fmt: skip
def test_ssn(text: str) -> None:
    check("ssn", text)


@pytest.mark.parametrize(
    "text",
    [
        "⟦4111111111111111⟧", "⟦4111 1111 1111 1111⟧", "⟦4111-1111-1111-1111⟧", "⟦5500000000000004⟧",
        "⟦2223003122003222⟧",
        "⟦378282246310005⟧", "⟦3782 822463 10005⟧", "⟦30569309025904⟧", "⟦3056 930902 5904⟧", "⟦3530111333300000⟧",
        "⟦6011111111111117⟧", "⟦180000826105910⟧", "⟦213164126086955⟧", "⟦4735615260219382870⟧",
        "⟦6205500000000000004⟧",
        "⟦4111\u00a01111\u00a01111\u00a01111⟧", "⟦4111111111111111⟧ ⟦5500000000000004⟧",
        "⟦4111 1111 1111 1111⟧ ⟦5500 0000 0000 0004⟧",
        "2024 ⟦4111 1111 1111 1111⟧", "card ⟦4111111111111111⟧, exp ⟦12/26⟧", "card=⟦4111111111111111⟧",
        "Visa:⟦4222222222222⟧",
        "card number ⟦630427373398⟧ is lost", "credit card ⟦587428561654⟧", "credit card ⟦060426070011⟧",
        "Card ⟦1234-5678-9012-3456⟧", "⟦1234-5678-9012-3456⟧", "⟦1234 5678 9012 3456⟧", "⟦4111 1111 1111 1112⟧",
        "⟦0000-0000-0000-0000⟧", "⟦1234\u20115678\u20119012\u20113456⟧", "card ⟦4111111111111112⟧",
        '"card_number": "⟦1234567890123456⟧"', "Card #⟦1234-5678-9012-3456⟧", "card no. ⟦1234.5678.9012.3456⟧",
        "Visa ⟦0000 0000 0000 0000⟧", "Amex ⟦378282246310006⟧",
        "4111111111111112", "0000 0000 0000 0000", "4444444444444444444", "1234567812345678",
        "0101 1100 0011 1010", "2019 2020 2021 2022", "2019-2020-2021-2022", "1234 5678 9012 3456 7890",
        "7 1234 5678 9012 3456", "ABCD-1234-5678-9012-3456", "1234-5678-9012-3456-A1B2", "1234-5678-9012-3456-7890",
        "12ab-34cd-56ef-7890", "1234.5678.9012.3456", "x_1234-5678-9012-3456", "2345-6789 9876-5432",
        "00000000-1234-1234-1234-123456789012", "card created 1714557045123457", "card 123456789012",
        "gift card order 1234567890123456",
        "630427373398", "4222222222222", "1714557045123456",
        "9780306406157",
        "0.4111111111111111", "4111111111111111.5", "-4111111111111111", "41111111111111111111", "x4111111111111111",
        "4111 1111 1111", "card ending in 1111", "411111111111111", "490154203237518", "4111111111111111e5",
    ],
)  # fmt: skip
def test_credit_card(text: str) -> None:
    check("credit_card", text)


@pytest.mark.parametrize(
    "text",
    [
        "⟦GB82WEST12345698765432⟧", "⟦GB82 WEST 1234 5698 7654 32⟧", "⟦GB82-WEST-1234-5698-7654-32⟧",
        "⟦gb82west12345698765432⟧",
        "⟦DE89 3704 0044 0532 0130 00⟧ AND MORE", "⟦DE89370400440532013000⟧.", "⟦NO93 8601 1117 947⟧",
        "⟦NL91ABNA0417164300⟧",
        "⟦FR1420041010050500013M02606⟧", "IBAN:⟦CH9300762011623852957⟧,",
        "GB82WEST12345698765433", "GB82WEST1234569876543", "GB82 WEST 1234 5698 7654 33", "XX82WEST12345698765432",
        "GB82", "DE12 3456", "AGB82WEST12345698765432", "GB82WEST12345698765432X", "SE35 5000 0000 0549 1000 0004",
    ],
)  # fmt: skip
def test_iban(text: str) -> None:
    check("iban", text)


@pytest.mark.parametrize(
    "text",
    [
        "⟦165.165.185.178⟧", "from ⟦10.0.0.12⟧:8080", "⟦192.168.1.0⟧/24", "http://⟦93.184.216.34⟧/x", "ip=⟦8.8.8.8⟧",
        "⟦1.1.1.1⟧.",
        "server ⟦4.3.2.1⟧ is down", "⟦6e40:4041:c617:e898:c11:40d2:c669:2eb4⟧", "⟦2001:db8::1⟧.",
        "⟦fe80::1ff:fe23:4567:890a⟧",
        "[⟦2001:db8::8a2e:370:7334⟧]:443", "⟦::ffff:192.0.2.128⟧", "⟦2001:db8::⟧", "addr: ⟦2001:DB8::A⟧,",
        "127.0.0.1", "0.0.0.0", "255.255.255.0", "224.0.0.1", "256.1.1.1", "1.2.3", "1.2.3.4", "1.2.3.4.5",
        "10.20.30.40.50", "EC 1.11.1.7", "3.1.3.1;1.11.1.7", "the host is ⟦1.11.1.7⟧", "ping ⟦10.0.0.1⟧ or ⟦10.0.0.2⟧",
        "version 10.20.30.40", "v10.20.30.40", "Release: 10.20.30.40", "10.20.30.40-beta", "10.20.30.400",
        "1.10.100.1000",
        "::1", "::", "12:30:45", "std::add", "a::b", "10:20", "fe80:::1", "1:2:3:4:5:6:7:8:9", "Module::Class",
        "2001:db8",
        "::face::bead",
    ],
)  # fmt: skip
def test_ip_address(text: str) -> None:
    check("ip_address", text)


@pytest.mark.parametrize(
    "text",
    [
        "⟦00:1A:2B:3C:4D:5E⟧", "⟦00-1a-2b-3c-4d-5e⟧", "⟦001a.2b3c.4d5e⟧", "mac=⟦00:1a:2b:3c:4d:5e⟧;",
        "⟦00:1a:2b:ff:fe:3c:4d:5e⟧",
        "00:1A:2B:3C:4D", "00:1A:2B:3C:4D:5E:6F", "00:1G:2B:3C:4D:5E", "01-02-03-04-05-06", "12:30:45",
        "1234.5678.9012",
        "00:00:00:00:00:00", "SHA1 " + ":".join(["a1"] * 20), "x00:1A:2B:3C:4D:5E",
    ],
)  # fmt: skip
def test_mac_address(text: str) -> None:
    check("mac_address", text)


@pytest.mark.parametrize(
    "text",
    [
        "born ⟦1990-04-05⟧", "born on ⟦5 May 1990⟧", "She was born in Paris on ⟦May 5th, 1990⟧.", "DOB: ⟦05/06/1990⟧",
        "D.O.B. ⟦31.12.1999⟧",
        '"dob": "⟦1990-04-05⟧"', '{\\"date_of_birth\\": \\"⟦1990-04-05⟧\\"}', "Date of birth: ⟦13/05/90⟧",
        "birthday is ⟦May 5, 1990⟧",
        "birth_date=⟦1990/4/5⟧", "born the ⟦5th of May 1990⟧", "DATE OF BIRTH ⟦29 FEB 2000⟧",
        "1990-04-05", "the meeting is on 5 May 1990", "born 1990-13-45", "born on 31/31/1990", "dob: 29.02.1999",
        "born in 1990",
        "dob: 1790-01-01", "stillborn ideas of 1990-04-05", "date: 1990-04-05", "born yesterday",
    ],
)  # fmt: skip
def test_date_of_birth(text: str) -> None:
    check("date_of_birth", text)


@pytest.mark.parametrize(
    ("pii_type", "text"),
    [
        ("passport", "passport number ⟦X1234567⟧"),
        ("passport", "Passport No: ⟦123456789⟧"),
        ("passport", '"passport_number": "⟦C01X00T47⟧"'),
        ("passport", "my passport is ⟦AB1234567⟧."),
        ("passport", "passport to be ready by then"),
        ("passport", "passport expires 20300101"),
        ("passport", "passport: 2030-01-01"),
        ("passport", "X1234567"),
        ("passport", "passport CONTROLS"),
        ("driver_license", "driver's license ⟦D1234567⟧"),
        ("driver_license", "Driver License Number: ⟦F255-921-50-094-0⟧"),
        ("driver_license", "driving licence no. ⟦MORGA657054SM9IJ⟧"),
        ("driver_license", '"drivers_license": "⟦S530-4201-9001⟧"'),
        ("driver_license", "driver's license is required"),
        ("driver_license", "license MIT"),
        ("driver_license", "license key: ABCD1234EFGH5678"),
        ("driver_license", "DL: ⟦D1234567⟧"),
        ("driver_license", "License: Apache-2.0"),
        ("driver_license", "driver's license expires 2030-01-01"),
        ("medical_record", "MRN: ⟦00123456⟧"),
        ("medical_record", "medical record number ⟦A-1234567⟧"),
        ("medical_record", '"patient_id": "⟦P12345678⟧"'),
        ("medical_record", "patient no. ⟦123 456 7890⟧"),
        ("medical_record", "NHS number: ⟦943 476 5919⟧"),
        ("medical_record", "the patient is 45"),
        ("medical_record", "medical records of 2024"),
        ("medical_record", "patient: 2024-05-01"),
        ("crypto_address", "⟦1BoatSLRHtKNngkdXEeobR76b53LETtpyT⟧"),
        ("crypto_address", "pay ⟦3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy⟧."),
        ("crypto_address", "⟦bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4⟧"),
        ("crypto_address", "⟦0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed⟧"),
        ("crypto_address", "wallet ⟦0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed⟧"),
        ("crypto_address", "1BoatSLRHtKNngkdXEeobR76b53LETtpyU"),
        ("crypto_address", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"),
        ("crypto_address", "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
        ("crypto_address", "sha 0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"),
        ("crypto_address", "5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"),
        ("crypto_address", "wallet 0x0000000000000000000000000000000000000000"),
        ("password", "password: ⟦Tr0ub4dor&3⟧"),
        ("password", 'password = "⟦correct horse⟧"'),
        ("password", "PASSWD=⟦s3cr3t!⟧"),
        ("password", '{"db_password": "⟦hunter⟧", "x": 1}'),
        ("password", "my password is ⟦hunter2⟧."),
        ("password", "postgres://admin:⟦s3cr3t⟧@db.example.com/x"),
        ("password", "password is incorrect"),
        ("password", "password: required"),
        ("password", "password: str"),
        ("password", 'password="********"'),
        ("password", "password=${DB_PASSWORD}"),
        ("password", "password = os.environ['X']"),
        ("password", "password=<your password>"),
        ("password", "reset your password to continue"),
        ("password", "pass: the salt"),
        ("password", "http://example.com:8080/@x"),
    ],
)
def test_values_beside_their_word(pii_type: str, text: str) -> None:
    check(pii_type, text)


HEX = "0123456789abcdef"
MIXED = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dF"


@pytest.mark.parametrize(
    "text",
    [
        "⟦AKIAIOSFODNN7EXAMPL1⟧", f"⟦AIza{MIXED}x_1⟧", f"⟦ghp_{MIXED}Ab12⟧", f"⟦github_pat_{MIXED}⟧",
        f"⟦glpat-{MIXED[:20]}⟧",
        f"⟦xoxb-123456789012-{MIXED}⟧", f"⟦https://hooks.slack.com/services/T01234567/B01234567/{MIXED[:24]}⟧",
        f"⟦sk_live_{MIXED}⟧", f"⟦sk-proj-{MIXED}⟧", f"⟦sk-ant-api03-{MIXED}⟧", f"⟦hf_{MIXED}Gh⟧", f"⟦npm_{MIXED}1a2B⟧",
        f"⟦pypi-AgEIcHlwaS5vcmc{MIXED}{MIXED}⟧", f"⟦SG.{MIXED[:22]}.{MIXED}⟧", f"⟦AC{HEX}{HEX}⟧", f"⟦dop_v1_{HEX * 4}⟧",
        f"AccountKey=⟦{(MIXED * 3)[:86]}==⟧;", f"api_key = '⟦{MIXED}⟧'", f"API-Key: ⟦{MIXED}⟧",
        f"token=⟦{HEX}{HEX[::-1]}⟧",
        f"Authorization: Bearer ⟦{MIXED}⟧", f'"client_secret": "⟦{MIXED}⟧"', f"AWS_SECRET_ACCESS_KEY=⟦{MIXED}12345678⟧",
        f'{{\\"access_token\\": \\"⟦{MIXED}⟧\\"}}',
        "AKIA", "AKIAIOSFODNN7EXAMPLES1", "ghp_short", "sk-learn-is-a-python-package-for-learning", "hf_hub_download",
        "api_key=YOUR_API_KEY_GOES_HERE_1", "token: aaaaaaaaaaaaaaaaaaaaaaaa", "token limit of 4096",
        "max_token=1000000000000000",
        "api_key: os.environ", "the token is invalid", "secret: my-favourite-recipe", "npm_config_registry",
        f"commit {HEX}{HEX}",
        "sk_live_xxxxxxxxxxxxxxxxxxxxxxxx", "token: example.com/path/to/a1",
    ],
)  # fmt: skip
def test_api_key(text: str) -> None:
    check("api_key", text)


def _jwt(header: bytes) -> str:
    return base64.urlsafe_b64encode(header).decode().rstrip("=") + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (_jwt(b'{"alg":"HS256","typ":"JWT"}') + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", True),
        (_jwt(b'{"alg":"none"}') + ".", True),
        (_jwt(b'{"alg":"HS256","typ":"JWT"'), False),
        ("eyJhbGciOi.eyJzdWIiOi", False),
        ("eyJsomething.eyJelse", False),
    ],
)
def test_jwt(text: str, found: bool) -> None:
    check("jwt", f"⟦{text}⟧" if found else text)
    check("jwt", f"Bearer ⟦{text}⟧, then" if found else f"Bearer {text}, then")


BODY = "MIIEpAIBAAKCAQEA7bq9\nZm9vYmFyYmF6cXV4MTIz"


@pytest.mark.parametrize(
    "text",
    [
        f"⟦-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----⟧\nmore",
        f"⟦-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----⟧",
        f"⟦-----BEGIN OPENSSH PRIVATE KEY-----\\n{BODY}\\n-----END OPENSSH PRIVATE KEY-----⟧",
        f"⟦-----BEGIN EC PRIVATE KEY-----\n{BODY}⟧\n\nand then prose",
        f"⟦-----BEGIN PRIVATE KEY-----\n{BODY}⟧\n⟦-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----⟧",
        f"-----BEGIN PUBLIC KEY-----\n{BODY}\n-----END PUBLIC KEY-----",
        f"-----BEGIN CERTIFICATE-----\n{BODY}\n-----END CERTIFICATE-----",
    ],
)
def test_private_key(text: str) -> None:
    check("private_key", text)


def test_rows_are_well_formed() -> None:
    rows = [row for table in (*TABLES, *TABLES_ALONE) for row in table]
    assert len({row.rule for row in rows}) == len(rows)
    assert {row.type for row in rows} == set(PII_TYPES) - {"name", "address", "account"}
    for row in rows:
        assert 0.5 <= row.confidence <= 1.0
        assert not re.search(r"\[\^|(?<!\\)\.[*+?{]|\\[DSWs]", row.pattern), (
            f"{row.rule} could match the byte between texts"
        )


def test_what_presidio_takes_for_people_is_checked():
    from agentunit.addons.names.presidio import PresidioSpan, _reads_as_type

    for text in ("createdAt", "ai.telemetry.metadata", "qui dolorem", "totalTokenCount", "Langfuse", "docker"):
        assert not _reads_as_type(text, PresidioSpan("name", 0, len(text), 0.85)), text
    for text in (
        "Mia Lindqvist",
        "john smith",
        "Kwabena Qxystrom",
        "田中太郎",
        "Sandra",
        "J.Smith",
        "Dr.Meyer",
        "mary.jones",
    ):
        assert _reads_as_type(text, PresidioSpan("name", 0, len(text), 0.85)), text
    assert not _reads_as_type("168854", PresidioSpan("phone", 0, 6, 0.4))


_KEY_ID = "AKIAQ3EGVZ2LMN5PTR7S"
_AWS_SECRET = "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"


@pytest.mark.parametrize(
    ("pii_type", "text"),
    [
        ("iban", "My IBAN: ⟦DE88 3704 0044 0532 0130 00⟧"),
        ("iban", "IBAN ⟦DE88370400440532013000⟧ please"),
        ("iban", "My IBAN for the refund is ⟦de88 3704 0044 0532 0130 00⟧ and please hurry"),
        ("iban", "IBAN: ⟦3704 0044 0532 0130 00⟧"),
        ("iban", "IBAN ⟦gb82 west 1234 5698 7654 33⟧ thanks"),
        ("iban", "The IBAN has 22 characters in DE and 27 in FR."),
        ("iban", "No label: DE88 3704 0044 0532 0130 00"),
        ("credit_card", "card ⟦4111 1111 1111 1112⟧, exp ⟦09/27⟧, CVV ⟦737⟧"),
        ("credit_card", "⟦4111111111111111⟧ expires ⟦09/2027⟧ cvc: ⟦123⟧"),
        ("credit_card", "CVV code: ⟦737⟧ or card security code is ⟦1234⟧."),
        ("credit_card", "card ending in 4242, valid thru ⟦11/2027⟧"),
        ("credit_card", "The offer expires 12/25."),
        ("credit_card", "Boeing 737, CVV policy of 2024-01"),
        ("api_key", f"Use ⟦{_KEY_ID}⟧ with ⟦{_AWS_SECRET}⟧"),
        ("api_key", f"⟦{_KEY_ID}⟧ / ⟦{_AWS_SECRET}⟧."),
        ("api_key", f"⟦{_AWS_SECRET}⟧ for ⟦{_KEY_ID}⟧"),
        ("api_key", f"My AWS secret access key is ⟦{_AWS_SECRET}⟧ ok"),
        ("api_key", f"⟦{_KEY_ID}⟧ at commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904"),
        ("api_key", "the token is expired"),
        ("credit_card", "card number: ⟦4111 1111 1111 111⟧."),
        ("credit_card", "Card no. ⟦4111-1111-1111-11⟧, credit card: ⟦3782 822463 10006⟧"),
        ("credit_card", "My card has 2 years and 4111 points"),
        ("ssn", "SSN: ⟦123-45-678⟧, my social security number is ⟦12-345-6789⟧"),
        ("ssn", "SSN: 2024-01-05"),
        ("passport", "Passport: ⟦X12345⟧"),
        ("crypto_address", "bitcoin wallet: ⟦1BoatSLRHtKNngkdXEeobR76b53LETtpyX⟧"),
    ],
)
def test_labeled_values_need_no_checksum(pii_type: str, text: str) -> None:
    check(pii_type, text)
