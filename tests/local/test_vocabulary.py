"""The pruned vocabulary: words fall apart into the pieces that are kept, and nothing becomes unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agentunit_local.sentences import WEIGHTS
from tokenizers import Tokenizer

BERT = WEIGHTS / "tokenizer.json"


@pytest.fixture
def made(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from training.groundedness import vocabulary

    whole = Tokenizer.from_file(str(BERT))
    shares = vocabulary.piece_shares(whole, iter([("own", "the museum opens at nine " * 50), ("other", "zygote")]))
    kept = vocabulary.kept_pieces(whole, shares, 4000)
    pruned = vocabulary.pruned(json.loads(BERT.read_text(encoding="utf-8")), kept)
    return whole, kept, Tokenizer.from_str(json.dumps(pruned))


def test_frequent_words_stay_whole_and_rare_ones_fall_apart(made):
    whole, kept, pruned = made
    assert pruned.get_vocab_size() == len(kept) == 4000
    assert [pruned.id_to_token(n) for n in range(4000)] == [whole.id_to_token(number) for number in kept]
    assert pruned.encode("The museum opens").tokens == ["[CLS]", "the", "museum", "opens", "[SEP]"]
    rare = pruned.encode("thermodynamic", add_special_tokens=False)
    assert len(rare.tokens) > len(whole.encode("thermodynamic", add_special_tokens=False).tokens)
    assert "".join(token.removeprefix("##") for token in rare.tokens) == "thermodynamic"


def test_nothing_that_was_known_becomes_unknown(made):
    whole, _, pruned = made
    for text in ("naïve café, 3.5 °C", "日本語 text", "Привет мир", "a_b-c/d@e.com", "שלום", "½ × €5", "xyzzy-" * 9):
        known, now = (each.encode(text) for each in (whole, pruned))
        assert now.tokens.count("[UNK]") == known.tokens.count("[UNK]")
        assert now.ids[0] == pruned.token_to_id("[CLS]")
        assert now.ids[-1] == pruned.token_to_id("[SEP]")
