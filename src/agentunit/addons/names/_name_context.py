"""What stands before and after a name, in points for and against it."""

from __future__ import annotations

import re

from agentunit.addons.names._field_context import THINGS_WITH_NAMES
from agentunit.privacy.detection.gazetteer import phrases, word_set, words

_CUES_BY_POINTS = {
    3.0: (
        *words(
            """
            mr mr. mrs mrs. ms ms. mx mx. dr dr. prof prof. rev rev. sr sr. sra sra. srta. hr. capt. col.
            sgt. lt. gen. sen. hon. mme mme. mlle dott. miss professor doctor herr frau señor señora senor
            senora doña signor signora madame monsieur captain colonel sergeant lieutenant judge senator
            uncle aunt auntie detective mayor chancellor governor congressman congresswoman sheriff
            inspector named dear name's name? regards regards, sincerely sincerely, signed, heiße heisse appelle
            llamo chamo chamo-me chiamo heet namens herrn mevrouw meneer dhr. sig. sig.ra dott.ssa sr.ª senhor senhora
            appelé nommé llamado llamada chamado chamada mlle. mademoiselle bayan pani pana
            """
        ),
        *phrases(
            """
            name is | name was | named as | call me | calls me | called me | call him | call her | known as
            | goes by | name of | behalf of | yours truly, | signed by | my name | surname is | prime
            minister | vice president | name ist | nom est | nombre es | nome é | nome è | naam is | namn är | navn er
            """
        ),
    ),
    2.0: (
        *words(
            """
            i'm under cheers, love, yours, best, thanks, hi hi, hello hello, hey hey, president officer king
            queen prince princess pope coach nurse agent minister general it's welcome, sorry, hallo hallo, liebe
            lieber grüße, grüßen, gruß, bonjour bonjour, cordialement, chère cher hola hola, soy estimado estimada
            saludos, atentamente, olá olá, sou prezado prezada atenciosamente, ciao ciao, gentile saluti, beste groet,
            don doña dom
            """
        ),
        *phrases(
            """
            i am | this is | speaking to | speaking with | spoke to | spoke with | thank you, | good
            morning, | good evening, | good afternoon,
            """
        ),
    ),
    1.5: (
        *words(
            """
            founder author member participant speaker employee customer passenger guest winner actor actress
            starring director editor student brother sister son daughter wife husband friend colleague boss
            patient client driver singer artist musician neighbour neighbor teacher lawyer owner nephew
            niece cousin mother father mom mum dad grandmother grandfather girlfriend boyfriend fiance
            fiancee roommate composer guitarist drummer producer writer poet friend, wife, husband, brother,
            sister, son, daughter, boss, manager supervisor secretary accountant therapist dentist landlord coworker
            teammate advisor consultant engineer developer representative rep colleague, manager,
            """
        ),
    ),
    1.0: (
        *words(
            """
            said says asked asks told tell replied wrote by with ask meet met contact call called add invite
            thank remember marry married love loves know knows guardian
            """
        ),
        *phrases(
            """
            speak to | talk to | talked to | talk with | speak with | assigned to | belongs to | assistant to
            | son of | daughter of | wife of | husband of | mother of | father of | remember
            me, | said to
            """
        ),
    ),
    0.5: words("and or me me, him her you did does has when if that because as"),
    -1.0: words("in at near to from into through across toward towards around outside visit visiting capital of"),
    -1.5: words("the a an this that these those its each every any no"),
    -2.0: (
        *words("bought buy song movie film book album band game brand company product team show series became"),
        *phrases(
            """
            work for | works for | worked for | working for | work at | works at | worked at | working at |
            employed by | employed at | ceo of | acquired by | year at | city of | song called | founder of
            """
        ),
    ),
}
"""The words before a name, by the points they give it: titles and naming most, what things have least."""

_CUES = {cue: points for points, cues in _CUES_BY_POINTS.items() for cue in cues}
_CUE_ENDS = frozenset(cue.rpartition(" ")[2] for cue in _CUES)
PLACE_POINTS = -1.0

_LABELS = word_set(
    """
    name passenger traveler traveller customer patient employee contact recipient signed attn attention author
    holder beneficiary sender from to cc student guest nominee applicant client tenant buyer seller driver owner
    """
)
_PEOPLE = word_set(
    """
    founders authors members participants attendees speakers employees customers passengers guests winners
    actors starring directors editors students candidates brothers sisters sons daughters friends colleagues
    patients clients drivers singers artists musicians parents children kids neighbours neighbors teachers
    lawyers owners cast crew
    """
)
_WHOSE = word_set(
    """
    first last full given family middle maiden user sur nick customer passenger traveler traveller patient
    client contact holder cardholder employee guest student applicant recipient sender author owner driver
    member tenant buyer seller person legal billing shipping lead the my your his her their our a is or and by
    with
    """
)
"""What stands before "name" where it is a person's: ``first_name``, "Customer name"; ``class_name`` is none."""
_LABEL_POINTS = 3.0
_OF_THING_POINTS = -5.0
_THING_LABEL_POINTS = 0.5
"""The field ``name`` of data, or the name of a tool: what stands there must look like a person's by itself."""
_PEOPLE_POINTS = 2.5
_SIGN_OFF_POINTS = 2.0
_HOUSE_NUMBER_POINTS = -1.5

