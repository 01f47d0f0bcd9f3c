"""British postcodes with the town before them, in any case: ``london nw1 6xe``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentunit.addons.names._address_parts import TYPES_AFTER_NAME
from agentunit.privacy.detection.gazetteer import Kind, kinds_of, word_set
from agentunit.privacy.findings import Finding

# The digits are looked for first: letters are everywhere.
_CODE = re.compile(r"[0-9][A-Za-z0-9]?[ ][0-9][ABD-HJLNP-UW-Zabd-hjlnp-uw-z]{2}(?![\w@/-])")
_AREA = re.compile(r"(?<![\w@/.-])[A-Za-z]{1,2}\Z")
_AREAS = word_set(
    """
    ab al b ba bb bd bh bl bn br bs bt ca cb cf ch cm co cr ct cv cw da dd de dg dh dl dn dt dy e ec eh en ex fk fy g
    gl gu gy ha hd hg hp hr hs hu hx ig im ip iv je ka kt kw ky l la ld le ll ln ls lu m me mk ml n ne ng nn np nr nw
    ol ox pa pe ph pl po pr rg rh rm s sa se sg sk sl sm sn so sp sr ss st sw sy ta td tf tn tq tr ts tw ub w wa wc wd
    wf wn wr ws wv yo ze
    """
)
_TOWN = re.compile(r"(?P<word>[^\W\d_]{3,}),?[ \n]\Z")
_LABEL = re.compile(r"(?i)\b(?:post ?code|postal code)[\"'*]{0,2}(?: is)?[ :=]{1,3}[\"'*]{0,2}\Z")
_STREET = re.compile(
    rf"(?i)(?<!\w)[0-9]{{1,4}}[a-z]?,?[ ](?:[a-z'.-]{{2,20}}[ ]){{1,4}}(?:{'|'.join(TYPES_AFTER_NAME)})\b\.?,?[ \n]"
    r"{0,2}(?:[a-z]{3,20},?[ \n])?\Z"
)
_REACH = 110


def find_postcodes(text: str) -> Iterator[Finding]:
    """The postcodes that a town or a label announces, with the town and the street before them.

    >>> text = "I live at 221b baker street, london nw1 6xe. Postcode: sw1a 1aa"
    >>> [text[found.start : found.end] for found in find_postcodes(text)]
    ['221b baker street, london nw1 6xe', 'sw1a 1aa']
    """
    for code in _CODE.finditer(text):
        area = _AREA.search(text, max(0, code.start() - 3), code.start())
        if area is None or area.group().lower() not in _AREAS:
            continue
        start = area.start()
        before = max(0, start - _REACH)
        town = _TOWN.search(text, before, start)
        if town is not None and kinds_of(town["word"]) & Kind.PLACE:
            start = town.start()
        elif _LABEL.search(text, before, start) is None:
            continue
        street = _STREET.search(text, before, start)
        yield Finding("address", street.start() if street is not None else start, code.end(), 0.8, "postcode")
