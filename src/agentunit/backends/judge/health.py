"""Whether it makes sense to go on asking."""

from __future__ import annotations

from agentunit.backends.judge.settings import JudgeSettings

# A server that asks for a longer wait has run out of quota; a run does not sit that out.
LONGEST_WAIT_S = 120.0
_LEAST_FAILURES = 10
_LEAST_FORBIDDEN = 3
# How long, over a whole run, a server that has answered before may be away: the time of a restart.
_LONGEST_OUTAGE_S = 60.0


class Health:
    """Remembers what makes every further call pointless, so that a run ends soon and each question gets the reason.

    Times are those of the event loop. A server that has answered nothing usable for twice the time of a call (or twice
    the pause it asked for), over ten attempts or more, is given up for as long again; then one more failure is enough.
    One that cannot be reached is given up for the run, when its share of waiting is used up (``more_waiting``).
    """

    def __init__(self, settings: JudgeSettings) -> None:
        self.n_answers = 0
        self._patience_s = 2 * settings.timeout_s
        self._place = settings.address.shown
        self._hopeless: str | None = None
        self._blocked_until = 0.0
        self._blocked_because = ""
        self._quiet_since: float | None = None
        self._failures = 0
        self._n_forbidden = 0
        self._most_probes = settings.max_attempts - 1
        self._n_probes = 0
        self._waited_s = 0.0

    def why_stop(self, now: float) -> str | None:
        """Why no call should be made now."""
        if self._hopeless is not None:
            return self._hopeless
        return self._blocked_because if now < self._blocked_until else None

    def answered(self) -> None:
        """A usable answer came."""
        self.n_answers += 1
        self._failures = 0
        self._quiet_since = None

    def failed(self, now: float, started_at: float, problem: str, last_pause_s: float) -> None:
        """An attempt came to nothing; it may be the one after which the server is given up."""
        self._failures += 1
        self._quiet_since = started_at if self._quiet_since is None else self._quiet_since
        quiet_s = now - self._quiet_since
        patience_s = max(self._patience_s, 2 * last_pause_s)
        if self._failures >= _LEAST_FAILURES and quiet_s >= patience_s:
            sentence = f"{self._place} has given no answer for {quiet_s:.0f} s; the last of {self._failures} attempts"
            self.block(now, patience_s, f"{sentence}: {problem}")

    def block(self, now: float, wait_s: float, because: str) -> None:
        """No calls for so long."""
        self._blocked_until, self._blocked_because = now + wait_s, because

    def give_up(self, because: str, *, for_good: bool) -> None:
        """No calls any more: a wrong key, no money left; or, if no call went well yet, an address that is none."""
        if for_good or self.n_answers == 0:
            self._hopeless = because

    def forbidden(self, because: str) -> None:
        """A call was forbidden: that may be about its text, unless all of them are."""
        self._n_forbidden += 1
        if self.n_answers == 0 and self._n_forbidden >= _LEAST_FORBIDDEN:
            self._hopeless = because

    def more_waiting(self, pause_s: float) -> bool:
        """Whether a server that cannot be reached is worth another look after this pause, counted over the run.

        One that never answered gets as many looks as a call has attempts, one that did may be starting again.
        """
        if self.n_answers == 0:
            self._n_probes += 1
            return self._n_probes <= self._most_probes
        self._waited_s += pause_s
        return self._waited_s <= _LONGEST_OUTAGE_S