_AFTER = re.compile(
    r"""(?:
      (?P<speech>\ (?:said|says|asked|asks|told|tells|replied|wrote|writes|added|thinks|thought|knows|knew|wants|wanted|
        loves|loved|lives|lived|works|worked|spent|listed|had|went|called|calls|was\ born|married|died|himself|
        herself)\b)
    | (?P<request>,\s(?:(?:can|could|would|will|may)\s(?:i|you|we)|please)\b)
    | (?P<relative>\ (?:and|or|with)\ (?:his|her|their)\b)
    | (?P<vocative>,\s(?:i|you|we|what|why|how|where|do|did|are|have|thanks|thank)\b)
    | (?P<number>\s\d)
    | (?P<owner>['’]s\s)
    | (?P<speaker>:\s)
    | (?P<contact>\s?[<(][^\s@<>()]{1,64}@)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_AFTER_POINTS = {
    "speech": 1.0,
    "request": 2.5,
    "relative": 1.0,
    "vocative": 1.0,
    "owner": 0.5,
    "speaker": 1.0,
    "contact": 2.0,
    "number": -1.5,
}

LONGEST_CONTEXT = 32
"""How many characters before and after a candidate are looked at."""


def points_before(text: str, start: int, is_first_only: bool) -> float:
    """What the words before a candidate say; a preposition of place says nothing about what is a first name only."""
    if start > 1 and text[start - 1] == " ":
        # Most words announce nothing: they are ruled out before anything is cut into pieces.
        last = text[text.rfind(" ", max(0, start - LONGEST_CONTEXT), start - 1) + 1 : start - 1].lower()
        if last not in _CUE_ENDS and (last.isalpha() or last.endswith((".", "!", ";", ")"))):
            return 0.0
    window = text[max(0, start - LONGEST_CONTEXT) : start].lower()
    before = window.rstrip(" \n\t\"'“”‘(")
    tail = before.split()[-3:]
    if not tail:
        return 0.0
    last = tail[-1]
    if last in (":", "=") and len(tail) > 1:
        tail = [*tail[:-2], tail[-2] + last]
        last = tail[-1]
    if last[-1] in ":=":
        label = last.rstrip(":=")
        return _points_of_label(label, tail[-2] if len(tail) > 1 else "", last[-1])
    if last[-1].isdigit():
        return _HOUSE_NUMBER_POINTS
    tail[-1] = last = last.lstrip("\"'“‘(")
    points = _CUES.get(" ".join(tail[-2:])) if len(tail) > 1 else None
    if points is None:
        points = _CUES.get(last, 0.0)
    if 0 < points < _SIGN_OFF_POINTS and "\n" in window[len(before) :] and last[-1] != ",":
        # The line ended there: "… Codebase Editor" says nothing about the word that opens the next one.
        return 0.0
    return 0.0 if points == PLACE_POINTS and is_first_only else points


def _points_of_label(written: str, word_before: str, sign: str) -> float:
    """What a label before a colon or an equals sign says."""
    label = written.strip("\"'*_\\`{[(,-<")
    if label.endswith("name"):
        whose = label.removesuffix("name").rstrip("_-. ")
        if whose:
            if whose.rpartition("_")[2] in THINGS_WITH_NAMES:
                return _OF_THING_POINTS
            return _LABEL_POINTS if whose.rpartition("_")[2] in _WHOSE else _THING_LABEL_POINTS
        if word_before.strip("\"'*_(") in THINGS_WITH_NAMES:
            return _OF_THING_POINTS
        is_data = sign == "=" or written.strip("*_") != label
        is_somebodys = word_before.strip("\"'*_(") in _WHOSE or not word_before[-1:].isalpha()
        return _LABEL_POINTS if is_somebodys and not is_data else _THING_LABEL_POINTS
    if label in _LABELS:
        return _LABEL_POINTS
    return _PEOPLE_POINTS if label in _PEOPLE else 0.0


def points_after(text: str, end: int, is_known: bool) -> float:
    """What the words after a candidate say; a colon tells of a speaker only where a word is known as a name."""
    after = text[end : end + 2]
    if not after or after[0] not in " ,:'’<(" or (after[0] == " " and after[1:].isupper()):
        return 0.0
    found = _AFTER.match(text, end, end + LONGEST_CONTEXT)
    if not found or not found.lastgroup or (found.lastgroup == "speaker" and not is_known):
        return 0.0
    return _AFTER_POINTS[found.lastgroup]
