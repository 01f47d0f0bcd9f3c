"""Pictures, sound and videos that stand in a record: found, taken out of the texts, and handed out only when harmless.

Bytes are known by how they begin, never by what the record calls them. What is not one of a few kinds that browsers
only decode is refused: an SVG is a document that can act. Addresses are shown as text, and nothing is fetched.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from agentunit.backends.media_sources import MediaAccess, MediaLimits, MediaProblem, is_data_uri, is_url, read_source

MOST_BYTES = 64 * 2**20
_KINDS = ("image", "audio", "video")
_MOST_DEPTH = 40
# A base64 text in a part of a message says its type beside it, under one of these names.
_TYPE_KEYS = ("media_type", "mimeType", "mime_type", "format")
_ADDRESS_KEYS = ("image_path", "image_paths", "images", "image_url", "audio_path", "video_path", "video_paths", "url")
_BEGINNINGS: tuple[tuple[bytes, int, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF87a", 0, "image/gif"),
    (b"GIF89a", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"WAVE", 8, "audio/wav"),
    (b"ID3", 0, "audio/mpeg"),
    (b"\xff\xfb", 0, "audio/mpeg"),
    (b"\xff\xf3", 0, "audio/mpeg"),
    (b"OggS", 0, "audio/ogg"),
    (b"fLaC", 0, "audio/flac"),
    (b"ftypM4A", 4, "audio/mp4"),
    (b"ftypavif", 4, "image/avif"),
    (b"ftyp", 4, "video/mp4"),
    (b"\x1a\x45\xdf\xa3", 0, "video/webm"),
)


class Media(Struct):
    """One picture, sound or video of a record (``Media`` of types.ts); ``content`` stays here."""

    n: int
    kind: str
    type: str
    n_bytes: int
    place: str
    refused: str | None = None
    address: str | None = None
    content: bytes = b""

    def data(self) -> dict[str, Any]:
        """All but the bytes."""
        facts = ("n", "kind", "type", "n_bytes", "place", "refused", "address")
        return {name: getattr(self, name) for name in facts}


def type_of(content: bytes) -> str | None:
    """What bytes are, by how they begin; ``None`` for all that is not shown.

    >>> type_of(b"GIF89a..."), type_of(b"<svg onload=alert(1)>")
    ('image/gif', None)
    """
    for beginning, at, kind in _BEGINNINGS:
        if content.startswith(beginning, at) and (at != 8 or content.startswith(b"RIFF")):
            return kind
    return None


class MediaFinder:
    """Takes media out of plain data: each is replaced by a few words, and kept with a number from ``first`` on."""

    def __init__(self, first: int = 0, root: Path | None = None) -> None:
        self.found: list[Media] = []
        self._first = first
        self._root = root

    def replaced(self, value: Any, place: str = "", depth: int = 0) -> Any:
        """The data with words in place of media."""
        if isinstance(value, str):
            return self._text(value, place)
        if depth > _MOST_DEPTH:
            return value
        if isinstance(value, Mapping):
            stated = _stated_type(value)
            return {
                key: self._encoded(each, stated, f"{place}.{key}")
                if stated and key == "data" and isinstance(each, str)
                else self._named(each, f"{place}.{key}", depth)
                if key in _ADDRESS_KEYS
                else self.replaced(each, f"{place}.{key}" if place else str(key), depth + 1)
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [self.replaced(each, f"{place}[{at}]", depth + 1) for at, each in enumerate(value)]
        return value

    def _text(self, text: str, place: str) -> str:
        if not is_data_uri(text[:5]) or "," not in text[:200]:
            return text
        stated, _, body = text.partition(",")
        kind = stated[5:].split(";", 1)[0].lower()
        if kind.split("/", 1)[0] not in _KINDS:
            return text
        return self._kept(_decoded(body, is_base64=stated.lower().endswith(";base64")), kind, place)

    def _encoded(self, text: str, stated: str, place: str) -> str:
        return self._text(text, place) if is_data_uri(text[:5]) else self._kept(_decoded(text, True), stated, place)

    def _named(self, value: Any, place: str, depth: int) -> Any:
        """A value under a name that media have: an address elsewhere, a file of the media folder, or the medium."""
        if not isinstance(value, str) or is_data_uri(value[:5]):
            if isinstance(value, list):
                return [self._named(each, f"{place}[{at}]", depth + 1) for at, each in enumerate(value)]
            return self.replaced(value, place, depth + 1)
        kind = _kind_of_name(place, value)
        if kind is None:
            return value
        if is_url(value):
            why = "it is on another server, and nothing is fetched"
            self._add(Media(0, kind, "", 0, place, why, value))
        elif self._root is not None:
            self._from_file(value, kind, place)
        else:
            why = "it is a file beside the run (--media-root FOLDER shows those of a folder)"
            self._add(Media(0, kind, "", 0, place, why, value))
        return value

    def _from_file(self, path: str, kind: str, place: str) -> None:
        access = MediaAccess(root=self._root, limits=MediaLimits(most_bytes=MOST_BYTES))
        try:
            self._kept(read_source(path, access), kind, place)
        except MediaProblem as problem:
            self._add(Media(0, kind, "", 0, place, str(problem), path))

    def _kept(self, content: bytes | None, stated: str, place: str) -> str:
        kind = stated.split("/", 1)[0]
        kind = kind if kind in _KINDS else "audio" if "audio" in place else "image"
        found = None if content is None else type_of(content)
        if content is None:
            media = Media(0, kind, stated, 0, place, "it is not valid base64")
        elif len(content) > MOST_BYTES:
            media = Media(0, kind, stated, len(content), place, f"it has more than {MOST_BYTES:,} bytes")
        elif found is None:
            why = "an SVG can act, and is not shown" if b"<svg" in content[:1000].lower() else "its format is not known"
            media = Media(0, kind, stated, len(content), place, why)
        else:
            media = Media(0, found.split("/", 1)[0], found, len(content), place, content=content)
        self._add(media)
        return f"[{media.kind} {media.n}: {media.type or 'unknown'}, {media.n_bytes:,} bytes]"

    def _add(self, media: Media) -> None:
        media.n = self._first + len(self.found)
        self.found.append(media)


def _stated_type(value: Mapping[Any, Any]) -> str | None:
    """The type that a part of a message states for its base64 data, as of MCP, Anthropic and OpenAI."""
    for key in _TYPE_KEYS:
        stated = value.get(key)
        if isinstance(stated, str) and (stated.split("/", 1)[0] in _KINDS or (key == "format" and "data" in value)):
            return stated if "/" in stated else f"audio/{stated}"
    return None


def _kind_of_name(place: str, value: str) -> str | None:
    last = place.rsplit(".", 1)[-1]
    named = next((kind for kind in _KINDS if last.startswith(kind)), None)
    if named is not None:
        return named
    # A plain "url" is one of a picture only where it looks like that.
    return "image" if value.split("?", 1)[0].lower().endswith((".png", ".jpg", ".jpeg", ".gif", ".webp")) else None


def _decoded(body: str, is_base64: bool) -> bytes | None:
    try:
        if not is_base64:
            return unquote_to_bytes(body)
        letters = b"".join(unquote_to_bytes(body).split()).rstrip(b"=")
        return base64.b64decode(letters + b"=" * (-len(letters) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
