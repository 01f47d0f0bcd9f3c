from __future__ import annotations

import threading

from agentunit.addons.media.clip.encoder import RecentlyUsed, digest_of


def test_what_was_not_used_for_longest_leaves() -> None:
    kept: RecentlyUsed[int] = RecentlyUsed(3)
    for number in range(3):
        kept.put(number, number)
    assert kept.get(0) == 0
    kept.put(3, 3)
    assert [kept.get(each) for each in range(4)] == [0, None, 2, 3]
    assert len(kept) == 3
    kept.put(3, 30)
    assert kept.get(3) == 30
    assert len(kept) == 3


def test_threads_may_share_it() -> None:
    kept: RecentlyUsed[int] = RecentlyUsed(10)

    def use() -> None:
        for number in range(2_000):
            kept.put(number % 25, number)
            kept.get(number % 7)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(kept) == 10


def test_digests_tell_contents_apart() -> None:
    contents = [(b"",), (b"a",), (b"a", b""), (b"", b"a"), (b"ab",), (b"a", b"b")]
    assert len({digest_of(*each) for each in contents}) == len(contents)
