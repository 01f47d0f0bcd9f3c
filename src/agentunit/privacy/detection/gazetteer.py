"""Known names, places and plain words, what a word can be, and how lists of words are written."""

from __future__ import annotations

import functools
import lzma
import unicodedata
from pathlib import Path

DATA_FILE = Path(__file__).parent / "data" / "gazetteer.xz"


class Kind:
    """What a word can be, as bits of a number; a word is often several of them at once."""

    FIRST = 1
    """A first name somewhere."""
    LAST = 2
    """A surname somewhere."""
    WIDESPREAD = 4
    """A first name in more than one language."""
    WORD = 8
    """A frequent plain English word, or the name of a language or nationality."""
    RARE_WORD = 16
    """A less frequent plain English word."""
    PLACE = 32
    """A city of some size, a state or a country; entries of several words are all of this kind."""
    COUNTRY = 64
    """A country, in one of many languages."""
    FREQUENT_LAST = 128
    """One of the most frequent surnames of the United States."""
    FREQUENT_FIRST = 256
    """One of the most frequent first names of the United States, or one that many languages share."""
    FOREIGN_WORD = 512
    """A frequent plain word of German, Spanish, French, Italian, Dutch or Portuguese."""
    EASTERN_LAST = 1024
    """A surname that stands before the given name: Chinese, Japanese, Korean, Vietnamese."""


_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "ø": "o", "œ": "oe", "ð": "d", "þ": "th", "ł": "l", "đ": "d", "ı": "i", "’": "'", "ħ": "h"}
)


def fold(word: str) -> str:
    """The form under which a word is looked up: lower case, without accents.

    >>> fold("Szöllösy"), fold("Þórunn"), fold("O’Brien"), fold("Παύλος")
    ('szollosy', 'thorunn', "o'brien", 'παυλος')
    """
    lowered = word.lower()
    if lowered.isascii():
        return lowered
    decomposed = unicodedata.normalize("NFD", lowered.translate(_LETTERS))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


@functools.cache
def entries() -> dict[str, int]:
    """Every entry, folded, with its kinds as a number; read from the data file once."""
    kinds: dict[str, int] = {}
    for line in lzma.decompress(DATA_FILE.read_bytes()).decode().split("\n"):
        kind, _, words = line.partition("\t")
        kinds.update(dict.fromkeys(words.split("\t"), int(kind)))
    return kinds


def kinds_of(word: str) -> int:
    """What a single word can be, 0 where nothing is known. A hyphenated word is what its parts are.

    >>> bool(kinds_of("Krisztián") & Kind.FIRST), kinds_of("Xqzzt")
    (True, 0)
    """
    known = entries()
    folded = fold(word)
    kind = known.get(folded)
    if kind is None and "-" in folded:
        parts = [known.get(part, 0) for part in folded.split("-") if part]
        return functools.reduce(lambda one, other: one & other, parts) if parts else 0
    return kind or 0


def words(text: str) -> tuple[str, ...]:
    """The words of a text, in order.

    >>> words("one two\\n three")
    ('one', 'two', 'three')
    """
    return tuple(text.split())


