"""What was tried, how often, and what was lost."""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory


class Lost(Exception):
    """Something was lost, changed, left running or crashed: the message says what."""


class Skipped(Exception):
    """Something that is needed is not here: the message names it."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    part: str
    tried: str
    times: int
    lost: tuple[str, ...] = ()
    skipped: str | None = None

    @property
    def result(self) -> str:
        if self.skipped is not None:
            return f"skipped: {self.skipped}"
        if not self.lost:
            return "nothing"
        return self.lost[0] if len(self.lost) == 1 else f"{self.lost[0]} (and {len(self.lost) - 1} more)"


@dataclass
class Counts:
    """How often each part does its harm."""

    kills: int
    signals: int
    inputs: int
    repeats: int

    @classmethod
    def of(cls, *, full: bool) -> Counts:
        return cls(kills=220, signals=60, inputs=2_000_000, repeats=4) if full else cls(60, 24, 300_000, 1)


@dataclass
class Ledger:
    """The rows so far, and what parts need to make them."""

    seed: int
    counts: Counts
    only: tuple[str, ...] = ()
    say: Callable[[str], None] = print
    rows: list[Row] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def wants(self, part: str, tried: str | None = None) -> bool:
        """Whether a part, or one row of it, was asked for."""
        if not self.only:
            return True
        for each in self.only:
            wanted, _, row = each.partition(":")
            if wanted == part and (tried is None or not row or row in tried):
                return True
        return False

    def chance(self, part: str, tried: str) -> random.Random:
        """Random numbers of one row: the same whichever other rows are tried."""
        return random.Random(f"{self.seed}/{part}/{tried}")

    @contextmanager
    def trying(self, part: str, tried: str) -> Iterator[Trial | None]:
        """One row: what is raised in it is its result. None where nobody asked for it."""
        if not self.wants(part, tried):
            yield None
            return
        began = time.monotonic()
        with TemporaryDirectory(prefix="agentunit-torture-", ignore_cleanup_errors=True) as folder:
            trial = Trial(Path(folder), self.chance(part, tried))
            skipped = None
            try:
                yield trial
            except Lost as loss:
                trial.lose(str(loss))
            except Skipped as reason:
                skipped = str(reason)
            except Exception as error:  # noqa: BLE001 - a fault of the torture itself must not look like a pass
                trial.lose(f"{type(error).__name__}: {error}")
                if trial.times == 0:
                    trial.times = 1
        if trial.times == 0 and not trial.lost and skipped is None:
            trial.lose("nothing was tried")
        row = Row(part, tried, trial.times, tuple(trial.lost), skipped)
        self.rows.append(row)
        self.say(f"{part:<12} {tried:<58} {row.times:>9,}  {row.result}  ({time.monotonic() - began:.0f} s)")
        for loss in row.lost:
            self.say(f"  LOST: {loss}")
        if row.lost:
            self.say(f"  again: {self.again(part, tried)}")

    def arrange(self, part: str, order: Sequence[str]) -> None:
        """Put the rows of a part that were tried at the same time into their order."""
        rows = iter(sorted((row for row in self.rows if row.part == part), key=lambda row: order.index(row.tried)))
        self.rows = [next(rows) if row.part == part else row for row in self.rows]

    def again(self, part: str, tried: str) -> str:
        """The command that tries a row again in the same way."""
        return f"python -m benchmarks.torture --seed {self.seed} --only {shlex.quote(f'{part}:{tried}')}"

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row.lost]

    @property
    def passed(self) -> list[Row]:
        return [row for row in self.rows if not row.lost and row.skipped is None]


@dataclass
class Trial:
    """What one row has done so far."""

    folder: Path
    chance: random.Random
    times: int = 0
    lost: list[str] = field(default_factory=list)

    def lose(self, what: str) -> None:
        """Take note of a loss and go on."""
        self.lost.append(" ".join(what.split())[:800])

    def require(self, condition: object, what: str) -> None:
        """A loss unless something is so."""
        if not condition:
            raise Lost(what)

    def place(self, name: str) -> Path:
        """A new folder."""
        folder = self.folder / name
        folder.mkdir()
        return folder
