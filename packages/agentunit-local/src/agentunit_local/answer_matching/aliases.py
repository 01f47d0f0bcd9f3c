"""Other spellings of the same thing: abbreviations, titles, short first names, peoples and their countries."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text written down as a list of words."""
    return frozenset(text.split())


# What an abbreviation stands for. "us" counts only in capitals.
SPELLED_OUT: dict[str, tuple[str, ...]] = {
    short: tuple(long.split())
    for short, long in {
        "usa": "united states", "us": "united states", "uk": "united kingdom", "uae": "united arab emirates",
        "ussr": "soviet union", "eu": "european union", "nyc": "new york city", "wwi": "world war 1",
        "ww1": "world war 1", "wwii": "world war 2", "ww2": "world war 2", "tv": "television", "mt": "mount",
        "vs": "versus", "percent": "%", "dept": "department", "govt": "government", "okay": "ok",
    }.items()
}  # fmt: skip

# Words that say nothing by themselves.
FUNCTION_WORDS = word_set(
    """
    a an the this that these those there here i me my you your he him his she her it its we us our they them their
    who whom whose which what when where why how is am are was were be been being do does did have has had can could
    may might must shall should will would and or but nor if then than so because while as of to in on at by for
    from with about into onto over under after before during through between against up down out off also just very
    too only around approximately some any all each both such called named known s
    """
)

# Words around a name that neither make nor break a match.
TITLES = word_set(
    """
    sir dame lord lady dr doctor mr mrs ms miss prof professor president king queen prince princess emperor empress
    general colonel captain major lieutenant sergeant admiral commander saint st pope cardinal bishop archbishop
    reverend rev father sister brother senator governor minister chancellor judge justice chief mayor secretary
    congressman congresswoman representative jr sr junior senior esq mbe obe cbe kbe phd md
    """
)

# Words that say what kind of thing a name is: "the Ravi River" and "Ravi" are one.
KIND_WORDS = word_set(
    """
    river lake mountain mount island city town county state province country district region beach bay valley street
    avenue university college school institute company corporation corp inc ltd band group team club film movie
    series season show episode song album single book novel character language people party act treaty war battle
    dynasty empire kingdom republic century year age period era day month hour minute second league division
    conference system process method theory law type kind form number part area place
    """
)

_SHORT_NAMES = """
william bill will billy|robert bob rob bobby robbie|richard dick rick richie|james jim jimmy jamie
john jack johnny|joseph joe joey|thomas tom tommy|michael mike mick mickey|edward ed eddie ted teddy
charles charlie chuck|henry harry hank|elizabeth liz beth betty eliza|margaret maggie meg peggy
katherine catherine kate kathy cathy katie|daniel dan danny|anthony tony|christopher chris|alexander alex
benjamin ben|samuel sam sammy|samantha sam|theodore theo ted|andrew andy drew|david dave|donald don donnie
frederick fred freddie|gregory greg|jeffrey jeff|kenneth ken kenny|lawrence larry|matthew matt|nicholas nick
patrick pat|patricia pat patty|peter pete|philip phil|raymond ray|ronald ron ronnie|stephen steven steve
timothy tim|vincent vince|walter walt|zachary zach|susan sue|jennifer jen jenny|deborah debbie|barbara barb
jessica jess|victoria vicky|abigail abby|albert al bert|alfred al fred|francis frank|franklin frank
gerald gerry jerry|leonard len leo|martin marty|nathaniel nathan nate|oliver ollie|rebecca becky|sandra sandy
jonathan jon
"""
_COUNTRIES = """
france french|germany german|spain spanish|italy italian|england english|britain british|scotland scottish|wales welsh
ireland irish|netherland dutch holland|portugal portuguese|greece greek|turkey turkish|russia russian|china chinese
japan japanese|korea korean|india indian|america american state|canada canadian|mexico mexican|brazil brazilian
egypt egyptian|israel israeli|sweden swedish|norway norwegian|denmark danish|finland finnish|poland polish|rome roman
hungary hungarian|austria austrian|switzerland swiss|belgium belgian|australia australian|europe european|africa african
asia asian|persia persian|iran iranian|iraq iraqi|pakistan pakistani|vietnam vietnamese|thailand thai|britain kingdom uk
argentina argentine argentinian|film movie|automobile car|physician doctor
"""


def _related(groups: str) -> dict[str, tuple[str, ...]]:
    related: dict[str, tuple[str, ...]] = {}
    for group in groups.replace("\n", "|").split("|"):
        words = group.split()
        for word in words:
            related[word] = (*related.get(word, ()), *(other for other in words if other != word))
    return related


# Words that may stand for each other, as stems.
RELATED = _related(_SHORT_NAMES + _COUNTRIES)

MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sept sep", "october oct", "november nov", "december dec"),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
