"""The benchmark of answer_language, on a handful of pairs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.validity.answer_language import alike, by_language, count_pairs, english_instead, main, multiq

PROMPTS = {"en": ["Where is the house?", "When is it that we go?"], "de": ["Wo ist das Haus?", "Wann ist es so weit?"]}


def test_pairs_of_a_folder_are_counted(tmp_path: Path, capsys, monkeypatch) -> None:
    rows = [f"{at},{language},{text}" for language, texts in PROMPTS.items() for at, text in enumerate(texts)]
    (tmp_path / "MultiQ.csv").write_text("\n".join(["id,language,prompt", *rows]), encoding="utf-8")
    texts = multiq(tmp_path)
    assert count_pairs(alike(texts)) == (2, 2, 0, 0)
    assert by_language(english_instead(texts)) == {"de": (2, 0, 2, 0)}
    monkeypatch.setenv("AGENTUNIT_DATA", str(tmp_path / "absent"))
    main([str(tmp_path)])
    printed = capsys.readouterr().out
    assert "skipped, AGENTUNIT_DATA" in printed
    assert "xquad: skipped" in printed
    assert "multiq: one language" in printed