def word_set(text: str) -> frozenset[str]:
    """The words of a text, in no order."""
    return frozenset(text.split())


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text, between bars.

    >>> phrases("name is | on behalf\\n of")
    ('name is', 'on behalf of')
    """
    return tuple(" ".join(phrase.split()) for phrase in text.split("|"))


# Words that look like names and mostly are none.
AMBIGUOUS = word_set(
    """
    mark will may grace rose bill jack frank art hope faith joy dawn april june august summer christian rich
    drew sue pat chase grant wade gene ray guy miles dean earl duke lance cliff brook brooke amber crystal ruby
    pearl ivy iris violet olive heather holly penny candy sandy dusty rusty sunny stormy destiny harmony melody
    charity prudence patience victor carol robin jay bob rob max mercy norm buck chip chuck dick pierce lane
    reed dale glen heath forest hunter mason carter cooper tanner parker tucker porter taylor tyler sky star
    angel king prince major german early young long an see so my in van le do page case price royal son autumn
    precious edit else job line nail nova pal said sol tea urban ale ales aria aura bent curt fedora fern franc
    gale imam karma kelvin lore magnolia mare nadir nil rune rut sari tiara tor valentine vita per ola sala
    """
)
"""Frequent first names that are just as frequent as plain words."""

PLAIN_WORDS = word_set(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december christmas easter ramadan hanukkah thanksgiving halloween mr mrs ms miss
    dr prof sir madam lord lady google amazon microsoft apple facebook meta netflix twitter youtube instagram
    linkedin paypal visa mastercard amex uber airbnb tesla toyota honda bmw ford nokia samsung sony intel nvidia
    oracle ibm siri alexa cortana gemini claude chatgpt gpt windows android linux python java javascript github
    docker english bible god jesus christ allah i'm i'd i'll i've us on in as an at be by do go he if is it me
    my no of ok or so to up we am are internet covid hi hello hey dear thanks regards sincerely mom dad mum
    daddy mommy grandma grandpa oh ah uh um mm mm-hmm hmm huh yeah yes yep nope wow ha haha lol please judge
    captain colonel professor doctor president senator officer uncle aunt auntie detective mayor queen princess
    pope chancellor minister governor sheriff coach nurse general sergeant lieutenant inspector mister madame
    monsieur herr frau phd md mars venus jupiter mercury saturn america europe asia africa washington england
    scotland wales britain north south east west northern southern eastern western san santa saint st santo los
    las el la new mount mt lake fort port cape upper lower great grand uss usns po api json http https url id
    usa uk eu un nato fbi cia nasa wikipedia wikimedia imdb tiktok reddit spotify whatsapp telegram snapchat
    pinterest yahoo bing firefox chromium safari pytorch tensorflow numpy pandas kubernetes postgres mysql
    sqlite typescript yaml toml html bluetooth wifi airplane smartphone laptop website email online offline
    oauth config codebase dataset timestamp username workflow webpage metadata plugin backend frontend
    januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag
    janvier fevrier mars avril juin juillet aout septembre octobre decembre lundi mardi mercredi jeudi vendredi samedi
    dimanche enero febrero marzo abril mayo junio julio septiembre octubre noviembre diciembre lunes martes miercoles
    jueves viernes sabado domingo janeiro fevereiro marco maio junho julho setembro outubro novembro dezembro gennaio
    febbraio aprile maggio giugno per luglio settembre ottobre dicembre sie ihr ihre herrn damen herren guten hallo
    bonjour merci hola gracias estimado estimada prezado prezada olá ola obrigado obrigada gentile grazie buongiorno
    señor señora senhor senhora signor signora kunde kundin kundinnen kunden bestellung rechnung lieferung anfrage
    anhang angebot vertrag termin uhr euro straße woche monat jahr team service cliente clientes pedido factura fatura
    commande facture livraison ordine fattura consegna bestelling
    apache kafka grafana redis terraform kibana airflow hadoop elasticsearch rabbitmq nginx ansible
    logitech philips patagonia anker fitbit garmin adidas nike reebok lenovo asus acer huawei xiaomi oneplus oppo
    panasonic canon nikon gopro dyson ikea bosch siemens braun nespresso starbucks mcdonald mcdonalds walmart costco
    target verizon comcast vodafone fedex dhl ups boeing airbus porsche volkswagen audi hyundai nissan mazda subaru
    volvo fiat renault peugeot citroen skoda lexus acura jeep chrysler dodge chevrolet cadillac buick mercedes harley
    yamaha suzuki kawasaki ducati salesforce hubspot zendesk shopify squarespace wordpress dropbox slack zoom trello
    jira confluence bitbucket gitlab jenkins circleci datadog splunk snowflake databricks anthropic openai mistral
    llama copilot playstation nintendo xbox kindle pixel galaxy macbook iphone ipad airpods chromebook thinkpad
    """
)
"""Capitalised words that are no names here, or open the name of something else, whatever the lists say."""
