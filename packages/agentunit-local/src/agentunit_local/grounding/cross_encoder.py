"""The model that reads evidence and claim together: ours, or any exported cross-encoder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from math import exp, log
from pathlib import Path
from typing import Any

from agentunit_local.grounding.pairs import PairOfTokens, PairTokens
from agentunit_local.held_models import open_text_model
from agentunit_local.onnx_text import OnnxTextModel
from agentunit_local.text_model import Later, ModelFilesError, TextModel, Tokens

LARGEST_LOGIT = 5.0
SHIPPED = Path(str(files("agentunit_local"))) / "weights" / "groundedness"
_FEWEST_TOKENS = 64
_MODEL, _TOKENIZER, _SETTINGS = "model.onnx", "tokenizer.json", "cross_encoder.json"


@dataclass(frozen=True, slots=True)
class PairScore:
    """The model's word on a pair: the logit that the claim is supported, and the doubtful parts of the claim.

    ``worst_logit`` is that of the claim's most doubtful token being unsupported; a model without scores for tokens
    gives ``None`` and no doubtful parts.
    """

    logit: float
    worst_logit: float | None = None
    doubtful: tuple[tuple[int, int, float], ...] = ()
    n_evidence_tokens_left_out: int = 0
    n_claim_tokens_left_out: int = 0


class CrossEncoder:
    """Scores pairs one at a time, so that a pair's score never depends on what else is scored.

    With a ``device`` of torch, pairs are scored in batches there. ``supported`` is the label of a model with several
    ("entailment" of an NLI model), by its number.
    """

    def __init__(
        self, folder: Path, *, name: str, max_tokens: int = 384, supported: int = 0, device: str | None = None
    ) -> None:
        self.name = name
        self._model = _text_model(folder, max_tokens, device)
        self._pairs = PairTokens(self._model.tokenizer, max_tokens)
        self._in_batches = device is not None
        # One thread, so that pairs come to the device in the order in which they were given.
        self._beside = ThreadPoolExecutor(1)
        self._supported = supported
        outputs = self._model.output_shapes
        self._tokens = "tokens" if "tokens" in outputs else None
        self._claim = "claim" if "claim" in outputs else next(iter(outputs))
        n_labels = outputs[self._claim][-1] if len(outputs[self._claim]) > 1 else 1
        if isinstance(n_labels, int) and supported >= n_labels:
            rule = f"supported must be the number of a label, at most {n_labels - 1}"
            raise ModelFilesError(f"{folder / _SETTINGS}: {rule}; received {supported}")

    def encode(self, pairs: Sequence[tuple[str, str]]) -> list[PairOfTokens]:
        """Pairs as the model reads them."""
        if self._in_batches:
            return self._pairs.encode_all(pairs)
        return [self._pairs.encode(evidence, claim) for evidence, claim in pairs]

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """The scores of pairs of evidence and claim, in order."""
        encoded, results = self._begun(pairs)
        return [self._score(*both) for both in zip(encoded, results(), strict=True)]

    def start(self, pairs: Sequence[tuple[str, str]]) -> Callable[[], list[PairScore]]:
        """The same without waiting, neither for the tokenizer nor for the device; what is returned waits."""
        started = self._beside.submit(self._begun, pairs)

        def wait() -> list[PairScore]:
            encoded, results = started.result()
            return [self._score(*both) for both in zip(encoded, results(), strict=True)]

        return wait

    def _begun(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[PairOfTokens], Later]:
        encoded = self.encode(pairs)
        return encoded, self._model.start_tokens([Tokens(each.ids, each.types) for each in encoded])

    def _score(self, pair: PairOfTokens, outputs: dict[str, Any]) -> PairScore:
        logit = _logit_of(outputs[self._claim].ravel().tolist(), self._supported)
        if self._tokens is None:
            return PairScore(logit, None, (), pair.n_left_out, pair.n_claim_left_out)
        risks = outputs[self._tokens].ravel()[pair.first : pair.first + pair.n_claim].tolist()
        worst = max(risks, default=0.0)
        doubtful: tuple[tuple[int, int, float], ...] = ()
        if worst > 0:
            claimed = zip(risks, pair.claim_places, strict=True)
            doubtful = tuple((start, end, round(_sigmoid(risk), 3)) for risk, (_, (start, end)) in claimed if risk > 0)
        return PairScore(logit, worst, doubtful, pair.n_left_out, pair.n_claim_left_out)


def _text_model(folder: Path, max_tokens: int, device: str | None) -> TextModel:
    model, tokenizer = folder / _MODEL, folder / _TOKENIZER
    if device is None:
        return OnnxTextModel(model, tokenizer, max_tokens=max_tokens, batch_tokens=1)
    return open_text_model(model, tokenizer, device=device, max_tokens=max_tokens)


def _logit_of(values: list[float], supported: int) -> float:
    if len(values) == 1:
        return _bounded(values[0])
    top = max(values)
    others = sum(exp(value - top) for number, value in enumerate(values) if number != supported)
    return _bounded(values[supported] - top - log(max(others, 1e-12)))


def _bounded(logit: float) -> float:
    return max(-LARGEST_LOGIT, min(LARGEST_LOGIT, logit))


def _sigmoid(value: float) -> float:
    return 1 / (1 + exp(-max(-30.0, min(30.0, value))))


@lru_cache(maxsize=4)
def opened(folder: str | None = None, device: str | None = None) -> CrossEncoder:
    """The shipped model, or the one of a folder with ``model.onnx`` and ``tokenizer.json``; on a device of torch.

    The folder may hold ``cross_encoder.json``: ``name``, ``max_tokens`` (default 512), and ``supported``, the number of
    the label that means "supported" in a model with several.
    """
    if folder is None:
        return CrossEncoder(SHIPPED, name="agentunit-local", device=device)
    place = Path(folder).expanduser()
    for needed in (_MODEL, _TOKENIZER):
        if not (place / needed).is_file():
            raise ModelFilesError(f"{place}: a cross-encoder's folder must hold {needed}; there is none")
    settings = place / _SETTINGS
    try:
        given = json.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
    except ValueError as error:
        raise ModelFilesError(f"{settings}: must be JSON: {error}") from error
    if not isinstance(given, dict):
        raise ModelFilesError(f"{settings}: must be a JSON object; received {type(given).__name__}")
    unknown = sorted(set(given) - {"name", "max_tokens", "supported"})
    if unknown:
        raise ModelFilesError(f"{settings}: keys must be name, max_tokens or supported; received {unknown[0]!r}")
    return CrossEncoder(
        place,
        name=str(given.get("name", place.name)),
        max_tokens=_whole(settings, given, "max_tokens", 512, at_least=_FEWEST_TOKENS),
        supported=_whole(settings, given, "supported", 0, at_least=0),
        device=device,
    )


def _whole(settings: Path, given: dict[str, Any], key: str, default: int, *, at_least: int) -> int:
    value = given.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ModelFilesError(f"{settings}: {key} must be a whole number of at least {at_least}; received {value!r}")
    return value
