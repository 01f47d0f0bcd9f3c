"""Names of people: capitalised words, what the gazetteer knows about them, and what stands around them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import chain

from agentunit.addons.names._eastern_names import eastern_length
from agentunit.addons.names._field_context import is_thing_field
from agentunit.addons.names._name_context import PLACE_POINTS, points_after, points_before
from agentunit.addons.names._name_evidence import (
    ENOUGH,
    MOST_AROUND,
    OPENERS,
    PARTICLES,
    SUFFIXES,
    Word,
    about,
    is_foreign,
)
from agentunit.addons.names._script_names import find_script_names
from agentunit.privacy.detection.gazetteer import entries, fold
from agentunit.privacy.findings import CATALOG_CONFIDENCE, Finding

_CONFIDENCE = CATALOG_CONFIDENCE["name"]
LONGEST_WORD = 40
_EASTERN_POINTS = 4.0
LONGEST_NAME = 6
"""How many words a name has at most."""


def _upper_case_letters() -> str:
    """The capital letters of the Latin, Greek and Cyrillic scripts, as ranges of a character class."""
    ranges: list[list[int]] = []
    for code in range(0x41, 0x2000):
        letter = chr(code)
        if unicodedata.category(letter) not in ("Lu", "Lt"):
            continue
        if not unicodedata.name(letter).startswith(("LATIN", "GREEK", "CYRILLIC")):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(chr(first) if first == last else f"{chr(first)}-{chr(last)}" for first, last in ranges)


_UPPER = _upper_case_letters()
# Letters of scripts that have capital letters; others are looked at by ``script_names``. What Korean, Japanese and
# Chinese attach to a word in Latin letters is not part of it: "Unison은".
_LETTER = r"[^\W\d_\u0590-\u10ff\u1100-\u1cff\u2e80-\uffff]"
_PARTICLE = "|".join(sorted(PARTICLES))


class _Patterns:
    """What finds words and runs of them. ASCII texts have patterns of their own, which are quicker.

    Patterns begin with the first letter, and look at what is before it afterwards: so its candidates are skipped to.
    """

    def __init__(self, upper: str, letter: str) -> None:
        end = rf"(?!{letter}|[\d_@])"
        rest = rf"(?:{letter}|['’](?!s\b)(?={letter})|-(?={letter}))*"
        self.run = re.compile(
            rf"[{upper}](?<![\w@#/\\.-][{upper}]){rest}{end}"
            rf"(?:(?:(?<=[{upper}])\.[ ]?|,?[ ](?=[JS]r\b)|-|"
            rf"[ \u00a0](?:(?:{_PARTICLE})[ ]){{0,3}}(?:(?:al|el|ad|as|ash|an|ar|at|az|ul)-)?)"
            rf"[{upper}]{rest}{end}){{0,11}}"
        )
        self.lower_run = re.compile(
            rf"{letter}(?<![\w@#/\\.%-]{letter}){letter}+(?![\w@])"
            rf"(?:[ ](?:{letter}\.(?=[ ])|{letter}+(?![\w@]))){{0,11}}"
        )


_any_letters = _Patterns(_UPPER, _LETTER)
_ascii_letters = _Patterns("A-Z", "[A-Za-z]")
_WORD = re.compile(rf"[^\W\d_](?:{_LETTER}|['’](?!s\b)(?={_LETTER})|-(?={_LETTER}))*")


class _Words(dict[str, Word]):
    """What is known about each word met so far; forgets everything once it holds too many."""

    def __init__(self, *, in_foreign_texts: bool) -> None:
        super().__init__()
        self._in_foreign_texts = in_foreign_texts

    def __missing__(self, word: str) -> Word:
        if len(self) > 100_000:
            self.clear()
        known = about(word[:LONGEST_WORD], self._in_foreign_texts)
        if len(word) <= LONGEST_WORD:
            self[word] = known
        return known


_words = _Words(in_foreign_texts=False)
_foreign_words = _Words(in_foreign_texts=True)
_ANNOUNCED = 2.0
"""What a title or the like before a name gives it at least."""
_CAPITALS_FOLLOW = re.compile(r"[ -][A-Z]{2,}\b")
_BEFORE_CODE = ("`", "$", "%", "\\")
_WEEKDAY = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? {1,2}(?:\d|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b)"
)
_DECLARES = re.compile(
    r"\b(?:let|const|var|val|fn|func|function|def|class|enum|struct|trait|interface|extends|implements|namespace) \Z"
)
_CODE_FOLLOWS = re.compile(r"\.[a-z_]|[(\[][\w'\")\]]|::|->|`|=[\w'\"]")


def _in_code(text: str, start: int, end: int) -> bool:
    """Whether a word is part of a program: ``os.path``, ``Line(``, `` `NaN` ``."""
    before = text[max(0, start - 2) : start]
    if before[-1:] == " " and _DECLARES.search(text, max(0, start - 12), start):
        return True
    return before == "::" or before[-1:] in _BEFORE_CODE or _CODE_FOLLOWS.match(text, end) is not None


def find_names(text: str) -> list[Finding]:
    """The names of people in a text, in order.

    >>> text = "Hi, I'm Mathias Ruud. I will fly to New York on Monday Morning."
    >>> [text[f.start:f.end] for f in find_names(text)]
    ['Mathias Ruud']
    """
    patterns = _ascii_letters if text.isascii() else _any_letters
    runs = (patterns.lower_run if text.islower() else patterns.run).finditer(text)
    first = next(runs, None)
    if first is None:
        return []
    search = _Search(text)
    known = search.words
    for run in chain((first,), runs):
        words = run.group().split(" ")
        if len(words) == 1:
            # Most capitalised words open a sentence and are nothing else: the first look must be quick.
            word = words[0]
            if len(word) > 1 and known[word].can_start:
                search.look_at_word(run.start(), word)
            continue
        for word in words:
            if known[word].can_start or known[word].can_start_eastern:
                search.look_at(run.start(), run.end(), words)
                break
    return search.findings()


def find_names_in(texts: list[str]) -> list[list[Finding]]:
    """The names of people in each text, in whatever script."""
    return [[*find_names(text), *find_script_names(text)] if not text.isascii() else find_names(text) for text in texts]


_OPENS_WORD = frozenset(" \n\t\"'(“‘*")


class _Search:
    """The names found so far in one text, and the lone words that become names if a full name repeats them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_lower = text.islower()
        self.words = _foreign_words if is_foreign(text) else _words
        self._found: list[Finding] = []
        self._doubtful: list[tuple[int, int]] = []
        self._parts: set[str] = set()

    def findings(self) -> list[Finding]:
        """All names; a lone word that is part of a full name elsewhere in the text is one too."""
        has_speakers = any(self._is_speaker(finding.start, finding.end) for finding in self._found)
        for start, end in self._doubtful:
            if self.text[start:end] in self._parts:
                self._found.append(Finding("name", start, end, _CONFIDENCE, "part of a full name"))
            elif has_speakers and self._is_speaker(start, end):
                self._found.append(Finding("name", start, end, _CONFIDENCE, "speaker in a dialogue"))
        self._found.sort(key=lambda finding: finding.start)
        return self._found

    def look_at_word(self, start: int, word: str) -> None:
        """Find out whether a word by itself is a name."""
        if not word.isalpha():
            self.look_at(start, start + len(word), [word])
            return
        known = self.words[word]
        if not self.is_lower or self._can_start_in_lower_case(known, start):
            self._decide(((start, start + len(word), word),), known, known.alone)

    def look_at(self, start: int, end: int, parts: list[str]) -> None:
        """Find the names in a run of words, split into parts at spaces."""
        words: list[tuple[int, int, str]] = []
        if "".join(parts).isalpha():
            for part in parts:
                words.append((start, start + len(part), part))
                start += len(part) + 1
        else:
            words = [(match.start(), match.end(), match.group()) for match in _WORD.finditer(self.text, start, end)]
        known = [self.words[word] for _, _, word in words]
        n_words = len(words)
        first = 0
        while first < n_words:
            begin = known[first]
            if begin.can_start_eastern and not self.is_lower:
                length = eastern_length([word for _, _, word in words[first : first + LONGEST_NAME]])
                if length:
                    self._decide(words[first : first + length], begin, _EASTERN_POINTS)
                    first += length
                    continue
            if (
                not begin.can_start
                or (first and begin.as_first < 0 and not known[first - 1].is_plain)
                or (self.is_lower and not self._can_start_in_lower_case(begin, words[first][0]))
            ):
                first += 1
                continue
            last, points = self._extend(words, known, first)
            if last + 1 < n_words and known[last + 1].is_thing:
                first = last + 2
                continue
            names_thing = last + 1 < n_words and self._names_thing(words, known, first, last)
            is_name = False
            if not names_thing and (not first or words[first - 1][2] not in OPENERS):
                is_name = self._decide(words[first : last + 1], begin, points)
            # A verb that is also a surname opens the sentence: "Call John Smith".
            first = first + 1 if begin.is_plain and not is_name else last + 1

    def _names_thing(self, words: list[tuple[int, int, str]], known: list[Word], first: int, last: int) -> bool:
        """Whether a word that nobody is known by goes on with a plain one: "Codebase Navigator", "Smart Watch"."""
        following = words[last + 1]
        goes_on = self.text[words[last][1] : following[0]] == " " and len(following[2]) > 1
        return first == last and goes_on and not self.is_lower and not known[first].is_surely_name

    def _can_start_in_lower_case(self, word: Word, start: int) -> bool:
        """Without capitals only a known name starts one, or a word after "my name is" and the like."""
        if word.is_surely_name or word.is_plain:
            return word.is_surely_name
        stands_apart = not start or self.text[start - 1] in _OPENS_WORD
        return stands_apart and points_before(self.text, start, word.is_first_only) >= ENOUGH

    def _extend(self, words: list[tuple[int, int, str]], known: list[Word], first: int) -> tuple[int, float]:
        """The last word of the candidate that starts here, and the points of its words together."""
        last = first
        best_inside = extra = 0.0
        must_be_known = self.is_lower and known[first].is_surely_name
        for i in range(first + 1, min(len(words), first + LONGEST_NAME)):
            word, name = known[i], words[i][2]
            if name.lower() in PARTICLES:
                continue
            # "the UK AISI. Then, …"; a first name in capitals needs the next word to be known as one.
            is_lone_name = i == first + 1 and known[first].is_surely_name
            if word.is_plain and not is_lone_name and self._ends_sentence(words[i - 1]):
                break
            if word.is_initial:
                is_dotted = self.text[words[i][1] : words[i][1] + 1] == "."
                is_between = i + 1 < len(words) and known[i + 1].is_surely_name
                if (name in "IA" and i + 1 == len(words)) or (self.is_lower and not is_dotted and not is_between):
                    break  # in lower case "a" is a word, unless a surname follows: "john f kennedy"
                extra += 1.5
            elif name.lower() in SUFFIXES:
                extra += 1.0
            elif (
                word.inside is None or (self.is_lower and word.is_plain) or (must_be_known and not word.is_surely_name)
            ) and not (self.is_lower and i == first + 1 and self._is_announced_surname(word, words[first][0])):
                break
            else:
                extra += 0.5 if best_inside and word.is_surely_name else 0.0
                best_inside = max(best_inside, word.inside or 1.0)
            last = i
        if known[first].is_initial and not best_inside:
            return last, -MOST_AROUND
        if last - first > 1 and not extra and not any(word.is_surely_name for word in known[first : last + 1]):
            extra -= 1.0
        return last, known[first].as_first + best_inside + min(extra, 2.0)

    def _ends_sentence(self, word: tuple[int, int, str]) -> bool:
        """Whether a full stop after a word ends a sentence, as after "AISI", and no abbreviation (J., DR.)."""
        return len(word[2]) > 2 and self.text[word[1] : word[1] + 1] == "."

    def _is_announced_surname(self, word: Word, start: int) -> bool:
        """Whether a plain word is a surname, by what announces the name: "my name is john smith"."""
        return word.is_frequent_last and points_before(self.text, start, True) >= ENOUGH

    def _decide(self, words: Sequence[tuple[int, int, str]], first_word: Word, points: float) -> bool:
        """Report a candidate that has enough evidence, with what stands around it; returns whether it has."""
        text = self.text
        start, end = words[0][0], words[-1][1]
        is_single = len(words) == 1
        if is_single:
            points = first_word.alone
        if points + MOST_AROUND < ENOUGH or (is_single and _in_code(text, start, end)) or _WEEKDAY.match(text, start):
            return False
        before = points_before(text, start, first_word.is_first_only)
        if before == PLACE_POINTS and not is_single and self._ends_in_surname(words):
            before = 0.0
        is_known = first_word.is_surely_name or any(self.words[word].is_surely_name for _, _, word in words[1:])
        points += before + points_after(text, end, is_known)
        if self._found:
            points += self._points_in_list(start, first_word)
        if before < _ANNOUNCED and not is_single:
            is_formed = points >= _EASTERN_POINTS + before
            has_first = is_formed or any(self._is_first_name(word) for _, _, word in words)
            if self.words is _foreign_words and not has_first:
                return False  # German writes every noun with a capital letter
            if not has_first and any(self.words[word].is_word_or_country for _, _, word in words):
                return False  # "Tipo de Nota", "Francia y Alemania": labels are too short to tell their language
            if text[start:end].isupper() and _CAPITALS_FOLLOW.match(text, end):
                return False  # a heading, or the name of a letter: "LATIN SMALL LETTER"
        if self.words is _foreign_words and before <= 0 and not first_word.is_first_only:
            points -= 1.0
        if self.is_lower:
            points -= 0.5
        elif text[start:end].isupper():
            points -= 2.5 if is_single else 1.0
        if not is_single:
            if (text[start - 1 : start] or "\n") == "\n" == (text[end : end + 1] or "\n"):
                points += 0.5
            if before < 2.0 and fold(text[start:end]) in entries():
                return False
        if points < ENOUGH:
            if is_single and points > 0:
                self._doubtful.append((start, end))
            return False
        if is_thing_field(text, start):
            return False
        self._found.append(Finding("name", start, end, _CONFIDENCE, "name"))
        if not is_single or first_word.is_surely_name:
            self._parts.update(word for _, _, word in words if len(word) > 2 and not self.words[word].is_place)
        return True

    def _is_first_name(self, word: str) -> bool:
        known = self.words[word]
        return known.is_first_only and not known.is_plain

    def _ends_in_surname(self, words: Sequence[tuple[int, int, str]]) -> bool:
        """Whether the last word is a name and no place, so that a word such as "to" does not announce a place."""
        last = self.words[words[-1][2]]
        return last.is_surely_name and not last.is_place

    def _points_in_list(self, start: int, word: Word) -> float:
        """What it says that only a comma or "and" stands between the last name and this place."""
        end = self._found[-1].end
        if not 1 < start - end <= 6:
            return 0.0
        between = self.text[end:start]
        if between in (" and ", ", and ", " & "):
            return 3.0
        if between == " to ":
            return 1.5
        return 2.5 if between == ", " and word.alone > 0 else 0.0

    def _is_speaker(self, start: int, end: int) -> bool:
        """Whether the word opens a line and a colon follows."""
        return self.text[end : end + 1] == ":" and (start == 0 or self.text[start - 1] == "\n")
