"""Fields whose value is personal whatever it looks like: no pattern knows "Mia" for a name, but ``first_name`` does."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from unicodedata import combining, normalize

from agentunit.privacy.detection.gazetteer import word_set
from agentunit.privacy.detection.secret_forms import is_secret

_FIELDS = {
    "name": """
        first_name last_name middle_name full_name firstname lastname fullname given_name family_name surname
        maiden_name customer_name passenger_name cardholder_name cardholder card_holder account_holder
        """,
    "address": """
        street street_address address1 address2 address_line1 address_line2 address_line_1 address_line_2 street1
        street2 zip zip_code zipcode postal_code postalcode postcode
        """,
    "date_of_birth": "dob date_of_birth birth_date birthdate birthday",
    "password": """
        password passwd passphrase passcode pwd user_pass db_pass passwort kennwort contrasena
        clave mot_de_passe mdp senha wachtwoord parola
        """,
    "credit_card": """
        card_number card_no credit_card_number last_four last4 last_4 card_last_four card_last4 card_last_4
        account_number_last_4 account_last_4 cvv cvc cvv2 security_code
        """,
    "account": """
        customer_id user_id username member_id account_number account_no account_id payment_method_id payment_id
        """,
    "email": "email email_address e_mail",
    "phone": """
        phone phone_number phone_no mobile mobile_number mobile_phone cell_phone cell_number telephone
        telephone_number tel fax fax_number
        """,
    "ssn": "ssn social_security_number social_security social_security_no",
    "passport": "passport passport_number passport_no passport_id",
    "driver_license": """
        driver_license driver_license_number drivers_license drivers_license_number driving_license
        driving_license_number driving_licence driving_licence_number
        """,
    "iban": "iban iban_number",
    "medical_record": "mrn medical_record_number medical_record_no patient_id nhs_number health_insurance_number",
    "national_id": """
        national_id national_id_number national_identity_number identity_number id_number id_card_number
        personal_number personal_id_number tax_id tax_number tax_id_number tin nif cpf aadhaar aadhaar_number pesel
        """,
    "ip_address": "ip ip_address ip_addr client_ip remote_addr remote_ip",
    "api_key": """
        api_key apikey secret_key secret_access_key client_secret access_token auth_token refresh_token bearer_token
        private_key secret token authorization access_key access_key_id auth_key signing_key encryption_key
        account_key service_key shared_key app_key api_secret
        """,
}
FIELD_TYPES = {field: type for type, fields in _FIELDS.items() for field in fields.split()}
"""The type of what stands in a field, by the field's name in lower case with underscores."""

_BY_SQUEEZED = {field.replace("_", ""): field for field in sorted(FIELD_TYPES, key=lambda field: field.count("_"))}
_WHOSE = word_set(
    """
    user customer client person contact patient employee member holder owner passenger guest recipient sender profile
    account my your his her their our billing shipping home work office business private personal primary secondary
    emergency main alternate mobile cell new old current previous default legal buyer seller driver student applicant
    traveler traveller tenant subscriber cardholder beneficiary payer payee us debit credit bank the
    """
)
"""Words that may stand before the name of a field and say whose it is: ``billing_zip``, ``userPhoneNumber``."""
_ANYBODYS = frozenset(
    (
        "api_key",
        "apikey",
        "secret_access_key",
        "client_secret",
        "password",
        "passwd",
        "passphrase",
        "social_security_number",
        "date_of_birth",
        "passport_number",
        "passwort",
        "kennwort",
        "secret",
        "secret_key",
        "private_key",
        "signing_key",
        "encryption_key",
        "authorization",
    )
)
"""Fields that mean the same whatever stands before them: ``db_password``, ``PGPASSWORD``."""
_COUNTED_TOKENS = word_set(
    """
    page next prev previous continuation continue sync cursor pagination max min n num total prompt completion input
    output eos bos pad unk mask sep cls special start end stop first last new image audio video per cached cache
    reasoning count cost price text top target source draft a an one single each every
    """
)
"""Words before ``token`` where it is a piece of a text, a count or a place in a list; elsewhere it is a secret."""
_OF_A_MODEL = word_set("logprob logprobs top_logprobs bytes prob token_id rank delta index text_offset")
_JUDGED = frozenset(("token", "authorization"))
_FIELD_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_FIELD = 60

