"""Work that stops where a model must be asked, so that one question is answered by itself, or many together.

Each piece of work is a generator: it yields what the model must read, and is sent what the model says of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

Asked = TypeVar("Asked")
Said = TypeVar("Said")
Made = TypeVar("Made")
Steps = Generator[list[Asked], Sequence[Said], Made]

GROUP = 128
"""How much work is brought to its next question before the model is asked: some hundreds of pairs, some batches."""


def answered(steps: Steps[Asked, Said, Made], ask: Callable[[list[Asked]], Sequence[Said]]) -> Made:
    """One piece of work by itself; the model is asked at once.

    >>> def doubled(): return sum((yield [1, 2]))
    >>> answered(doubled(), lambda numbers: [2 * each for each in numbers])
    6
    """
    try:
        asked = next(steps)
        while True:
            asked = steps.send(ask(asked))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def answered_together(
    work: Iterable[Steps[Asked, Said, Made]],
    start: Callable[[list[Asked]], Callable[[], Sequence[Said]]],
    failed: Callable[[Exception], Made],
) -> list[Made]:
    """Many pieces of work in their order. While a model reads what one group asked, the next group is brought so far.

    An exception in one of them is what ``failed`` makes of it; one in the model is raised.
    """
    return list(_Together(start, failed).made(work))


class _Together(Generic[Asked, Said, Made]):
    def __init__(
        self,
        start: Callable[[list[Asked]], Callable[[], Sequence[Said]]],
        failed: Callable[[Exception], Made],
    ) -> None:
        self._start, self._failed = start, failed
        self._made: dict[int, Made] = {}
        self._under_way: deque[tuple[list[tuple[int, Any, int]], Callable[[], Sequence[Said]]]] = deque()

    def made(self, work: Iterable[Steps[Asked, Said, Made]]) -> Iterator[Made]:
        source = enumerate(work)
        n_work = 0
        while group := list(islice(source, GROUP)):
            n_work += len(group)
            self._begin([(number, steps, None) for number, steps in group])
            if len(self._under_way) > 1:
                self._go_on()
        while self._under_way:
            self._go_on()
        return (self._made[number] for number in range(n_work))

    def _begin(self, group: Iterable[tuple[int, Any, Sequence[Said] | None]]) -> None:
        """Bring each piece of work to its next question, and put the questions of all to the model."""
        asked: list[Asked] = []
        waiting: list[tuple[int, Any, int]] = []
        for number, steps, said in group:
            try:
                more = next(steps) if said is None else steps.send(said)
            except StopIteration as end:
                self._made[number] = end.value
            except Exception as error:  # noqa: BLE001  # one odd text must not take the others along
                self._made[number] = self._failed(error)
            else:
                waiting.append((number, steps, len(more)))
                asked += more
        if waiting:
            self._under_way.append((waiting, self._start(asked)))

    def _go_on(self) -> None:
        waiting, later = self._under_way.popleft()
        said = iter(later())
        self._begin([(number, steps, list(islice(said, n_asked))) for number, steps, n_asked in waiting])
