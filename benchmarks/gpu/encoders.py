"""The sentence encoder and CLIP beside a bare loop over tensors that lie ready on the device."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from agentunit_local.sentences import shipped_encoder

from benchmarks.gpu import workload
from benchmarks.gpu.groundedness import device_name, rate
from benchmarks.speed.answers import Answer, Column, decimals

_LEAST_SHARE = 0.6


def sentences(device: str, n_texts: int, rounds: int) -> Answer:
    """The shipped sentence encoder, from texts, beside its own model over tokens on the device."""
    columns = (
        Column("what", "texts"),
        Column("rate", "a second", decimals(0)),
        Column("share", "of the bare loop", lambda share: f"{share:.0%}"),
        Column("note", "target"),
    )
    answer = Answer("sentences", f"{n_texts:,} sentences, all-MiniLM-L6-v2, {device_name(device)}", columns)
    known = workload.sentences()
    texts = [f"{number} {text}" for number, text in zip(range(n_texts), itertools.cycle(known), strict=False)]
    encoder = shipped_encoder(device)
    model: Any = encoder._model
    windows = [each[0] for some in model.windows_ahead(texts, encoder.max_tokens) for each in some]
    batches = []
    for places in model._batches([len(each.ids) for each in windows]):
        some = [windows[place] for place in places]
        lengths = np.array([len(each.ids) for each in some], np.int64)
        flat = np.concatenate([np.array(each.ids, np.int32) for each in some])
        sent = [torch.from_numpy(each).to(device) for each in (flat, lengths, lengths)]
        length = -(-int(lengths.max()) // 8) * 8
        batches.append((*sent, length, model._padding, bool((lengths < length).any())))

    def bare_loop() -> None:
        with torch.inference_mode():
            for batch in batches:
                model._computed.rows(*batch)
        if device.startswith("cuda"):
            torch.cuda.synchronize()

    bare = rate(bare_loop, n_texts, rounds)
    answer.add(what="bare loop, tokens on the device in our batches", rate=bare)
    ours = rate(lambda: encoder.encode(texts), n_texts, rounds)
    met = f"{'met' if ours / bare >= _LEAST_SHARE else 'MISSED'} (≥ {_LEAST_SHARE:.0%})"
    answer.add(what="encode(texts)", rate=ours, share=ours / bare, note=met)
    answer.add(what="cut into tokens only", rate=rate(lambda: list(model.windows_ahead(texts)), n_texts, rounds))
    answer.remarks.append(
        f"Medians of {rounds} runs. {np.mean([len(each.ids) for each in windows]):.0f} tokens a text."
    )
    return answer
