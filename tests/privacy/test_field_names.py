"""Fields are known by their names however these are spelled, to redaction and to the metric alike."""

from __future__ import annotations

import json

import pytest

from agentunit.core.codec import decode_record
from agentunit.privacy.detectors import PatternDetector
from agentunit.privacy.findings import PII_TYPES
from agentunit.privacy.leakage import PIILeakageMetric
from agentunit.privacy.personal_fields import field_type
from agentunit.privacy.pseudonyms import Pseudonyms
from agentunit.privacy.redaction import Redactor

FIELDS = {
    "date of birth": ("date_of_birth", "1990-04-05"),
    "phone number": ("phone", "467 3395"),
    "social security number": ("ssn", "536228741"),
    "passport number": ("passport", "X1234567"),
    "card number": ("credit_card", "4111111111111111"),
    "user password": ("password", "hunter22x"),
}
SPELLINGS = {
    "snake": lambda words: "_".join(words),
    "camel": lambda words: words[0] + "".join(word.title() for word in words[1:]),
    "title": lambda words: " ".join(word.title() for word in words),
    "kebab": lambda words: "-".join(word.title() for word in words),
    "upper": lambda words: "_".join(words).upper(),
}


def redact(data):
    given = decode_record(json.dumps({"v": 1, "case": {"id": "q1", "metadata": data}}))
    redactor = Redactor(PatternDetector(), PII_TYPES, Pseudonyms())
    (out,) = redactor.redact([given])
    assert redactor.survivors == []
    return out["case"]["metadata"]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("field", FIELDS)
def test_every_spelling_of_a_field_is_masked_and_counted(field, spelling):
    type, value = FIELDS[field]
    name = SPELLINGS[spelling](field.split())
    masked = redact({name: value, "raw": json.dumps({"deep": {name: value}})})
    assert masked[name] == f"<{type.upper()}_1>"
    assert json.loads(masked["raw"]) == {"deep": {name: f"<{type.upper()}_1>"}}
    metric = PIILeakageMetric()
    for output in ({name: value}, f'{{"{name}": "{value}"}}'):
        counts = metric.evaluate({"id": "q1"}, None, {"output": output}).detail["counts"]
        assert counts == {type: 1}, output


@pytest.mark.parametrize("name", ["user_id", "userId", "User-Id", "username"])
def test_who_a_user_is_is_masked(name):
    assert redact({name: "g.aprozeanu", "note": "by g.aprozeanu"}) == {name: "<ACCOUNT_1>", "note": "by <ACCOUNT_1>"}


def test_accounts_and_passwords_of_programs():
    data = {"customerId": "C100174", "note": "see c100174", "PGPASSWORD": "s3cr3tive", "db.password": "pa55word"}
    assert redact(data) == {
        "customerId": "<ACCOUNT_1>", "note": "see <ACCOUNT_1>", "PGPASSWORD": "<PASSWORD_1>",
        "db.password": "<PASSWORD_2>",
    }  # fmt: skip
    text = "run PGPASSWORD=s3cr3tive psql"
    assert [text[each.start : each.end] for each in PatternDetector().find([text])[0]] == ["s3cr3tive"]


@pytest.mark.parametrize(
    "name", ["className", "zip_files", "file.zip", "passport_required", "tokens", "address_book", "email_count"]
)
def test_other_fields_tell_nothing(name):
    assert field_type(name) is None


def test_a_field_that_says_nothing_is_left():
    data = {"phone": "unknown", "email": "yes", "ssn": "required", "first_name": "N/A", "password": "********"}
    assert redact(data) == data


def test_numbers_are_masked_by_their_field_or_because_a_text_told():
    told = redact({"ssn": 536228741, "zip": 28236, "n": 536228741, "count": 28236, "cost": 0.5, "note": "536-22-8741"})
    assert told == {
        "ssn": "<SSN_1>", "zip": "<ADDRESS_1>", "n": "<SSN_1>", "count": 28236, "cost": 0.5, "note": "<SSN_1>",
    }  # fmt: skip
    raw = redact({"raw": '{"ssn": 536228741, "n": 3}'})["raw"]
    assert json.loads(raw) == {"ssn": "<SSN_1>", "n": 3}


