"""Settings: checked, from the environment or from configure_judge, and never showing a secret."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.judge.settings import (
    JudgeSettings,
    address_of,
    configure_judge,
    configured,
    configured_values,
    why_not_configured,
)

URL = "http://127.0.0.1:8000/v1"


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith("AGENTUNIT_JUDGE_"):
            monkeypatch.delenv(name)
    configure_judge()
    yield
    configure_judge()


def test_a_key_that_lies_around_is_no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-lying-around")
    monkeypatch.setenv("OPENAI_BASE_URL", URL)
    monkeypatch.setenv("AGENTUNIT_JUDGE_API_KEY", "sk-of-the-judge")
    assert configured() is None


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "set AGENTUNIT_JUDGE_URL and AGENTUNIT_JUDGE_MODEL (" in why_not_configured()
    monkeypatch.setenv("AGENTUNIT_JUDGE_URL", URL)
    assert configured() is None
    assert "set AGENTUNIT_JUDGE_MODEL (" in why_not_configured()


def test_every_setting_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: dict[str, Any] = {
        "url": URL,
        "model": "m",
        "api_key": "sk-of-the-judge",
        "concurrency": 7,
        "timeout_s": 1.5,
        "run_timeout_s": 99.0,
        "max_attempts": 2,
        "max_spend_usd": 0.5,
        "usd_per_million_input": 1.0,
        "usd_per_million_output": 2.0,
        "repeats": 3,
        "cache": "/some/where",
        "transcripts": True,
        "profile": "vllm",
        "api_key_env": "MY_KEY",
        "headers": {"X-Team": "a"},
        "organization": "org",
        "proxy": "env",
        "ca_file": "/some/where.pem",
        "max_tokens": 9,
        "reasoning_effort": "low",
        "extra_body": {"top_p": 1},
        "batch": True,
        "cache_max_mb": 7.0,
        "judges": ({"model": "m"}, {"model": "n"}),
        "quorum": 1,
        "vote": "majority",
        "logprobs": True,
    }
    assert set(wanted) == {each.name for each in fields(JudgeSettings)}
    for name, value in wanted.items():
        text = json.dumps(value) if isinstance(value, dict) else "m, n" if name == "judges" else str(value)
        monkeypatch.setenv(f"AGENTUNIT_JUDGE_{name.upper()}", text)
    assert configured() == JudgeSettings(**wanted)


def test_what_was_configured_goes_before_the_environment_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTUNIT_JUDGE_URL", URL)
    monkeypatch.setenv("AGENTUNIT_JUDGE_MODEL", "of the environment")
    monkeypatch.setenv("AGENTUNIT_JUDGE_CONCURRENCY", "3")
    monkeypatch.setenv("AGENTUNIT_JUDGE_CACHE", "/some/where")
    configure_judge(model="configured", cache=None)
    assert configured() == JudgeSettings(url=URL, model="configured", concurrency=3, cache=None)
    configure_judge(concurrency=4)
    assert configured() == JudgeSettings(url=URL, model="configured", concurrency=4, cache=None)
    configure_judge()
    assert configured() == JudgeSettings(url=URL, model="of the environment", concurrency=3, cache="/some/where")


@pytest.mark.parametrize("text", ["none", "off", "", "No", "0"])
def test_the_cache_can_be_switched_off_in_the_environment(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    configure_judge(url=URL, model="m")
    monkeypatch.setenv("AGENTUNIT_JUDGE_CACHE", text)
    settings = configured()
    assert settings is not None
    assert settings.cache is None


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": "127.0.0.1:8000"}, "url must be an http:// or https:// address"),
    ({"url": "ftp://host/v1"}, "received one with ftp scheme, a host"),
    ({"url": "http:///v1"}, "received one with http scheme, no host"),
    ({"url": "http://host:99999/v1"}, "received something that is not an address"),
    ({"url": "http://ho st/v1"}, "url must be"),
    ({"url": None}, "url must be"),
    ({"model": " "}, "model must be the name of a model; received ' '"),
    ({"concurrency": 0}, "concurrency must be a whole number of at least 1; received 0"),
    ({"concurrency": True}, "concurrency must be a whole number of at least 1; received True"),
    ({"max_attempts": 1.5}, "max_attempts must be a whole number of at least 1; received 1.5"),
    ({"repeats": -1}, "repeats must be a whole number of at least 1; received -1"),
    ({"timeout_s": 0}, "timeout_s must be a number above 0; received 0"),
    ({"timeout_s": float("nan")}, "timeout_s must be a number above 0; received nan"),
    ({"timeout_s": None}, "timeout_s must be a number above 0; received None"),
    ({"run_timeout_s": -1.0}, "run_timeout_s must be a number above 0; received -1.0"),
    ({"max_spend_usd": -0.1}, "max_spend_usd must be a number of at least 0; received -0.1"),
    ({"usd_per_million_input": 1.0}, "must be given together with usd_per_million_output"),
    ({"cache": ""}, "cache must be a folder, 'default' or None; received ''"),
    ({"transcripts": "yes"}, "transcripts must be True or False; received 'yes'"),
    ({"api_key": "two\nlines-secret"}, "api_key must be printable ASCII text without spaces around it"),
    ({"api_key": " padded-secret"}, "api_key must be printable ASCII text"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_cannot_be_right_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^JudgeSettings: ") as caught:
        JudgeSettings(**{"url": URL, "model": "m", **change})
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^JudgeSettings: "):
        configure_judge(**change)
    assert configured() is None


def test_a_setting_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="'modell' is not a setting of the judge; did you mean 'model'"):
        configure_judge(modell="m")


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("CONCURRENCY", "many", "a whole number"),
        ("TIMEOUT_S", "1 min", "a number"),
        ("TRANSCRIPTS", "maybe", "yes or no"),
    ],
)
def test_what_cannot_be_read_from_the_environment_is_named(
    name: str, text: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"AGENTUNIT_JUDGE_{name}", text)
    with pytest.raises(ValueError, match=f"AGENTUNIT_JUDGE_{name} must be {kind}; received '{text}'"):
        configured()


ADDRESSES = [
    ("http://127.0.0.1:8000/v1", "127.0.0.1", 8000, "/v1/chat/completions", "http://127.0.0.1:8000/v1"),
    ("http://127.0.0.1:8000/v1/", "127.0.0.1", 8000, "/v1/chat/completions", "http://127.0.0.1:8000/v1"),
    ("https://judge.example", "judge.example", 443, "/chat/completions", "https://judge.example"),
    ("http://[::1]:80/v1", "::1", 80, "/v1/chat/completions", "http://[::1]/v1"),
    (
        "https://x.example/v1/chat/completions?api-version=1&api-key=s3cr3t",
        "x.example",
        443,
        "/v1/chat/completions?api-version=1&api-key=s3cr3t",
        "https://x.example/v1?api-version=1&api-key=***",
    ),
    (
        "https://me:s3cr3t@x.example/a b".replace(" ", "%20"),
        "x.example",
        443,
        "/a%20b/chat/completions",
        "https://x.example/a%20b",
    ),
]


@pytest.mark.parametrize(("url", "host", "port", "target", "shown"), ADDRESSES)
def test_addresses(url: str, host: str, port: int, target: str, shown: str) -> None:
    address = address_of(url)
    assert (address.host, address.port, address.target, address.shown) == (host, port, target, shown)
    assert address.is_tls == url.startswith("https")
    assert "s3cr3t" not in repr(address)


def test_a_login_in_the_address_is_sent_as_such() -> None:
    assert address_of("http://me:pass%20word@host/v1").authorization == "Basic bWU6cGFzcyB3b3Jk"
    assert address_of("http://me:pass@host/v1", "key").authorization == "Bearer key"
    assert address_of("http://host/v1").authorization is None


_SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="%/?#[]@:&=+"), min_size=8)


@given(_SECRETS, _SECRETS, _SECRETS)
def test_no_secret_is_shown(key: str, password: str, parameter: str) -> None:
    # Marked, so that none of them is by chance a part of what is rightly shown.
    key, password, parameter = (f"<{secret}>" for secret in (key, password, parameter))
    settings = JudgeSettings(url=f"https://me:{password}@host/v1?api-key={parameter}", model="m", api_key=key)
    for shown in (repr(settings), str(settings.described()), settings.address.shown, repr(settings.address)):
        assert not any(secret in shown for secret in (key, password, parameter))
    sent_back = f"{key} {password} {parameter} {settings.address.target}".encode()
    hidden = settings.address.hidden(sent_back).decode()
    assert not any(secret in hidden for secret in (key, password, parameter))


def test_a_key_does_not_go_to_another_address() -> None:
    configure_judge(url=URL, model="m", api_key="sk-of-the-first")
    configure_judge(model="n", url=URL)
    assert configured() == JudgeSettings(URL, "n", "sk-of-the-first")
    configure_judge(url="http://127.0.0.1:9000/v1")
    assert configured() == JudgeSettings("http://127.0.0.1:9000/v1", "n")
    configure_judge(url=URL, api_key="sk-of-the-first")
    assert configured() == JudgeSettings(URL, "n", "sk-of-the-first")


def test_a_host_in_letters_of_its_own_is_looked_up_as_the_name_system_writes_it() -> None:
    assert address_of("http://bücher.example/v1").host == "xn--bcher-kva.example"
    with pytest.raises(ValueError, match="JudgeSettings: url must have a host name that can be looked up"):
        JudgeSettings(f"http://{'ü' * 300}.example/v1", "m")


@pytest.mark.parametrize("word", ["none", "None", "off", "no"])
def test_a_word_for_no_cache_names_no_folder(word):
    assert JudgeSettings(url=URL, model="m", cache=word).cache is None
    configure_judge(cache=word)
    assert configured_values()["cache"] is None
