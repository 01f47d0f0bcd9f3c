"""A byte-pair tokeniser of CLIP's kind for the captions: any text can be written in it, known words are one token."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.normalizers import NFC, Lowercase, Replace, Sequence
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.pre_tokenizers import Sequence as PreSequence
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer

from training.tiny_clip.scenes import caption, random_scene

START, END = "<|startoftext|>", "<|endoftext|>"
_PIECES = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def train_tokeniser(seed: int) -> Tokenizer:
    """The tokeniser of the captions; its two marks have the highest numbers, as in CLIP."""
    chance = random.Random(seed)
    texts = [caption(random_scene(chance), chance) for _ in range(4000)]
    tokeniser = Tokenizer(BPE(unk_token=END, end_of_word_suffix="</w>", fuse_unk=False))
    tokeniser.normalizer = Sequence([NFC(), Replace(Regex(r"\s+"), " "), Lowercase()])
    tokeniser.pre_tokenizer = PreSequence(
        [Split(Regex(_PIECES), behavior="removed", invert=True), ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokeniser.decoder = ByteLevelDecoder()
    # Every byte must stand in the vocabulary with and without the mark of a word's end, or unknown text would be lost.
    bytes_ = sorted(ByteLevel.alphabet())
    trainer = BpeTrainer(
        vocab_size=800, initial_alphabet=bytes_, end_of_word_suffix="</w>", show_progress=False, min_frequency=2
    )
    tokeniser.train_from_iterator([*texts, *(f"{byte} {byte}" for byte in bytes_)], trainer)
    tokeniser = _with_all_endings(tokeniser, bytes_)
    tokeniser.add_special_tokens([START, END])
    marks = [(mark, tokeniser.token_to_id(mark)) for mark in (START, END)]
    tokeniser.post_processor = TemplateProcessing(single=f"{START} $A {END}", special_tokens=marks)
    return tokeniser


def save_tokeniser(tokeniser: Tokenizer, folder: Path) -> None:
    """Write it where both runtimes look for it."""
    tokeniser.save(str(folder / "tokenizer.json"))


def _with_all_endings(tokeniser: Tokenizer, bytes_: list[str]) -> Tokenizer:
    plain = json.loads(tokeniser.to_str())
    vocabulary: dict[str, int] = plain["model"]["vocab"]
    for byte in bytes_:
        for token in (byte, f"{byte}</w>"):
            vocabulary.setdefault(token, len(vocabulary))
    return Tokenizer.from_str(json.dumps(plain))
