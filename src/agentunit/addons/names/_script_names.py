"""Names of people in scripts without capital letters: Chinese, Japanese, Korean, Arabic, Hebrew, Devanagari, Thai.

Nothing about a word's form says that it is a name there. Lists of names, titles and words that announce a name do; each
script has rules and a table of its own, and the table is read when a text first has its letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentunit.privacy.findings import CATALOG_CONFIDENCE, Finding

_CONFIDENCE = CATALOG_CONFIDENCE["name"]
_HAS_SCRIPT = re.compile("[\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_KANA = re.compile("[\u3041-\u30fa]")
_HAN = re.compile("[\u3400-\u9fff]")
# Labels, titles and letters that only Japanese writes so: a form or a list need not have any kana.
_JAPANESE = re.compile(
    "氏名|宛名|宛先|担当者|契約者|予約者|株式会社|[様殿々〆ヶ沢桜広栄塩駅売読図気円変単対価渋辺浜滝竜恵徳実歩]"
)
_HANGUL = re.compile("[\uac00-\ud7af]")
_THAI = re.compile("[\u0e00-\u0e7f]")


def find_script_names(text: str) -> list[Finding]:
    """The names in these scripts, in order.

    >>> texts = ["请联系王小明先生。", "田中太郎様、こんにちは。", "저는 김민준입니다."]
    >>> [[text[f.start:f.end] for f in find_script_names(text)] for text in texts]
    [['王小明'], ['田中太郎'], ['김민준']]
    """
    if text.isascii() or not _HAS_SCRIPT.search(text):
        return []
    return [Finding("name", start, end, _CONFIDENCE, "name in script") for start, end in sorted(set(_spans(text)))]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    # Each script's rules are imported with its table, so that texts without it pay for neither.
    if _HAN.search(text):
        has_kana = _KANA.search(text)
        if has_kana or _JAPANESE.search(text):
            from agentunit.addons.names._japanese_names import find_japanese_names

            yield from find_japanese_names(text)
        if not has_kana:
            from agentunit.addons.names._chinese_names import find_chinese_names

            yield from find_chinese_names(text)
    if _HANGUL.search(text):
        from agentunit.addons.names._korean_names import find_korean_names

        yield from find_korean_names(text)
    if _THAI.search(text):
        from agentunit.addons.names._thai_names import find_thai_names

        yield from find_thai_names(text)
    from agentunit.addons.names._spaced_names import SCRIPTS, find_spaced_names

    for first, last, script in SCRIPTS:
        if re.search(f"[{first}-{last}]", text):
            yield from find_spaced_names(text, script)