_STREETS = frozenset(field for field in _FIELDS["address"].split() if field[0] in "as")
_CARDS = frozenset(field for field in _FIELDS["credit_card"].split() if field != "security_code")
_ABOUT_PEOPLE = _STREETS | frozenset(
    field for type in ("email", "phone", "date_of_birth", "ssn") for field in _FIELDS[type].split()
)
_BESIDE = {
    **dict.fromkeys(("city", "town", "locality"), (_STREETS | frozenset(("zip", "zip_code", "postal_code")), "street")),
    **dict.fromkeys(("expiration_date", "expiry_date", "expiration", "expiry", "exp_date"), (_CARDS, "card_number")),
    "name": (_ABOUT_PEOPLE, "full_name"),
    "id": (_CARDS, "payment_id"),
}
"""Fields that are personal beside one of others, in the same object, and the field that they then count as."""

_PARTS_OF_NAMES = {
    **dict.fromkeys(("first_name", "firstname", "given_name"), "first"),
    **dict.fromkeys(("last_name", "lastname", "family_name", "surname"), "last"),
}
# What a field holds of which nothing is said.
_NOTHING = re.compile(
    r"(?i)none|null|nil|n/?a|unknown|string|str|text|int(?:eger)?|number|bool(?:ean)?|true|false|yes|no|required"
    r"|optional|undefined|hidden|redacted|masked|not (?:provided|given|available|found)|[\W_]*"
)
_WITH_DIGITS = frozenset(
    ("phone", "ssn", "credit_card", "iban", "passport", "driver_license", "medical_record", "national_id",
     "ip_address", "date_of_birth")
)  # fmt: skip
# The same fields in a JSON text, as tools hand them over, and in one within another, where quotes are escaped. A brace
# may end an object, so what stands between two of them belongs together.
_QUOTED_FIELD = re.compile(
    r"""["'](?P<field>[A-Za-z][\w .-]{1,59})(?P<close>\\{0,3}["'])\s*:\s*"""
    r"""(?:(?P<open>\\{0,3}["'])(?P<value>(?:\\[^\n]|[^\\\n])*?)(?P=open)|(?P<number>[0-9]{3,19})(?![\w.]))?|(?P<brace>[{}])"""
)


class Leaf(NamedTuple):
    """A text of a record and the name of the field that it stands in."""

    field: str
    text: str


class KnownField(NamedTuple):
    """A field of ``FIELD_TYPES`` and where its value stands in a text."""

    field: str
    start: int
    end: int


@lru_cache(maxsize=16_384)
def plain_field(name: str) -> str:
    """The name of a field as the tables have it: lower case, words joined by underscores, without its owner.

    >>> [plain_field(each) for each in ("dateOfBirth", "Phone-Number", "user.socialSecurityNumber", "PGPASSWORD")]
    ['date_of_birth', 'phone_number', 'social_security_number', 'password']
    >>> plain_field("billingZipCode"), plain_field("zip_files"), plain_field("className")
    ('zip_code', 'zip_files', 'class_name')
    """
    if len(name) > _LONGEST_FIELD:
        return name.lower()
    if not name.isascii():
        name = "".join(each for each in normalize("NFKD", name) if not combining(each))
    words = [word.lower() for word in _FIELD_WORD.findall(name)]
    spelled = name.lower() if name.lower() in FIELD_TYPES else "_".join(words)
    for at in range(len(words)):
        field = _BY_SQUEEZED.get("".join(words[at:]), "")
        field = field or next((each for each in _BESIDE if each == "_".join(words[at:])), "")
        is_dotted = "." in name and len(field) > 3
        if field and (field in _ANYBODYS or is_dotted or _WHOSE.issuperset(words[:at])):
            return field
    if len(words) > 1 and words[-1] == "token" and _COUNTED_TOKENS.isdisjoint(words):
        return "token"
    if len(words) == 1:
        return next((each for each in ("password", "passwd", "passphrase") if spelled.endswith(each)), spelled)
    return spelled


