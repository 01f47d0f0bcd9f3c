from __future__ import annotations

import base64
import hashlib
import re

import pytest
from viewer_client import Client

from agentunit.addons.viewer._api import Api
from agentunit.addons.viewer._server import make_app
from agentunit.store.sqlite import Store

TOKEN = "a-token-of-some-length"
GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"  # as the records have it


@pytest.mark.parametrize("host", ["127.0.0.1:7575", "localhost:7575", "LOCALHOST", "[::1]:7575", "localhost."])
def test_names_of_this_machine_are_answered(client, host):
    assert client.ask("GET", "/api/index", headers={"host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7575", "evil.example:127", "", "a b", "x@y"],
)
def test_a_name_that_was_made_to_point_here_is_refused(client, host):
    for path in ("/", "/api/index", "/api/runs"):
        assert client.ask("GET", path, headers={"host": host}).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_may_not_ask(client, site):
    assert client.ask("GET", "/api/runs", headers={"sec-fetch-site": site}).status == 403
    fetched = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    assert client.ask("GET", "/", headers=fetched).status == 403
    followed = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
    assert client.ask("GET", "/", headers=followed).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"x-agentunit": None},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
    ],
    ids=str,
)
def test_a_form_of_another_site_writes_nothing(client, store_path, runs, headers):
    said = {"metric": "faithfulness", "rater": "ana", "key": "0-0", "value": 1.0}
    assert client.ask("POST", f"/api/runs/{runs[0]}/label", said, headers).status == 403
    with Store(store_path) as store:
        assert store.labels() == []


def test_nothing_is_shared_with_other_origins(client):
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    assert client.ask("OPTIONS", "/api/runs", headers=asked).status == 405
    reply = client.ask("GET", "/api/index", headers={"origin": "http://evil.example"})
    assert not [name for name in reply.headers if name.startswith("access-control")]
    for method in ("PUT", "DELETE", "PATCH"):
        assert client.ask(method, "/api/runs", headers={}).status == 405


def test_every_answer_forbids_what_it_does_not_need(client, runs):
    for path in ("/", "/api/index", f"/api/runs/{runs[0]}/cases/7-0/media/0", "/nothing"):
        headers = client.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        if path != "/":
            assert "sandbox" in headers["content-security-policy"]


def test_only_the_pages_own_script_and_style_may_act(client):
    reply = client.ask("GET", "/")
    page, policy = reply.body.decode(), reply.headers["content-security-policy"]
    for kind in ("script", "style"):
        [inside] = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
        assert f"{kind}-src 'sha256-{digest}'" in page
    outside = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=(?!.data:)", outside)


def test_beyond_this_machine_the_token_is_needed(library):
    client = Client(make_app(Api(library), token=TOKEN), host="lab.example:7575")
    assert client.ask("GET", "/api/index").status == 401
    assert client.ask("GET", "/").status == 401
    assert client.ask("GET", "/?token=wrong").status == 401
    assert client.ask("GET", f"/api/index?token={TOKEN}").status == 401
    opened = client.ask("GET", f"/?token={TOKEN}")
    assert (opened.status, opened.headers["location"]) == (303, "/")
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    known = {"cookie": cookie.partition(";")[0]}
    assert client.ask("GET", "/api/index", headers=known).status == 200
    assert client.ask("GET", "/api/index", headers={"authorization": f"Bearer {TOKEN}"}).status == 200
    name = known["cookie"].partition("=")[0]
    assert client.ask("GET", "/api/index", headers={"cookie": f"{name}=wrong"}).status == 401
    # Cookies belong to a machine, whichever port set them: another server's may be odd, and another viewer has its own.
    beside = {"cookie": f'a={{"x": 1}}; b; {known["cookie"]}; c=d'}
    assert client.ask("GET", "/api/index", headers=beside).status == 200
    other = Client(make_app(Api(library), token=TOKEN[::-1]), host="lab.example:7576")
    assert not other.ask("GET", f"/?token={TOKEN[::-1]}").headers["set-cookie"].startswith(name)


def test_a_body_that_is_too_large_is_not_read(client, runs):
    note = {"key": "0-0", "rater": "ana", "note": "x" * 100_000}
    assert client.ask("POST", f"/api/runs/{runs[0]}/note", note).status == 413


def test_media_are_of_a_known_kind_or_not_shown(client, runs):
    address = f"/api/runs/{runs[0]}/cases/7-0"
    case = client.get(address)
    by_place = {media["place"]: media for media in case["media"]}
    assert by_place["case.metadata.images[0]"]["type"] == "image/gif"  # whatever the record calls it
    assert "SVG" in by_place["case.metadata.images[1]"]["refused"]
    assert by_place["case.metadata.image_path"]["address"] == "https://x.example/a.png"
    assert "base64" not in str(case)
    shown = client.ask("GET", f"{address}/media/0")
    assert (shown.status, shown.headers["content-type"]) == (200, "image/gif")
    part = client.ask("GET", f"{address}/media/0", headers={"range": "bytes=0-5"})
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"GIF89a", "bytes 0-5/14")
    digits = "9" * 5_000
    for range_header, status, body in (
        ("bytes=99-", 416, b""),
        ("bytes=-", 416, b""),
        (f"bytes={digits}-", 416, b""),
        (f"bytes=12-{digits}", 206, b"\x00;"),
        (f"bytes=-{digits}", 206, GIF),
        (f"bytes={'0' * 5_000}12-13", 206, b"\x00;"),
        ("bytes=-2", 206, b"\x00;"),
    ):
        part = client.ask("GET", f"{address}/media/0", headers={"range": range_header})
        assert (part.status, part.body) == (status, body), range_header[:40]
    [in_event] = case["events"][0]["media"]
    assert client.ask("GET", f"{address}/media/{in_event['n']}").status == 200
