"""The small CLIP through ONNX Runtime: real weights, real pictures, one encoding of each."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest
from made_media import COLOURS, encoded, shape
from PIL import Image

from agentunit.addons.media.clip.encoder import CachedEncoder
from agentunit.addons.media.clip.runtime import Later, OnnxRuntime, PictureBatch
from agentunit.backends.media_sources import MediaAccess, MediaLimits
from agentunit.formulas.similarity import cosine
from agentunit.multimodal.clip_metric import ClipEncoder, EncodedText, Unencodable, Vector

KINDS = [(colour, kind) for colour in COLOURS for kind in ("circle", "square")]
PICTURES = [encoded(shape(colour, kind)) for colour, kind in KINDS]
CAPTIONS = [f"a photo of a {colour} {kind}" for colour, kind in KINDS]


class Counting:
    """The real runtime, and how many pictures and texts it was given."""

    def __init__(self, runtime: OnnxRuntime) -> None:
        self._runtime = runtime
        self.n_pictures = self.n_texts = 0
        self.batches: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def encode_pictures(self, batch: PictureBatch) -> Later:
        self.n_pictures += len(batch.pixels)
        self.batches.append(len(batch.pixels))
        return self._runtime.encode_pictures(batch)

    def encode_tokens(self, tokens: Any) -> Later:
        self.n_texts += len(tokens)
        return self._runtime.encode_tokens(tokens)


@pytest.fixture
def counting(tiny_runtime: OnnxRuntime) -> Counting:
    return Counting(tiny_runtime)


def vector(answer: Vector | Unencodable) -> Vector:
    assert not isinstance(answer, Unencodable), answer.reason
    return answer


def only_window(answer: EncodedText | Unencodable) -> Vector:
    assert isinstance(answer, EncodedText), answer
    (found,) = answer.vectors
    return found


def test_it_is_an_encoder(encoder: CachedEncoder) -> None:
    assert isinstance(encoder, ClipEncoder)
    assert encoder.name == "tiny_clip"


def test_the_right_caption_is_the_nearest(encoder: CachedEncoder) -> None:
    pictures = [vector(each) for each in encoder.encode_images(PICTURES)]
    texts = [only_window(each) for each in encoder.encode_texts(CAPTIONS)]
    for at, picture in enumerate(pictures):
        similarities = [cosine(picture, text) for text in texts]
        assert similarities.index(max(similarities)) == at, KINDS[at]
    for at, text in enumerate(texts):
        similarities = [cosine(picture, text) for picture in pictures]
        assert similarities.index(max(similarities)) == at, CAPTIONS[at]


def test_vectors_have_length_one(encoder: CachedEncoder) -> None:
    for each in (*encoder.encode_images(PICTURES), *map(only_window, encoder.encode_texts(CAPTIONS))):
        assert sum(x * x for x in vector(each)) == pytest.approx(1.0, abs=1e-5)


def test_every_way_to_name_a_picture_gives_the_same_vector(encoder: CachedEncoder, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PICTURES[0])
    decoded = shape(*KINDS[0])
    found = encoder.encode_images([PICTURES[0], tmp_path / "a.png", str(tmp_path / "a.png"), decoded])
    assert found[0] == found[1] == found[2]
    assert vector(found[3]) == pytest.approx(vector(found[0]), abs=1e-6)


def test_batches_equal_one_by_one(tiny_runtime: OnnxRuntime) -> None:
    together = CachedEncoder(tiny_runtime).encode_images(PICTURES)
    for picture, expected in zip(PICTURES, together, strict=True):
        (alone,) = CachedEncoder(tiny_runtime).encode_images([picture])
        assert vector(alone) == pytest.approx(vector(expected), abs=1e-5)
    texts = [*CAPTIONS, "a", "there is a small red circle at the top left."]
    of_all = CachedEncoder(tiny_runtime).encode_texts(texts)
    for text, expected in zip(texts, of_all, strict=True):
        (alone,) = CachedEncoder(tiny_runtime).encode_texts([text])
        assert only_window(alone) == pytest.approx(only_window(expected), abs=1e-5)


def test_each_distinct_picture_and_text_is_encoded_once(counting: Counting, tmp_path: Path) -> None:
    encoder = CachedEncoder(counting)
    (tmp_path / "copy.png").write_bytes(PICTURES[0])
    encoder.encode_images([*PICTURES, *PICTURES, str(tmp_path / "copy.png")])
    assert counting.n_pictures == len(PICTURES)
    encoder.encode_images(PICTURES)
    assert counting.n_pictures == len(PICTURES)
    encoder.encode_texts([*CAPTIONS, *CAPTIONS])
    encoder.encode_texts(CAPTIONS[::-1])
    assert counting.n_texts == len(CAPTIONS)


def test_many_pictures_go_in_full_batches_and_keep_their_order(counting: Counting) -> None:
    encoder = CachedEncoder(counting)
    order = [random.Random(3).randrange(len(PICTURES)) for _ in range(200)]
    # Bytes after the end of a picture make it another content with the same pixels.
    found = encoder.encode_images([PICTURES[kind] + b"%d" % at for at, kind in enumerate(order)])
    assert counting.batches == [16] * 12 + [8]
    expected = [vector(each) for each in CachedEncoder(counting).encode_images(PICTURES)]
    for kind, each in zip(order, found, strict=True):
        assert vector(each) == pytest.approx(expected[kind], abs=1e-5)


def test_a_picture_that_was_pushed_out_meanwhile_still_has_its_vector(counting: Counting) -> None:
    pictures = [encoded(shape(side=side)) for side in range(20, 140)]
    found = CachedEncoder(counting, n_kept=2, n_threads=2).encode_images([*pictures, *pictures[:3]])
    assert found[-3:] == found[:3]
    assert counting.n_pictures == len(pictures)
    assert not [each for each in found if isinstance(each, Unencodable)]


@pytest.mark.parametrize("mode", ["RGBA", "L", "P", "LA", "CMYK", "1", "I;16", "F"])
def test_a_decoded_picture_may_have_any_mode(encoder: CachedEncoder, mode: str) -> None:
    (found,) = encoder.encode_images([Image.new(mode, (64, 64))])
    assert not isinstance(found, Unencodable)


def test_memory_is_bounded(counting: Counting) -> None:
    encoder = CachedEncoder(counting, n_kept=4)
    encoder.encode_images(PICTURES)
    encoder.encode_images(PICTURES[-4:])
    assert counting.n_pictures == len(PICTURES)
    encoder.encode_images(PICTURES[:1])
    assert counting.n_pictures == len(PICTURES) + 1
    # More than are kept at once still all have their answers.
    assert not any(isinstance(each, Unencodable) for each in encoder.encode_texts(CAPTIONS))


BROKEN: list[tuple[Any, str]] = [
    (b"no picture", "is not a picture of a known format"),
    (PICTURES[0][:120], "cannot be"),
    ("nowhere.png", "no such file"),
    ("http://127.0.0.1:9/x.png", "nothing is fetched unasked"),
    (b"", "is empty"),
]


@pytest.mark.parametrize("many", [None, 1])
def test_broken_pictures_do_not_take_others_along(counting: Counting, many: int | None) -> None:
    encoder = CachedEncoder(counting, many=many)
    sources = [each for picture, (broken, _) in zip(PICTURES, BROKEN, strict=False) for each in (picture, broken)]
    sources += PICTURES[len(BROKEN) :] * 3
    found = encoder.encode_images(sources)
    expected = CachedEncoder(counting).encode_images(PICTURES)
    for at, (_, words) in enumerate(BROKEN):
        assert vector(found[2 * at]) == pytest.approx(vector(expected[at]), abs=1e-5)
        broken = found[2 * at + 1]
        assert isinstance(broken, Unencodable)
        assert words in broken.reason
    assert not any(isinstance(each, Unencodable) for each in found[2 * len(BROKEN) :])


def test_only_broken_pictures(counting: Counting) -> None:
    found = CachedEncoder(counting).encode_images([b"one", b"other", b"one"])
    assert all(isinstance(each, Unencodable) for each in found)
    assert counting.n_pictures == 0
    assert CachedEncoder(counting).encode_images([]) == []
    assert CachedEncoder(counting).encode_texts([]) == []


def test_limits_reach_the_decoder(tiny_runtime: OnnxRuntime) -> None:
    access = MediaAccess(limits=MediaLimits(most_pixels=100))
    for many in (None, 1):
        found = CachedEncoder(tiny_runtime, many=many).encode_images(PICTURES * 3, access)
        assert {each.reason for each in found if isinstance(each, Unencodable)} == {
            "must have at most 100 pixels; it has 64 × 64"
        }
        assert len(found) == 24


def test_a_refusal_holds_for_its_limits_only(tiny_runtime: OnnxRuntime) -> None:
    encoder = CachedEncoder(tiny_runtime)
    (refused,) = encoder.encode_images(PICTURES[:1], MediaAccess(limits=MediaLimits(most_pixels=100)))
    (found,) = encoder.encode_images(PICTURES[:1])
    assert isinstance(refused, Unencodable)
    assert not isinstance(found, Unencodable)


@pytest.mark.parametrize("many", [None, 1])
def test_large_files_do_not_wait_in_memory(tiny_runtime: OnnxRuntime, tmp_path: Path, many: int | None) -> None:
    paths = []
    for at, picture in enumerate(PICTURES * 3):
        paths.append(tmp_path / f"{at}.png")
        paths[-1].write_bytes(picture + bytes(2**20) + b"%d" % at)
    found = CachedEncoder(tiny_runtime, many=many).encode_images(paths)
    expected = CachedEncoder(tiny_runtime).encode_images(PICTURES)
    for at, each in enumerate(found):
        assert vector(each) == pytest.approx(vector(expected[at % len(PICTURES)]), abs=1e-5)


def test_a_model_that_makes_nonsense_is_found_out(tiny_runtime: OnnxRuntime) -> None:
    class Nonsense(Counting):
        def encode_pictures(self, batch: PictureBatch) -> Later:
            made = super().encode_pictures(batch)()
            made[0] = float("nan")
            return lambda: made

        def encode_tokens(self, tokens: Any) -> Later:
            made = super().encode_tokens(tokens)()
            made[:] = 0.0
            return lambda: made

    encoder = CachedEncoder(Nonsense(tiny_runtime))
    first, second = encoder.encode_images(PICTURES[:2])
    assert isinstance(first, Unencodable)
    assert "no finite vector" in first.reason
    assert not isinstance(second, Unencodable)
    assert all(isinstance(each, Unencodable) for each in encoder.encode_texts(CAPTIONS))


def test_threads_may_share_an_encoder(counting: Counting) -> None:
    encoder = CachedEncoder(counting)
    expected = CachedEncoder(counting).encode_images(PICTURES)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(encoder.encode_images(PICTURES))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 4
    for answers in found:
        for one, other in zip(answers, expected, strict=True):
            assert vector(one) == pytest.approx(vector(other), abs=1e-5)


def test_long_texts_come_in_windows(encoder: CachedEncoder) -> None:
    sentence = "there is a large red circle at the top left. "
    (found,) = encoder.encode_texts([sentence * 40])
    assert isinstance(found, EncodedText)
    assert found.complete
    assert 5 <= len(found.vectors) == len(found.n_tokens) <= 8
    assert max(found.n_tokens) <= 75
    circle, other = (vector(each) for each in encoder.encode_images([PICTURES[0], PICTURES[-1]]))
    for window in found.vectors:
        assert cosine(window, circle) > cosine(window, other)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_text_without_words_has_no_vector(encoder: CachedEncoder, text: str) -> None:
    (found,) = encoder.encode_texts([text])
    assert found == Unencodable("holds no words")
