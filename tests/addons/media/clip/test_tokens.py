from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_media import TINY_CLIP
from tokenizers import Tokenizer

from agentunit.addons.media.clip.clip_settings import MOST_WINDOWS, TextTokens
from agentunit.backends.quality import BackendUnavailable

TOKENISER = Tokenizer.from_file(str(TINY_CLIP / "tokenizer.json"))
START, END = TOKENISER.token_to_id("<|startoftext|>"), TOKENISER.token_to_id("<|endoftext|>")
TOKENS = TextTokens(TOKENISER, 77)


@pytest.mark.parametrize(("n_words", "expected"), [(1, [1]), (75, [75]), (76, [38, 38]), (160, [54, 53, 53])])
def test_windows_are_even(n_words: int, expected: list[int]) -> None:
    (found,) = TOKENS.windows([" ".join(["red"] * n_words)])
    assert [len(each) for each in found.windows] == expected
    assert found.complete


def test_windows_are_cut_between_words() -> None:
    word = "zyxwvuts"  # unknown: several tokens
    (one,) = TOKENS.windows([word])
    (n_tokens,) = map(len, one.windows)
    assert n_tokens > 3
    (found,) = TOKENS.windows([" ".join([word] * 40)])
    assert len(found.windows) > 2
    assert all(len(each) % n_tokens == 0 for each in found.windows)


def test_a_word_longer_than_a_window_is_cut_all_the_same() -> None:
    (found,) = TOKENS.windows(["zyxw" * 100])
    assert len(found.windows) > 3
    assert max(map(len, found.windows)) <= 75


@given(st.lists(st.text(max_size=400), max_size=4))
@settings(max_examples=60, deadline=None)
def test_no_token_is_lost_or_added(texts: list[str]) -> None:
    for text, found in zip(texts, TOKENS.windows(texts), strict=True):
        clean = text.encode("utf-8", "replace").decode()
        whole = [each for each in TOKENISER.encode(clean, add_special_tokens=False).ids if each not in (START, END)]
        assert [each for window in found.windows for each in window] == whole
        assert all(0 < len(each) <= 75 for each in found.windows)


def test_marks_that_somebody_wrote_do_not_end_a_text() -> None:
    marked, plain = TOKENS.windows(["red <|endoftext|> circle <|startoftext|>", "red circle"])
    assert marked == plain


def test_a_text_without_end_is_cut_and_says_so() -> None:
    endless, long = TOKENS.windows(["red " * 1_000_000, "red " * 75 * MOST_WINDOWS])
    assert not endless.complete
    assert sum(map(len, endless.windows)) == 75 * MOST_WINDOWS
    assert long.complete


def test_half_of_a_surrogate_pair_is_no_reason_to_fail() -> None:
    (found,) = TOKENS.windows(["red \ud800 circle"])
    assert found.windows


def test_padding_stands_after_the_end() -> None:
    batch = TOKENS.padded([[5, 6, 7], [8]])
    assert batch.tolist() == [[START, 5, 6, 7, END, END, END, END], [START, 8, END, END, END, END, END, END]]
    assert TOKENS.padded([[5] * 75]).shape == (1, 77)
    assert TOKENS.padded([[5]], 77).shape == (1, 77)


def test_a_tokeniser_of_another_kind_is_refused() -> None:
    from tokenizers.models import BPE

    with pytest.raises(BackendUnavailable, match="the tokenizer must know"):
        TextTokens(Tokenizer(BPE()), 77)


def test_the_tables_of_open_clip_make_the_same_tokens() -> None:
    from agentunit.addons.media.clip.torch_runtime import _open_clip_tokenizer

    tables = json.loads((TINY_CLIP / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    names = {START: "<start_of_text>", END: "<end_of_text>"}
    simple = SimpleNamespace(
        encoder={names.get(number, token): number for token, number in TOKENISER.get_vocab().items()},
        bpe_ranks={tuple(pair): rank for rank, pair in enumerate(tables["merges"])},
        sot_token_id=START,
        eot_token_id=END,
    )
    texts = ["A photo of  a RED circle!", "it's 42 naïve cafés 東京 🙂", "red " * 200]
    assert TextTokens(_open_clip_tokenizer(simple), 77).windows(texts) == TOKENS.windows(texts)
