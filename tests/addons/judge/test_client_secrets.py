"""Secrets stay out of everything that is shown or kept; nothing is contacted but the address that was named."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from judge_asking import SCHEMA, ask_all, ask_one, echo, question, settings_for
from judge_faults import Fault, failing, redirected
from judge_server import JudgeServer

from agentunit.addons.judge.client import JudgeClient
from agentunit.addons.judge.settings import Address
from agentunit.backends.http_client import HttpClient

KEY = "sk-very-secret-key-of-the-user"
PASSWORD = "hush-hush-hush"
PARAMETER = "parameter-secret"


def _secret_url(server: JudgeServer) -> str:
    return server.url.replace("://", f"://me:{PASSWORD}@") + f"?api-key={PARAMETER}&api-version=1"


def _says_it_back(status: int) -> Any:
    def fault(request: Any) -> Fault:
        said = f"the key {request.headers['authorization']} and {request.path} are wrong"
        return failing(status, said)

    return fault


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_a_server_that_says_the_key_back_reveals_nothing(status: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), JudgeServer(echo, faults=_says_it_back(status)) as server:
        settings = settings_for(_secret_url(server), api_key=KEY, max_attempts=1, transcripts=True)
        client = JudgeClient(settings)
        (reply,) = ask_all(client, [question()])
        client.close()

    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert f"api-key={PARAMETER}" in server.calls[0].path
    assert reply.problem
    shown = f"{reply!r} {client!r} {client.usage!r} {settings.described()} {caplog.text}"
    for secret in (KEY, PASSWORD, PARAMETER):
        assert secret not in shown


@pytest.mark.parametrize(
    ("named", "variable"),
    [
        ({"api_key_env": "MY_KEY"}, "MY_KEY"),
        ({"headers": {"X-Auth": "Bearer ${MY_KEY}"}}, "MY_KEY"),
        ({"profile": "bedrock"}, "AWS_SESSION_TOKEN"),
    ],
)
@pytest.mark.parametrize("value", ["sk-very-secret…", "sk-very-secret\r\nX-More: 1"])
def test_a_secret_that_no_header_can_hold_is_told_and_not_sent(
    named: dict[str, Any], variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "plain-and-simple")
    monkeypatch.setenv(variable, value)
    with JudgeServer(echo) as server:
        problem = ask_one(settings_for(server, **named)).problem or ""
    assert variable in problem
    assert "one line of ASCII text" in problem
    assert "sk-very-secret" not in problem
    assert server.n_calls == 0


@pytest.mark.parametrize("setting", ["env", "http://me:${PROXY_WORD}@{place}"])
def test_a_proxy_that_says_its_login_back_reveals_nothing(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PROXY_WORD", PASSWORD)

    def fault(request: Any) -> Fault:
        return failing(407, f"not {PASSWORD}, sent as {request.headers['proxy-authorization']}")

    with JudgeServer(echo, faults=fault) as proxy:
        place = urlsplit(proxy.url).netloc
        monkeypatch.setenv("HTTP_PROXY", f"http://me:{PASSWORD}@{place}")
        settings = settings_for("http://judge.invalid/v1", proxy=setting.replace("{place}", place), max_attempts=1)
        assert ask_one(settings).problem == "HTTP 407: not ***, sent as Basic ***"


def test_a_header_of_the_user_takes_the_place_of_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    written = asyncio.StreamWriter.write
    monkeypatch.setattr(asyncio.StreamWriter, "write", lambda self, data: (sent.append(data), written(self, data))[1])
    with JudgeServer(echo) as server:
        assert ask_one(settings_for(server, headers={"user-agent": "me"})).text is not None
    (head,) = [each.partition(b"\r\n\r\n")[0].lower() for each in sent if each.startswith(b"POST")]
    assert [line for line in head.split(b"\r\n") if line.startswith(b"user-agent")] == [b"user-agent: me"]


def test_a_login_in_the_address_reaches_the_server_and_nobody_else() -> None:
    with JudgeServer(echo, faults=_says_it_back(400)) as server:
        reply = ask_one(settings_for(_secret_url(server)), question(schema=None))

    assert server.calls[0].headers["authorization"].startswith("Basic ")
    login = server.calls[0].headers["authorization"].removeprefix("Basic ")
    assert reply.problem == "HTTP 400: the key Basic *** and /v1/chat/completions?api-key=***&api-version=1 are wrong"
    assert login not in repr(reply)


def test_a_reply_that_holds_the_key_is_masked_in_text_and_cache(tmp_path: Path) -> None:
    with JudgeServer(lambda body: f"your key is {KEY}") as server:
        reply = ask_one(settings_for(server, api_key=KEY, cache=str(tmp_path)))

    assert reply.text == "your key is ***"
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_a_placeholder_for_a_key_is_no_secret() -> None:
    with JudgeServer(lambda body: "EMPTY is the answer") as server:
        assert ask_one(settings_for(server, api_key="EMPTY")).text == "EMPTY is the answer"


def test_a_transcript_tells_every_call() -> None:
    with JudgeServer(echo, faults={0: failing(500, "down")}) as server:
        client = JudgeClient(settings_for(server, transcripts=True, api_key=KEY))
        (reply,) = ask_all(client, [question("so?", max_tokens=99, sample=2)])
        client.close()

    found = reply.transcript
    assert found is not None
    assert json.loads(json.dumps(found)) == found
    assert {name: found[name] for name in ("purpose", "sample", "system", "user", "schema", "max_tokens")} == {
        "purpose": "claims",
        "sample": 2,
        "system": "Judge.",
        "user": "so?",
        "schema": SCHEMA,
        "max_tokens": 99,
    }
    assert (found["reply"], found["problem"], found["cached"]) == ('{"echo": "so?"}', None, False)
    assert (found["prompt_tokens"], found["completion_tokens"]) == (3, 4)
    assert [(each["status"], each["problem"]) for each in found["attempts"]] == [
        (500, "HTTP 500: down"),
        (200, None),
    ]


def test_no_transcript_unless_asked_for() -> None:
    with JudgeServer(echo) as server:
        assert ask_one(settings_for(server)).transcript is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    with JudgeServer(echo) as elsewhere, JudgeServer(echo) as server:
        server.faults = lambda _: redirected(f"{elsewhere.url}/chat/completions", status)
        reply = ask_one(settings_for(server, api_key=KEY))

    assert reply.problem == f"HTTP {status}: redirects are not followed; name the address itself"
    assert not elsewhere.requests


def test_proxies_of_the_environment_see_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with JudgeServer(echo) as proxy, JudgeServer(echo) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        reply = ask_one(settings_for(server))

    assert reply.text == '{"echo": "is it so?"}'
    assert not proxy.requests


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, so there is no certificate to test with")
    folder = tmp_path_factory.mktemp("certificate")
    key, file = folder / "key.pem", folder / "certificate.pem"
    wanted = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    made = subprocess.run(
        [openssl, *wanted.split(), "-keyout", str(key), "-out", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return file, key


def _tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


def test_a_trusted_certificate_is_taken(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with JudgeServer(echo, tls=_tls(certificate)) as server:
        client = JudgeClient(settings_for(server, concurrency=4))
        replies = ask_all(client, (question(f"number {number}") for number in range(40)))
        client.close()

    assert [reply.text for reply in replies] == [f'{{"echo": "number {number}"}}' for number in range(40)]
    assert server.n_connections <= 4


def test_a_tunnel_through_a_proxy_carries_tls_to_the_server_itself(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    passed: list[bytes] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            passed.append(data)
            writer.write(data)
        writer.close()

    async def proxied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", int(place.rpartition(":")[2]))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(relay(reader, far_writer), relay(far_reader, writer), return_exceptions=True)
        finally:
            writer.close()
            far_writer.close()

    async def exchanged(address: Address) -> list[int]:
        proxy = await asyncio.start_server(proxied, "127.0.0.1", 0)
        url = urlsplit(f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        headers = {"Authorization": f"Bearer {KEY}"}
        client = HttpClient(address.host, address.port, is_tls=True, headers=headers, max_bytes=1 << 20, proxy=url)
        body = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'
        found = [(await client.send(address.target, body)).status for _ in range(2)]
        client.close()
        proxy.close()
        return found

    with JudgeServer(echo, tls=_tls(certificate)) as server:
        assert asyncio.run(exchanged(settings_for(server).address)) == [200, 200]
    assert server.n_connections == 1
    assert passed
    assert KEY.encode() not in b"".join(passed)


def test_an_unknown_certificate_gets_no_request(certificate: tuple[Path, Path]) -> None:
    with JudgeServer(echo, tls=_tls(certificate)) as server:
        client = JudgeClient(settings_for(server, concurrency=4, api_key=KEY))
        replies = ask_all(client, (question(f"number {number}") for number in range(40)))
        client.close()

    assert {reply.text for reply in replies} == {None}
    assert all((reply.problem or "").startswith("cannot connect: the certificate is not trusted") for reply in replies)
    assert not server.requests
    # Found by the first calls, at once, and not again by the others: a certificate does not change.
    assert client.usage.calls <= 4


def test_a_certificate_for_another_name_gets_no_request(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with JudgeServer(echo, tls=_tls(certificate)) as server:
        reply = ask_one(settings_for(server.url.replace("localhost", "127.0.0.1"), max_attempts=1))

    assert "the certificate is not trusted" in (reply.problem or "")
    assert not server.requests


def test_a_name_that_nobody_knows() -> None:
    reply = ask_one(settings_for("http://no-such-host.invalid/v1", max_attempts=1))
    assert reply.problem == "gave up after 1 attempts; the last: cannot connect: the name is not known"


@pytest.mark.parametrize("secret", ["sk/with/slashes/in/it", 'sk-with-"quotes"-in-it', "sk-with-\\-in-it"])
@pytest.mark.parametrize("escape", [lambda text: text, lambda text: text.replace("/", "\\/")])
def test_a_key_that_json_escapes_is_masked_too(secret: str, escape: Any) -> None:
    def fault(request: Any) -> Fault:
        said = {"error": {"message": f"wrong: {request.headers['authorization']}"}}
        return Fault(status=400, body=escape(json.dumps(said)).encode())

    with JudgeServer(echo, faults=fault) as server:
        reply = ask_one(settings_for(server, api_key=secret, max_attempts=1))

    assert reply.problem == "HTTP 400: wrong: Bearer ***"


def test_a_name_without_a_password_is_a_key() -> None:
    with JudgeServer(echo) as server:
        url = server.url.replace("://", f"://{KEY}@")
        reply = ask_one(settings_for(url), question(f"is it {KEY}?"))

    assert reply.text == '{"echo": "is it ***?"}'
