"""Endpoints as profiles: what each is sent, at which address, with which key; and how a server is reached at all."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from base64 import b64encode
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from judge_asking import SCHEMA, ask_one, echo, question, settings_for
from judge_faults import failing
from judge_server import JudgeServer

from agentunit.addons.judge._chat_completion import AwsCredentials, signature, signed_headers
from agentunit.addons.judge._connection import proxy_for
from agentunit.addons.judge._profiles import recognized
from agentunit.addons.judge.client import why_not_ready
from agentunit.addons.judge.settings import JudgeSettings, address_of, configured
from agentunit.backends.http_client import basic_authorization

KEY = "key-of-the-judge-4711"
AWS = AwsCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")

ADDRESSES = {
    "https://api.openai.com/v1": ("openai", "/v1/chat/completions"),
    "https://eu.api.openai.com/v1/chat/completions": ("openai", "/v1/chat/completions"),
    "https://me.openai.azure.com": ("azure", "/openai/deployments/m%3A1/chat/completions?api-version=2024-10-21"),
    "https://me.openai.azure.com/openai": (
        "azure",
        "/openai/deployments/m%3A1/chat/completions?api-version=2024-10-21",
    ),
    "https://me.openai.azure.com/openai/deployments/d?api-version=2025-01-01": (
        "azure",
        "/openai/deployments/d/chat/completions?api-version=2025-01-01",
    ),
    "https://me.services.ai.azure.com/openai/v1/": ("azure", "/openai/v1/chat/completions"),
    "https://api.anthropic.com": ("anthropic", "/v1/messages"),
    "https://api.anthropic.com/v1": ("anthropic", "/v1/messages"),
    "https://gateway.example/anthropic/v1/messages": ("anthropic", "/anthropic/v1/messages"),
    "https://generativelanguage.googleapis.com": ("gemini", "/v1beta/models/m%3A1:generateContent"),
    "https://generativelanguage.googleapis.com/v1/models": ("gemini", "/v1/models/m%3A1:generateContent"),
    "https://generativelanguage.googleapis.com/v1beta/openai": ("compatible", "/v1beta/openai/chat/completions"),
    "https://bedrock-runtime.eu-west-1.amazonaws.com": ("bedrock", "/model/m%3A1/converse"),
    "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1": ("compatible", "/openai/v1/chat/completions"),
    "http://127.0.0.1:11434": ("ollama", "/api/chat"),
    "http://127.0.0.1:11434/api": ("ollama", "/api/chat"),
    "http://127.0.0.1:11434/v1": ("compatible", "/v1/chat/completions"),
    "https://openrouter.ai/api/v1": ("compatible", "/api/v1/chat/completions"),
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_a_profile_is_recognized_from_its_address(url: str) -> None:
    address = address_of(url, model="m:1")
    assert (recognized(urlsplit(url)), address.target) == ADDRESSES[url]
    # The base, named by itself, stands for the same place.
    assert address_of(address.shown, model="m:1", profile=address.profile).target == address.target


def sent_to(profile: str, path: str = "", **changes: Any) -> Any:
    with JudgeServer(echo) as server:
        settings = settings_for(server.url.removesuffix("/v1") + path, profile=profile, **{"api_key": KEY, **changes})
        reply = ask_one(settings, question("so?", max_tokens=77))
    assert reply.text == '{"echo": "so?"}', reply.problem
    assert (reply.prompt_tokens, reply.completion_tokens) != (None, None)
    return server.calls[-1]


def test_what_anthropic_is_sent() -> None:
    call = sent_to("anthropic", reasoning_effort="high", max_tokens=99)
    assert (call.headers["x-api-key"], call.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in call.headers
    assert call.body == {
        "model": "judge-1",
        "max_tokens": 99,
        "system": "Judge.",
        "messages": [{"role": "user", "content": "so?"}],
        "temperature": 0,
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}},
    }


def test_what_gemini_is_sent() -> None:
    call = sent_to("gemini", extra_body={"generationConfig": {"topK": 1}, "labels": {"team": "a"}})
    assert call.headers["x-goog-api-key"] == KEY
    assert KEY not in call.path
    config = {"maxOutputTokens": 77, "temperature": 0, "responseMimeType": "application/json", "topK": 1}
    assert call.body == {
        "systemInstruction": {"parts": [{"text": "Judge."}]},
        "contents": [{"role": "user", "parts": [{"text": "so?"}]}],
        "generationConfig": {**config, "responseJsonSchema": SCHEMA},
        "labels": {"team": "a"},
    }


def test_what_ollama_is_sent() -> None:
    call = sent_to("ollama", api_key=None)
    assert "authorization" not in call.headers
    assert call.body["options"] == {"num_predict": 77, "num_ctx": 8192, "temperature": 0}
    assert (call.body["stream"], call.body["format"]) == (False, SCHEMA)
    efforts = {effort: sent_to("ollama", reasoning_effort=effort).body["think"] for effort in ("low", "none")}
    assert efforts == {"low": "low", "none": False}


def test_what_openai_is_sent() -> None:
    call = sent_to("openai", "/v1", organization="org-1", headers={"X-Team": "a"}, reasoning_effort="low")
    assert (call.headers["authorization"], call.headers["openai-organization"]) == (f"Bearer {KEY}", "org-1")
    assert call.headers["x-team"] == "a"
    # One that reasons gets room for that from the start.
    assert (call.body["max_completion_tokens"], call.body["reasoning_effort"]) == (8192, "low")
    assert "max_tokens" not in call.body


def test_azure_has_a_header_of_its_own() -> None:
    call = sent_to("azure", "/openai/v1")
    assert call.headers["api-key"] == KEY
    assert "authorization" not in call.headers


def test_bedrock_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", AWS.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", AWS.secret_key)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-the-session")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    call = sent_to("bedrock", api_key=None, model="anthropic.claude:0")
    assert call.path == "/model/anthropic.claude%3A0/converse"
    assert call.headers["x-amz-security-token"] == "token-of-the-session"
    signed = call.headers["authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token," in signed
    assert call.body["inferenceConfig"] == {"maxTokens": 77, "temperature": 0}


def test_bedrock_takes_a_key_of_its_own_and_wants_one_or_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert sent_to("bedrock").headers["authorization"] == f"Bearer {KEY}"
    settings = JudgeSettings(url="https://bedrock-runtime.eu-west-1.amazonaws.com", model="m")
    assert "AWS_ACCESS_KEY_ID" in (why_not_ready(settings) or "")


# Examples that AWS has published: the plain request of its test suite, and the listing of users in its guide.
VECTORS: dict[str, tuple[dict[str, Any], str]] = {
    "get-vanilla": (
        {"host": "example.amazonaws.com", "target": "/", "headers": {}, "service": "service"},
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    ),
    "get-vanilla-query-order-key-case": (
        {
            "host": "example.amazonaws.com",
            "target": "/?Param2=value2&Param1=value1",
            "headers": {},
            "service": "service",
        },
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "list users": (
        {
            "host": "iam.amazonaws.com",
            "target": "/?Action=ListUsers&Version=2010-05-08",
            "headers": {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
            "service": "iam",
        },
        "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
    ),
}


@pytest.mark.parametrize(("asked", "signature"), VECTORS.values(), ids=VECTORS)
def test_signatures_are_those_that_aws_has_published(asked: dict[str, Any], signature: str) -> None:
    now = datetime(2015, 8, 30, 12, 36, tzinfo=timezone.utc)
    made = signed_headers(AWS, method="GET", body=b"", region="us-east-1", now=now, **asked)
    assert made["Authorization"].endswith(f"Signature={signature}")
    assert AWS.secret_key not in repr(AWS)


def test_the_region_of_a_signature_is_that_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    hosts = {
        "bedrock-runtime-fips.us-west-2.amazonaws.com": "us-west-2",
        "vpce-1-2.bedrock-runtime.eu-west-3.vpce.amazonaws.com": "eu-west-3",
        "gateway.example": "eu-north-1",
    }
    for host, region in hosts.items():
        made = signature(address_of(f"https://{host}", profile="bedrock", model="m"), b"{}", AWS)
        assert f"/{region}/bedrock/aws4_request" in made["Authorization"]


# Secrets by the names of variables


def test_secrets_are_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("MY_TOKEN", "token-of-the-gateway")
    named = {"api_key": None, "api_key_env": "MY_KEY", "headers": {"X-Gateway-Auth": "Bearer ${MY_TOKEN}"}}

    def back(request: Any) -> Any:
        told = f"{request.headers['authorization']} {request.headers['x-gateway-auth']}"
        return failing(400, f"you sent {told}")

    with JudgeServer(echo, faults=back) as server:
        settings = settings_for(server, transcripts=True, **named)
        reply = ask_one(settings)
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.calls[0].headers["x-gateway-auth"] == "Bearer token-of-the-gateway"
    for shown in (reply.problem, str(reply.transcript), repr(settings), str(settings.described())):
        assert KEY not in str(shown)
        assert "token-of-the-gateway" not in str(shown)
    monkeypatch.delenv("MY_TOKEN")
    assert "MY_TOKEN, which is not set" in (settings.why_unusable() or "")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"profile": "openia"}, "profile must be one of openai, azure, anthropic"),
    ({"headers": {"Authorization": "Bearer sk-itself-1234"}}, "must name the environment variable of a secret"),
    ({"headers": {"bad name": "x"}}, "names of letters, digits and dashes"),
    ({"headers": {"X-Team": "a\nb"}}, "must be printable ASCII text"),
    ({"proxy": "socks5://host:1"}, "proxy must be 'env' or the address of an HTTP proxy"),
    ({"proxy": "http://me:hush@host:1"}, "received the password itself"),
    ({"max_tokens": 0}, "max_tokens must be a whole number"),
    ({"extra_body": ["sk-itself-1234"]}, "extra_body must be fields of a request"),
    # The price, the cap and the record rest on these settings; a field that undoes one would make them wrong.
    ({"extra_body": {"max_tokens": 9}}, "extra_body must not hold 'max_tokens': the setting max_tokens"),
    ({"extra_body": {"model": "other"}}, "extra_body must not hold 'model'"),
    ({"extra_body": {"n": 10}}, "extra_body must not hold 'n': a question has one reply"),
    ({"extra_body": {"generationConfig": {"maxOutputTokens": 9}}}, "must not hold 'generationConfig.maxOutputTokens'"),
    ({"judges": [{"model": "a", "extra_body": {"stream": True}}]}, "extra_body must not hold 'stream'"),
    ({"cache_max_mb": 0}, "cache_max_mb must be a number above 0"),
    ({"batch": "yes"}, "batch must be True or False"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_cannot_be_right_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^JudgeSettings: ") as caught:
        JudgeSettings(**{"url": "http://127.0.0.1:8000/v1", "model": "m", **change})
    assert message in str(caught.value)
    assert "sk-itself-1234" not in str(caught.value)


def test_secrets_in_fields_of_requests_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {
        "api_key": KEY,
        "sources": [{"authentication": {"key": KEY, "type": "api_key"}}],
        "prompt_cache_key": "judge",
    }
    settings = settings_for("http://127.0.0.1:8000/v1", extra_body=extra, judges=[{"model": "a", "extra_body": extra}])
    hidden = {"api_key": "***", "sources": [{"authentication": {"key": "***", "type": "api_key"}}]}
    assert settings.described()["extra_body"] == {**hidden, "prompt_cache_key": "judge"}
    assert KEY not in repr(settings)
    monkeypatch.setenv("AGENTUNIT_JUDGE_HEADERS", f"X-Api-Key: {KEY}")
    with pytest.raises(ValueError, match="AGENTUNIT_JUDGE_HEADERS must be a JSON object") as caught:
        configured()
    assert KEY not in str(caught.value)


def test_settings_that_change_replies_have_a_place_of_their_own_in_the_cache() -> None:
    plain = JudgeSettings(url="http://127.0.0.1:8000/v1", model="m")
    assert plain.place == "http://127.0.0.1:8000/v1"
    changes = ({"reasoning_effort": "high"}, {"extra_body": {"top_p": 1}}, {"max_tokens": 9}, {"profile": "vllm"})
    places = {JudgeSettings(url=plain.url, model="m", **each).place for each in changes}
    assert len(places | {plain.place}) == 5


# Proxies and certificates


def test_a_proxy_is_used_when_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with JudgeServer(echo) as proxy:
        place = proxy.url.removesuffix("/v1")
        monkeypatch.setenv("HTTP_PROXY", place)
        for setting in ("env", place.replace("://", "://me:${PROXY_WORD}@")):
            monkeypatch.setenv("PROXY_WORD", "hush-hush")
            assert ask_one(settings_for("http://judge.invalid/v1", proxy=setting)).text is not None
    assert {call.path for call in proxy.calls} == {"http://judge.invalid/v1/chat/completions"}
    assert [call.headers.get("proxy-authorization") for call in proxy.calls] == [None, "Basic bWU6aHVzaC1odXNo"]


def test_the_password_of_a_proxy_may_hold_any_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_WORD", "a/b#c@d:e f")
    found = proxy_for("http://me:${PROXY_WORD}@proxy.example:3128", "judge.example", 443, is_tls=True)
    assert found is not None
    assert (found.hostname, found.port) == ("proxy.example", 3128)
    assert basic_authorization(found) == "Basic " + b64encode(b"me:a/b#c@d:e f").decode()


def test_a_proxy_that_is_none_is_told_without_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://me:hush-hush@proxy.example:port")
    problem = ask_one(settings_for("http://judge.invalid/v1", proxy="env", max_attempts=1)).problem or ""
    assert "the proxy of the environment must be an http:// address; received http://proxy.example:port" in problem


@pytest.mark.parametrize(
    ("no_proxy", "goes"), [("", True), ("judge.example", False), ("other.example", True), ("*", False)]
)
def test_no_proxy_is_honored(no_proxy: str, goes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    monkeypatch.setenv("no_proxy", no_proxy)
    assert (proxy_for("env", "judge.example", 443, is_tls=True) is not None) == goes
    assert proxy_for(None, "judge.example", 443, is_tls=True) is None


def test_https_goes_through_a_tunnel(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    # The TLS library reads this one itself.
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    heads: list[str] = []

    async def through(server: JudgeServer) -> str | None:
        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            port = urlsplit(server.url).port
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            try:
                await asyncio.gather(_copied(reader, far_writer), _copied(far_reader, writer))
            finally:
                # The loop may end before the other side does: what it leaves open fails whichever test comes next.
                writer.close()
                far_writer.close()

        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        place = f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:hush@{place}")
        settings = settings_for("https://localhost/v1", api_key=KEY, proxy="env", max_attempts=1)
        reply = await asyncio.to_thread(ask_one, settings)
        proxy.close()
        return reply.text

    with JudgeServer(echo, tls=context) as server:
        assert asyncio.run(through(server)) == '{"echo": "is it so?"}'
    assert heads[0].startswith("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n")
    assert "Proxy-Authorization: Basic bWU6aHVzaA==" in heads[0]
    # The key is for the server, the login for the proxy.
    assert KEY not in heads[0]
    assert "proxy-authorization" not in server.calls[0].headers


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()


def test_a_tunnel_that_a_proxy_refuses_is_told() -> None:
    async def refused() -> str | None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            await writer.drain()
            writer.close()

        proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
        place = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        settings = settings_for("https://judge.invalid/v1", proxy=place, max_attempts=1)
        reply = await asyncio.to_thread(ask_one, settings)
        proxy.close()
        return reply.problem

    assert "the proxy refuses the tunnel: 407" in (asyncio.run(refused()) or "")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, so there is no certificate to test with")
    folder = tmp_path_factory.mktemp("certificate")
    key, file = folder / "key.pem", folder / "certificate.pem"
    wanted = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    more = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(file)]
    subprocess.run([openssl, *wanted.split(), *more], capture_output=True, check=True)
    return file, key


def test_certificates_can_be_named(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with JudgeServer(echo, tls=context) as server:
        assert ask_one(settings_for(server, ca_file=str(certificate[0]))).text is not None
        assert "not trusted" in (ask_one(settings_for(server, max_attempts=1)).problem or "")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate[0]))
        assert ask_one(settings_for(server)).text is not None
        no_pem = ask_one(settings_for(server, ca_file=__file__)).problem or ""
    assert no_pem.startswith("the judge cannot be reached with these settings: ")
    assert "is not there" in (settings_for(server, ca_file="/no/such/file").why_unusable() or "")
