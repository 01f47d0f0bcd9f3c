"""What every text model of this package shares: texts or pairs of texts in, the model's raw outputs out.

Batches hold texts of similar length with a bounded number of tokens, padding is masked, and the order of the input is
kept. Nothing is cut: a text that does not fit is refused, and ``windows`` parts it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

Text = str | tuple[str, str]
Outputs = dict[str, NDArray[Any]]
Later = Callable[[], list[Outputs]]

_PADDING_NAMES = ("[PAD]", "<pad>")
# For fewer, threads cost more than they save; and a process that forks should not have started them for a few.
_MANY_TEXTS = 256
_TEXTS_TOGETHER = 4_096


class ModelFilesError(ValueError):
    """Files that are no text model; the message names the file and says why."""


class Tokens(NamedTuple):
    """One text, or one pair, as the model reads it. ``segments`` is 1 where the second text of a pair stands."""

    ids: list[int]
    segments: list[int]


class TextModel(ABC):
    """A model of token ids with its tokenizer.

    ``max_tokens`` is what the model can read at once, ``batch_tokens`` the most tokens, padding included, that one call
    of the model sees.
    """

    def __init__(self, tokenizer: str | Path, *, max_tokens: int, batch_tokens: int) -> None:
        self.max_tokens = max_tokens
        self.batch_tokens = batch_tokens
        self._tokenizer = _open_tokenizer(Path(tokenizer))
        self._padding = _padding_id(self._tokenizer)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer as it was opened: without padding and truncation."""
        return self._tokenizer

    @property
    @abstractmethod
    def output_shapes(self) -> dict[str, list[Any]]:
        """The declared shape of each output; a text stands for a size that varies."""

    @abstractmethod
    def _started(self, sequences: Sequence[Tokens]) -> Later:
        """Begin with sequences that fit, at least one."""

    def tokens(self, text: Text) -> Tokens:
        """A text or a pair as tokens, however long."""
        parts = [readable(part) for part in ((text,) if isinstance(text, str) else text)]
        encoding = self._tokenizer.encode(*parts)
        return Tokens(encoding.ids, encoding.type_ids)

    def windows(self, text: str, max_tokens: int | None = None) -> list[Tokens]:
        """A text as one window, or as the fewest windows of about equal length that fit; none is dropped.

        Each window has the tokens that the model expects around a text.
        """
        return self._windows(text, self._tokenizer.encode(readable(text)), max_tokens)

    def windows_ahead(self, texts: Sequence[str], max_tokens: int | None = None) -> Iterator[list[list[Tokens]]]:
        """The windows of many texts, some thousand texts at a time; the next are cut into tokens meanwhile."""
        if len(texts) < _MANY_TEXTS:
            yield [self.windows(text, max_tokens) for text in texts]
            return
        chunks = [texts[at : at + _TEXTS_TOGETHER] for at in range(0, len(texts), _TEXTS_TOGETHER)]
        with ThreadPoolExecutor(1) as beside:
            following = beside.submit(self._encoded, chunks[0])
            for chunk, after in zip_longest(chunks, chunks[1:]):
                encodings = following.result()
                if after is not None:
                    following = beside.submit(self._encoded, after)
                yield [self._windows(*each, max_tokens) for each in zip(chunk, encodings, strict=True)]

    def _encoded(self, texts: Sequence[str]) -> list[Any]:
        encodings: list[Any] = self._tokenizer.encode_batch([readable(text) for text in texts])
        return encodings

    def _windows(self, text: str, whole: Any, max_tokens: int | None) -> list[Tokens]:
        limit = min(max_tokens or self.max_tokens, self.max_tokens)
        ids = whole.ids
        if len(ids) <= limit:
            return [Tokens(ids, whole.type_ids)]
        encoding = self._tokenizer.encode(readable(text), add_special_tokens=False)
        room = limit - (len(ids) - len(encoding.ids))
        n_windows = -(-len(encoding.ids) // room)
        encoding.truncate(-(-len(encoding.ids) // n_windows))
        pieces = [self._tokenizer.post_process(piece) for piece in (encoding, *encoding.overflowing)]
        return [Tokens(piece.ids, piece.type_ids) for piece in pieces]

    def run(self, texts: Sequence[Text]) -> list[Outputs]:
        """The model's outputs for each text or pair, in the order given."""
        return self.run_tokens([self.tokens(text) for text in texts])

    def run_tokens(self, sequences: Sequence[Tokens]) -> list[Outputs]:
        """The model's outputs by name for each sequence; outputs that have a row a token have no row for padding."""
        return self.start_tokens(sequences)()

    def start_tokens(self, sequences: Sequence[Tokens]) -> Later:
        """The same without waiting where the model runs on a device of its own; what is returned waits."""
        longest = max((len(sequence.ids) for sequence in sequences), default=0)
        if longest > self.max_tokens:
            raise ValueError(
                f"{type(self).__name__}: a text must have at most {self.max_tokens} tokens; received {longest} "
                "(windows() parts it)"
            )
        return self._started(sequences) if sequences else list

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Positions grouped for one call each, shortest first: texts of similar length waste little on padding."""
        batch: list[int] = []
        for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
            if batch and (len(batch) + 1) * lengths[place] > self.batch_tokens:
                yield batch
                batch = []
            batch.append(place)
        if batch:
            yield batch


def readable(text: str) -> str:
    """A text that the tokenizer can read: half of a surrogate pair, as broken JSON may hold, becomes U+FFFD.

    >>> readable("ok \\ud83d") == "ok \\ufffd"
    True
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _open_tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    if not path.is_file():
        raise ModelFilesError(f"{path}: no such file")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001  # the library raises plain Exception
        raise ModelFilesError(f"{path}: no tokenizer that can be read: {str(error).splitlines()[0]:.200}") from None
    # Files often say "cut at 128 tokens"; a text that is cut silently is scored wrongly.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _padding_id(tokenizer: Any) -> int:
    known = (tokenizer.token_to_id(name) for name in _PADDING_NAMES)
    return next((number for number in known if number is not None), 0)