def field_type(name: str) -> str | None:
    """The type of what stands in a field of this name, however it is spelled; ``None`` where its name tells nothing.

    >>> field_type("customerId"), field_type("Card Number"), field_type("color")
    ('account', 'credit_card', None)
    """
    return FIELD_TYPES.get(plain_field(name))


def says_something(field: str, value: str) -> bool:
    """Whether the value of a field can be what the field is for: "unknown" is no phone number.

    >>> says_something("phone", "unknown"), says_something("phone", "555 0100"), says_something("surname", "Li")
    (False, True, True)
    """
    if _NOTHING.fullmatch(value.strip()):
        return False
    type = FIELD_TYPES[field]
    if field in _JUDGED:
        return is_secret(value)
    if type == "email":
        return "@" in value or "%40" in value
    return type not in _WITH_DIGITS or any(letter.isdigit() for letter in value)


def counts_as(field: str, beside: Collection[str]) -> str:
    """The field that one counts as beside the others of its object, all as ``plain_field`` gives them.

    >>> counts_as("city", {"address1", "city"}), counts_as("city", {"city", "weather"}), counts_as("zip", {"zip"})
    ('street', 'city', 'zip')
    """
    if field == "token" and not _OF_A_MODEL.isdisjoint(beside):
        return "text_token"
    others, known_as = _BESIDE.get(field, (frozenset(), field))
    return known_as if not others.isdisjoint(beside) else field


def known_fields(leaf: Leaf) -> Iterator[KnownField]:
    """The fields of ``FIELD_TYPES`` that a text stands in or, being JSON, holds; with the place of the value.

    >>> list(known_fields(Leaf("surname", "Li")))
    [KnownField(field='surname', start=0, end=2)]
    >>> text = '{"n": 3, "zipCode": "28236", "city": "Ely", "userPassword": "hunter2"}'
    >>> [text[start:end] for _, start, end in known_fields(Leaf("content", text))]
    ['28236', 'Ely', 'hunter2']
    """
    field = plain_field(leaf.field)
    if field in FIELD_TYPES and says_something(field, leaf.text):
        yield KnownField(field, 0, len(leaf.text))
    held: list[KnownField] = []
    for found in _QUOTED_FIELD.finditer(leaf.text) if '"' in leaf.text or "'" in leaf.text else ():
        if found["brace"]:
            yield from _personal(held, leaf.text)
            held = []
        else:
            start, end = found.span("value" if found["value"] is not None else "number")
            held.append(KnownField(plain_field(found["field"]), start, end))
    yield from _personal(held, leaf.text)


def full_names(fields: Iterable[tuple[Leaf, Iterable[KnownField]]]) -> Iterator[str]:
    """The names of people whose first name and surname stand in fields of their own, one after the other.

    >>> leaves = [Leaf("last_name", "Li"), Leaf("n", "3"), Leaf("first_name", "Mia")]
    >>> list(full_names((leaf, known_fields(leaf)) for leaf in leaves))
    ['Mia Li']
    """
    parts: dict[str, str] = {}
    for leaf, known in fields:
        for field, start, end in known:
            part = _PARTS_OF_NAMES.get(field)
            if part is not None:
                parts[part] = leaf.text[start:end]
            if len(parts) == 2:
                yield f"{parts['first']} {parts['last']}"
                parts = {}


def _personal(held: list[KnownField], text: str) -> Iterator[KnownField]:
    """Those of an object's fields that are personal by themselves or beside the others."""
    beside = {each.field for each in held}
    for each in held:
        field = counts_as(each.field, beside)
        if field in FIELD_TYPES and 0 <= each.start < each.end and says_something(field, text[each.start : each.end]):
            yield each._replace(field=field)