def test_a_value_that_was_streamed_in_pieces_is_masked_in_all_of_them():
    masked = redact({"chunks": ["my mail is ada@ex", "ample.org", ", thanks"], "text": "ada@example.org"})
    assert masked == {"chunks": ["my mail is <EMAIL_1>", "", ", thanks"], "text": "<EMAIL_1>"}
    deltas = [{"type": "delta", "content": part} for part in ("call 212-5", "55-01", "47 now")]
    assert [each["content"] for each in redact({"events": deltas})["events"]] == ["call <PHONE_1>", "", " now"]
    apart = {"messages": [{"role": "user", "content": "I have 5."}, {"role": "user", "content": "Give me 12."}]}
    assert redact(apart) == apart


def test_encoded_values_are_masked_even_if_they_stand_nowhere_else():
    masked = redact({"url": "https://x.example/?to=ada%40example.org&n=1", "blob": "YWRhQGV4YW1wbGUub3Jn"})
    assert masked == {"url": "https://x.example/?to=<EMAIL_1>&n=1", "blob": "<EMAIL_1>"}


def test_a_first_name_after_an_escaped_line_end_is_masked():
    raw = json.dumps({"note": "Mia Lindqvist\nMia called\nthen Lindqvist"})
    assert redact({"raw": raw}) == {"raw": '{"note": "<NAME_1>\\n<NAME_1> called\\nthen <NAME_1>"}'}


@pytest.mark.parametrize(
    "field",
    [
        "api_key",
        "x-api-key",
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "bearerToken",
        "private_key",
        "GITHUB_CLIENT_SECRET",
    ],
)
def test_a_key_is_masked_by_its_field_even_if_it_is_the_alphabet(field: str) -> None:
    key = "abcdefghijklmnopqrstuvwxyz"
    record = {"case": {"id": "q1", "metadata": {field: key}}, "outcome": json.dumps({field: key})}
    Redactor(PatternDetector(), PII_TYPES, Pseudonyms()).redact_data([record])
    assert key not in json.dumps(record)


SECRETS = ("abcdefghijklmnop", "qWmZrTlKpXvBnHsD", "sekretlymadeup", "qwrtplkj", "Bearer qWmZrTlKpXvBnHsD")


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "field", ["token", "auth token", "github token", "authorization", "api key", "client secret", "secret", "password"]
)
def test_secrets_of_letters_alone_are_masked_by_their_field(field, spelling):
    name = SPELLINGS[spelling](field.split())
    for value in SECRETS:
        masked = redact({name: value, "raw": json.dumps({"deep": {name: value}}), "note": f"sent with {value}."})
        assert value.split()[-1] not in json.dumps(masked), value


def test_tokens_that_are_pieces_of_a_text_or_places_in_a_list_stay():
    kept = {
        "chunks": [{"token": " information", "logprob": -0.1}, {"token": "Kubernetes", "logprob": -0.2}],
        "deltas": [{"token": "Hello"}, {"token": " international"}],
        "next_page_token": "CAoQAA", "max_token": "none", "token": "required", "authorization": "approved",
        "tokens": {"token": 50256},
    }  # fmt: skip
    assert redact(kept) == kept


@pytest.mark.parametrize("text", ["Authorization: Bearer qWmZrTlKpXvBnHsDfGcJ", "API_KEY=qWmZrTlKpXvBnHsDfGcJ"])
def test_letters_that_make_no_words_are_a_key_in_text(text):
    (found,) = PatternDetector().find([text])[0]
    assert (found.type, text[found.start : found.end]) == ("api_key", "qWmZrTlKpXvBnHsDfGcJ")


@pytest.mark.parametrize("text", ["token: AccessTokenResponseFactory", "secret = SomeConfigurationProvider"])
def test_names_in_code_are_no_keys(text):
    assert PatternDetector().find([text])[0] == []
