"""An HTTP endpoint as an agent: a real server that answers, breaks off, drips, redirects and gossips."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import http.server
import json
import socket
import threading
import time
import zlib
from urllib.parse import urlsplit

import pytest

from agentunit.adapters.base import as_agent
from agentunit.adapters.http import HttpAgent
from agentunit.core.case import DatasetCase


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, dict(self.headers), body, id(self.connection)))
        path = urlsplit(self.path).path
        getattr(self, "on_" + path.strip("/").replace("/", "_").replace("-", "_"))(json.loads(body))

    do_PUT = do_POST  # noqa: N815

    def reply(self, body, content_type="application/json", status=200, **headers):
        data = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if content_type:
            self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def on_echo(self, question):
        self.reply(json.dumps({"output": question, "trace": [{"type": "step"}], "cost": 0.5, "mood": "good"}))

    def on_query(self, question):
        self.reply(json.dumps({"output": question["query"]}))

    def on_string(self, question):
        self.reply('"Paris"')

    def on_text(self, question):
        self.reply("Paris", "text/plain; charset=utf-8")

    def on_latin(self, question):
        self.reply("Zürich".encode("latin-1"), "text/plain; charset=iso-8859-1")

    def on_odd_charset(self, question):
        self.reply("Paris", "text/plain; charset=klingon")

    def on_chunked(self, question):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in (b'{"output":', b' "Paris"}', b""):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def on_html(self, question):
        self.reply("<h1>Log in</h1>", "text/html")

    def on_broken(self, question):
        self.reply("{broken")

    def on_array(self, question):
        self.reply("[1, 2]")

    def on_untyped(self, question):
        self.reply("Paris", None)

    def on_empty(self, question):
        self.reply("", status=200)

    def on_error(self, question):
        self.reply("out of\nmemory " + "x" * 5000, "text/plain", status=503)

    def on_gossip(self, question):
        self.reply(f"bad token {self.headers['Authorization']} in {self.headers['X-Stage']}", "text/plain", status=401)

    def on_gossip_answer(self, question):
        self.reply(json.dumps({"output": f"{self.headers['Authorization']} in {self.headers['X-Stage']}"}))

    def on_moved(self, question):
        self.reply("", status=307, Location="/query")

    def on_moved_for_get(self, question):
        self.reply("", status=302, Location="/query?key=topsecret")

    def on_moved_away(self, question):
        self.reply("", status=307, Location="http://127.0.0.2:9/steal?key=topsecret")

    def on_moved_in_circles(self, question):
        self.reply("", status=308, Location="/moved-in-circles")

    def on_gzip(self, question):
        self.reply(gzip.compress(b'{"output": "Paris"}'), Content_Encoding="gzip")

    def on_deflate(self, question):
        self.reply(zlib.compress(b'{"output": "Paris"}'), Content_Encoding="deflate")

    def on_raw_deflate(self, question):
        packer = zlib.compressobj(wbits=-15)
        self.reply(packer.compress(b'{"output": "Paris"}') + packer.flush(), Content_Encoding="deflate")

    def on_gzip_broken(self, question):
        self.reply(b"\x1f\x8b", Content_Encoding="gzip")

    def on_gzip_bomb(self, question):
        self.reply(gzip.compress(bytes(17 * 2**20)), Content_Encoding="gzip")

    def on_brotli(self, question):
        self.reply(b"\x0b\x02\x80Paris\x03", Content_Encoding="br")

    def on_old(self, question):
        self.wfile.write(b'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"output": "Paris"}')
        self.close_connection = True

    def on_trailers(self, question):
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.wfile.write(head + b'7\r\n"Paris"\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n')

    def on_endless_trailers(self, question):
        self.wfile.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n"Paris"\r\n0\r\n')
        self.until_cut(b"X-More: " + b"x" * 1000 + b"\r\n", 0)

    def on_long_length(self, question):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n")
        self.close_connection = True

    def on_flood(self, question):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.until_cut(b"x" * 65536, 0)

    def on_drip(self, question):
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.until_cut(b" ", 0.01)

    def on_drip_headers(self, question):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        self.until_cut(b"X-Drip: x\r\n", 0.02)

    def on_hang(self, question):
        self.server.released.wait(20)

    def on_cut_short(self, question):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"output"')
        self.close_connection = True

    def on_nothing(self, question):
        self.close_connection = True

    def on_garbage(self, question):
        self.wfile.write(b"this is not HTTP\r\n\r\n")
        self.close_connection = True

    def on_close(self, question):
        # Closes without a word about it, as servers do with connections that were idle.
        self.reply('{"output": "closing"}')
        self.close_connection = True

    def until_cut(self, data, pause_s):
        self.close_connection = True
        try:
            while not self.server.released.is_set():
                self.wfile.write(data)
                time.sleep(pause_s)
        except OSError:
            self.server.cut.set()

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = []
        self.released = threading.Event()
        self.cut = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


def test_the_question_goes_out_as_json_and_the_answer_comes_back(server, ask):
    case = DatasetCase("q1", "Größe?", "secret", [{"name": "t"}], ["c"], {"level": 1})
    result = ask(f"{server.url}/echo?a=b c", case=case, seed=7)
    assert result.failure is None
    assert result.outcome.output == {
        "id": "q1",
        "query": "Größe?",
        "context": ["c"],
        "tools": [{"name": "t"}],
        "metadata": {"level": 1},
        "seed": 7,
    }
    assert (result.outcome.cost, result.outcome.extra) == (0.5, {"mood": "good"})
    assert [event.type for event in result.trace.events] == ["step"]
    path, headers, _, _ = server.seen[0]
    assert path == "/echo?a=b%20c"
    assert headers["Content-Type"] == "application/json"
    assert headers["Host"] == urlsplit(server.url).netloc


@pytest.mark.parametrize(
    ("path", "output"),
    [
        ("string", "Paris"),
        ("text", "Paris"),
        ("latin", "Zürich"),
        ("odd-charset", "Paris"),
        ("chunked", "Paris"),
        ("trailers", "Paris"),
        ("gzip", "Paris"),
        ("deflate", "Paris"),
        ("raw-deflate", "Paris"),
        ("old", "Paris"),
        ("moved", "Capital of France?"),
    ],
)
def test_answers(server, ask, path, output):
    result = ask(f"{server.url}/{path}", timeout_s=20)
    assert (result.failure, result.outcome.output) == (None, output)


@pytest.mark.parametrize(
    ("path", "failure", "said"),
    [
        ("html", "wrong_type", "the answer is not valid JSON"),
        ("broken", "wrong_type", "the answer is not valid JSON"),
        ("untyped", "wrong_type", "the answer is not valid JSON"),
        ("array", "wrong_type", "the answer is JSON, but an array"),
        ("empty", "wrong_type", "the answer is not valid JSON"),
        ("error", "raised", "HTTP 503 Service Unavailable: out of memory xxx"),
        ("gzip-broken", "raised", "the compressed response does not end where its body does"),
        ("gzip-bomb", "raised", "the response is longer than 16 MiB"),
        ("brotli", "raised", "the response is encoded as 'br', which was not asked for"),
        ("endless-trailers", "raised", "the response is longer than 65536 bytes"),
        ("long-length", "raised", "the response is longer than 16 MiB"),
        ("moved-for-get", "raised", "HTTP 302: the server redirects to http://127.0.0.1:"),
        ("moved-away", "raised", "HTTP 307: the server redirects to another host, http://127.0.0.2:9/steal; not"),
        ("moved-in-circles", "raised", "the server redirects more than 5 times"),
        ("cut-short", "raised", "the connection broke: the response ended in the middle"),
        ("nothing", "raised", "the server closed the connection without a response"),
        ("garbage", "raised", "what came back is not HTTP"),
    ],
)
def test_failures(server, ask, path, failure, said):
    result = ask(f"{server.url}/{path}?key=topsecret", timeout_s=20)
    assert result.failure == result.trace.metadata["failure"] == failure
    assert result.outcome.error.startswith(said)
    assert result.outcome.error.endswith(f"({server.url}/{path})")
    assert "topsecret" not in result.outcome.error
    assert len(result.outcome.error) < 500


def test_nobody_there(ask):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        result = ask(f"http://127.0.0.1:{taken.getsockname()[1]}/ask")
    assert result.failure == "raised"
    assert result.outcome.error.startswith("cannot connect: connection refused")


def test_tls_is_checked(server, ask):
    result = ask(server.url.replace("http:", "https:"), timeout_s=20)
    assert result.failure == "raised"
    assert result.outcome.error.startswith("cannot connect: TLS failed (")


@pytest.mark.parametrize("path", ["hang", "drip", "drip-headers"])
def test_a_server_that_does_not_finish_is_cut_off(server, ask, path):
    result = ask(f"{server.url}/{path}", timeout_s=0.3)
    assert result.failure == "timeout"
    assert result.outcome.error.startswith("timeout: no answer within 0.3 s")
    if path != "hang":
        assert server.cut.wait(10)


def test_a_flood_is_bounded(server, ask, monkeypatch):
    monkeypatch.setattr("agentunit.adapters.http.MAX_ANSWER_BYTES", 2**20)
    result = ask(f"{server.url}/flood", timeout_s=20)
    assert result.failure == "raised"
    assert result.outcome.error.startswith("the response is longer than 1 MiB")
    assert server.cut.wait(10)


def test_a_cancelled_case_is_cut_off(server):
    async def go():
        agent = HttpAgent(f"{server.url}/drip")
        running = asyncio.ensure_future(agent.run(DatasetCase("q")))
        while not server.seen:
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await agent.close()

    asyncio.run(go())
    assert server.cut.wait(10)


def test_connections_are_kept_and_replaced_when_the_server_closed_them(server):
    async def go():
        agent = HttpAgent(f"{server.url}/query")
        for n in range(3):
            result = await agent.run(DatasetCase("q", str(n)), timeout_s=20)
            assert result.outcome.output == str(n)
        closing = HttpAgent(f"{server.url}/close")
        for _ in range(3):
            assert (await closing.run(DatasetCase("q"), timeout_s=20)).outcome.output == "closing"
            await asyncio.sleep(0.02)
        await agent.close()
        await closing.close()

    asyncio.run(go())
    assert len({connection for *_, connection in server.seen[:3]}) == 1


def test_eight_at_once(server):
    async def go():
        agent = HttpAgent(f"{server.url}/query")
        results = await asyncio.gather(*[agent.run(DatasetCase(str(n), f"case {n}"), timeout_s=20) for n in range(8)])
        await agent.close()
        return results

    assert [result.outcome.output for result in asyncio.run(go())] == [f"case {n}" for n in range(8)]


# Secrets


@pytest.mark.parametrize("path", ["gossip", "gossip-answer"])
@pytest.mark.parametrize("how", ["header", "address"])
def test_secrets_do_not_come_back(server, ask, path, how):
    if how == "header":
        agent = HttpAgent(f"{server.url}/{path}", headers={"Authorization": "Bearer to/ken123", "X-Stage": "staging"})
        sent, secrets = "Bearer to/ken123", ["to/ken123", "to\\/ken123"]
    else:
        sent = "Basic " + base64.b64encode(b"me:pass/word1").decode()
        secrets = ["pass/word1", sent.split()[1]]
        address = server.url.replace("://", "://me:pass%2Fword1@")
        agent = HttpAgent(f"{address}/{path}", headers={"X-Stage": "staging"})
    result = ask(agent, timeout_s=20)
    assert server.seen[0][1]["Authorization"] == sent
    everything = repr(result) + repr(agent)
    assert not any(secret in everything for secret in secrets)
    assert "***" in everything
    if path == "gossip-answer":
        # A word of the answer that happens to be a header's value stays.
        assert result.outcome.output.endswith(" in staging")


@pytest.mark.parametrize("value", ["two\r\nlines", "smile \U0001f600 topsecret", "topsecret\x00"])
def test_a_header_that_cannot_be_sent_is_refused_without_its_value(value):
    with pytest.raises(ValueError, match="HttpAgent: headers must be printable") as raised:
        HttpAgent("http://127.0.0.1/", headers={"X-Key": value})
    assert "topsecret" not in str(raised.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: HttpAgent("ftp://example.org"), "url must be an http:// or https:// address"),
        (lambda: HttpAgent("http://"), "url must be"),
        (lambda: HttpAgent("http://example.org:port/"), "url must be"),
        (lambda: HttpAgent("http://exam\nple.org/"), "url must be"),
        (lambda: HttpAgent("http://example.org", method="GET"), "method must be POST, PUT or PATCH; received 'GET'"),
        (lambda: HttpAgent("http://example.org", headers={"Bad name": "x"}), "headers must have names"),
        (lambda: HttpAgent("http://example.org", headers={"X-Key": 3}), "headers must be text; received int"),
    ],
)
def test_an_address_that_cannot_work_is_refused_at_once(make, said):
    with pytest.raises(ValueError, match=said):
        make()


# Only the named address


def test_the_environments_proxy_is_used_only_when_asked_for(server, ask, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url.replace("://", "://proxy:proxypass@"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    # A name that cannot be resolved: asked directly it fails, and the server sees nothing.
    assert ask("http://nobody.invalid/query", timeout_s=20).failure in ("raised", "timeout")
    assert server.seen == []
    agent = HttpAgent("http://nobody.invalid/query", trust_env=True, method="PUT")
    ask(agent, timeout_s=20)
    path, headers, *_ = server.seen[0]
    assert path == "http://nobody.invalid/query"
    assert headers["Host"] == "nobody.invalid"
    assert headers["Proxy-Authorization"] == "Basic " + base64.b64encode(b"proxy:proxypass").decode()


def test_a_local_address_named_in_the_suite_needs_no_proxy(server, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    agent = as_agent(f"{server.url}/query")
    trusting = HttpAgent(f"{server.url}/query", trust_env=True)

    async def go():
        answers = [(await each.run(DatasetCase("q", "x"), timeout_s=20)).outcome.output for each in (agent, trusting)]
        await agent.close()
        await trusting.close()
        return answers

    assert asyncio.run(go()) == ["x", "x"]


def test_https_goes_through_the_environments_proxy_in_a_tunnel(ask, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        heads = []

        def serve():
            # The port may have been that of an earlier server, which somebody still tries to reach.
            while not heads:
                with proxy.accept()[0] as connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    head = connection.recv(65536).decode(errors="replace")
                    if head.startswith("CONNECT nobody.invalid"):
                        heads.append(head)
                        connection.sendall(b"HTTP/1.1 407 Log in first\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        monkeypatch.setenv("https_proxy", f"http://proxy:proxypass@127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.setenv("NO_PROXY", "")
        headers = {"Authorization": "Bearer for-the-agent-only"}
        result = ask(HttpAgent("https://nobody.invalid/query", headers=headers, trust_env=True), timeout_s=20)
        thread.join()
    assert result.outcome.error.startswith("cannot connect: the proxy refuses the tunnel: 407 log in first")
    login = base64.b64encode(b"proxy:proxypass").decode()
    assert heads[0].splitlines() == [
        "CONNECT nobody.invalid:443 HTTP/1.1",
        "Host: nobody.invalid:443",
        f"Proxy-Authorization: Basic {login}",
        "",
    ]


def test_an_agent_can_be_asked_from_one_event_loop_after_another(server):
    agent = HttpAgent(f"{server.url}/query")
    loops = [asyncio.new_event_loop() for _ in range(3)]
    for n, loop in enumerate(loops):
        result = loop.run_until_complete(agent.run(DatasetCase("q", str(n)), timeout_s=20))
        assert result.outcome.output == str(n)
    for loop in reversed(loops):
        loop.run_until_complete(agent.close())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def test_a_header_of_the_user_replaces_the_default(server, ask):
    ask(HttpAgent(f"{server.url}/query", headers={"content-type": "application/x-mine", "Content-Length": "1"}))
    _, headers, body, _ = server.seen[0]
    assert headers["content-type"] == "application/x-mine"
    assert "Content-Type" not in headers
    assert json.loads(body)["query"] == "Capital of France?"
