"""Forms of secrets and accounts: what only a field's name calls a secret, and accounts that their place gives away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentunit.privacy.detection.gazetteer import kinds_of, word_set

_SCHEME = re.compile(
    r"(?i)(?:bearer|basic|token|digest|apikey|api-key|negotiate|key|jwt|oauth|hmac|aws4-hmac-sha256)[ :]\s*"
)
# What is in brackets holds none: a search from each of many opening ones to the end would take quadratic time.
_PLACEHOLDER = re.compile(
    r"(?i)x{4,}|[*•.]{3,}|your|example|placeholder|changeme|dummy|<[^<>]*>|\{[^{}]*\}|\[[^\[\]]*\]|\$|%\(|%s|\.\.\."
    r"|[.](?:com|org|net|py)\b"
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_INNER_CAPITAL = re.compile("[a-z][A-Z]")
_VOWEL = re.compile("[aeiouyAEIOUY]")
_SHORTEST, _SHORTEST_UNKNOWN, _SHORTEST_SURE, _SHORTEST_DIGITS = 8, 10, 16, 10
_SHORTEST_WORD = 3
_MOST_OF_IT = 0.6


def in_words(value: str) -> bool:
    """Whether letters are plain words run together, as in the name of a class or a variable.

    >>> in_words("AccessTokenResponse"), in_words("qWmZrTlKpXvBnHsD")
    (True, False)
    """
    parts = _PART.findall(value)
    known = sum(len(part) for part in parts if len(part) >= _SHORTEST_WORD and kinds_of(part))
    return known >= _MOST_OF_IT * len(value)


def is_secret(value: str) -> bool:
    """Whether the value of a field such as ``token`` or ``authorization`` is one: no word, status or piece of a text.

    >>> [is_secret(value) for value in ("Bearer abcdefgh", "qwrtplkj", "approved", " the", "sekretlymadeup", "50256")]
    [True, True, False, False, True, False]
    """
    scheme = _SCHEME.match(value)
    kept = value[scheme.end() :] if scheme else value
    if kept != kept.strip() or " " in kept or "\n" in kept or _PLACEHOLDER.search(kept):
        return False
    if scheme:
        return len(kept) >= _SHORTEST and (not kept.isalpha() or not kinds_of(kept))
    if len(kept) < _SHORTEST or not any(letter.isalnum() for letter in kept):
        return False
    letters = sum(letter.isalpha() for letter in kept)
    if not letters:
        return len(kept) >= _SHORTEST_DIGITS
    if any(letter.isdigit() for letter in kept):
        return True
    if not kept.isascii() or not kept.replace("-", "").replace("_", "").replace(".", "").isalpha():
        return len(kept) >= _SHORTEST_SURE
    if kinds_of(kept) or (in_words(kept) and len(kept) < 2 * _SHORTEST_SURE):
        return False
    if len(kept) >= _SHORTEST_SURE or _INNER_CAPITAL.search(kept):
        return True
    is_unspoken = 5 * len(_VOWEL.findall(kept)) < letters
    return is_unspoken or (len(kept) >= _SHORTEST_UNKNOWN and kept.islower())


# Accounts that their form or place gives away: ids of ways to pay, users of folders and of addresses of databases.
#
# A text may hold many words with an underscore or a slash, so each kind is looked for only where its sign stands.

_PAYMENT = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?:(?:credit|debit|gift|prepaid|virtual|bank|store)[_-]?(?:card|account|credit)|certificate"
    r"|voucher|coupon|card|paypal|venmo|klarna|wallet|cashapp|apple_?pay|google_?pay|bank_?transfer|iban|account"
    r"|payment(?:_?method)?)[_-][0-9]{5,}(?![A-Za-z0-9])"
)
_NUMBERED = re.compile(r"[A-Za-z][_-][0-9]{5}")
_PROVIDER_SIGNS = ("cus_", "pm_", "card_", "acct_", "ba_", "src_", "B-", "I-")
# Stripe's ids of customers, cards and accounts, and PayPal's agreements.
_PROVIDER = re.compile(
    r"(?<![A-Za-z0-9_])(?:(?:cus|pm|card|acct|ba|src)_|[BI]-)(?=[A-Za-z]*[0-9])[A-Za-z0-9]{12,28}(?![\w-])"
)
_FOLDER = re.compile(
    r"(?:(?<![\w.])(?:/Users|/home|/export/home|/var/home|/mnt/[a-z]/Users)/|(?i:\b[A-Z]:(?:\\{1,4}"
    r"|/)(?:Users|Documents and Settings)(?:\\{1,4}|/)))"
    r"(?P<user>[^\W_][\w.@+-]{0,39}(?: [A-Z][\w.-]{1,30}(?=[\\/]))?)(?=[\\/\"'\s:;,)\]>]|$)"
)
_DATABASE = re.compile(
    r"(?i)\b(?:postgres(?:ql)?|mysql|mariadb|mongodb|redis|rediss|amqps?|mssql|sqlserver|oracle|clickhouse|cockroachdb"
    r"|cassandra|neo4j|bolt|snowflake|redshift|ldaps?|ftps?|sftp|ssh|smb|https?)(?:\+[a-z0-9_]{1,16})?://"
    r"(?P<user>[A-Za-z][\w.%+-]{1,63})(?=[:@])(?::[^\s@/]{0,128})?@"
)
_NOBODY = word_set(
    """
    shared public default user users username admin administrator root guest app apps node ubuntu debian centos fedora
    vagrant runner runneradmin jovyan git www-data deploy deployer build builder circleci travis ec2-user azureuser
    coder vscode codespace linuxbrew sandbox agent agents me you your_user youruser yourname name foo bar test tester
    testuser dev developer docker container app-user appuser service worker postgres mysql redis mongo mongodb oracle sa
    db dbuser db_user dbadmin api apiuser bot ci jenkins gitlab github github-actions oauth2 x-access-token token key
    user1 someuser someone somebody anonymous nobody pi python ruby java go rust hadoop spark airflow kafka student
    workspace project projects data kali steam demo example www web system public-user all
    """
)


def account_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where a text holds such an account.

    >>> texts = ["Charge gift_card_3871331.", "/Users/mia.li/src", "postgres://mlindqvist:pw@db/shop", "/home/runner/x"]
    >>> [[text[start:end] for start, end in account_spans(text)] for text in texts]
    [['gift_card_3871331'], ['mia.li'], ['mlindqvist'], []]
    """
    if _NUMBERED.search(text):
        for found in _PAYMENT.finditer(text):
            yield found.span()
    if any(sign in text for sign in _PROVIDER_SIGNS):
        for found in _PROVIDER.finditer(text):
            yield found.span()
    if "/home/" in text or "sers" in text or "ocuments and" in text or "USERS" in text:
        yield from _users(_FOLDER, text)
    if "://" in text and "@" in text:
        yield from _users(_DATABASE, text)


def _users(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    for found in pattern.finditer(text):
        user = found["user"].lower().rstrip(".")
        if user not in _NOBODY and not user.startswith(("your", "$", "my-", "my_")):
            yield found.start("user"), found.start("user") + len(user)
