"""Identity and tax numbers of many countries, by the words that announce them.

What their check digits say, and numbers that no word announces, is known with the extra ``identity`` (``regional``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentunit.privacy.detection.contexts import IS
from agentunit.privacy.detection.engine import Accepted, Candidate, Recognizer
from agentunit.privacy.detection.gazetteer import phrases, words

# Written in any case.
_NAMES = phrases(
    """
    national id | national identity | national identification | national insurance | identity card | identity number
    | id card | identification number | citizen id | citizen number | personal id | personal identification
    | resident identity card | resident registration | tax id | tax identification | tax file | taxpayer id
    | taxpayer identification | social insurance | nino | steuer-id | steuer-identifikationsnummer
    | steueridentifikationsnummer | steuernummer | personalausweis | personalausweisnummer | ausweisnummer
    | sozialversicherungsnummer | numéro de sécurité sociale | sécurité sociale | carte nationale d'identité
    | numéro fiscal | registre national | numéro national | número de contribuinte | cartão de cidadão
    | codice fiscale | burgerservicenummer | bsn | rijksregisternummer | pesel | rodné číslo | rodne cislo
    | personnummer | fødselsnummer | fodselsnummer | cpr-nummer | cpr nummer | cpr | henkilötunnus | hetu | kennitala
    | isikukood | personas kods | asmens kodas | cod numeric personal | егн | oib | jmbg | emšo | emso | adóazonosító
    | taj | ahv | ahv-nummer | numéro avs | tc kimlik | t.c. kimlik | tckn | teudat zehut | aadhaar | aadhar
    | cnic | 身份证 | 身份证号 | 身份证号码 | 公民身份号码 | hkid | マイナンバー | 個人番号 | my number | 주민등록번호
    | เลขประจำตัวประชาชน | mykad | nric | ktp | philsys | cccd | cmnd
    | curp | cuit | cuil | cédula | cedula | инн | снилс
    | рнокпп | ипн | иин | ИНН | СНИЛС | РНОКПП | ИИН | ЕГН | ΑΦΜ
    | ni number | emirates id | iqama | ghana card | kra pin | bvn | सरकारी पहचान | الرقم القومي | رقم الهوية
    | תעודת זהות | מספר זהות | ppsn | pps number
    """
)
# Other things are called so in lower case.
_SHORT = words(
    "TIN ITIN NIR CNI DNI NIE NIF NIP CNP EGN AFM AMKA PAN NID NIC NIK SIN TFN IRD CPF CNPJ RFC RUT NIT NIN SVNR PPS"
)
_JOINED = "Tax(?:payer)?Id|TaxNumber|NationalId|IdentityNumber|IdNumber|PersonalNumber"


def _bytes(text: str) -> str:
    """A text as the bytes of its UTF-8, which patterns are written in."""
    return re.escape(text).encode().decode("latin-1")


def check_national(candidate: Candidate) -> Sequence[Accepted]:
    """Five digits or more in six to twenty letters and digits, without the words that follow."""
    groups = candidate.written.split(b" ")
    while len(groups) > 1 and not any(48 <= each <= 57 for each in groups[-1]) and len(groups[-1]) > 1:
        groups.pop()
    kept = b" ".join(groups)
    n_digits = sum(48 <= each <= 57 for each in kept)
    n_used = sum(chr(each).isalnum() for each in kept)
    after = candidate.buffer[candidate.start + len(kept) : candidate.start + len(kept) + 1]
    # The Italian number has as many letters as digits, the Mexican one more.
    if n_digits < (4 if n_used > 8 else 5) or not 6 <= n_used <= 20 or after.isalnum() or after == b"@":
        return ()
    return (Accepted(candidate.start, candidate.start + len(kept), candidate.confidence),)


_LATIN = "|".join(_bytes(name).replace(_bytes(" "), "[ _-]?") for name in _NAMES if name[-1].isascii())
_OTHER = "|".join(sorted((_bytes(name) for name in _NAMES if not name[-1].isascii()), key=len, reverse=True))
_CUE = (
    rf"(?:(?:(?:\b|_)(?i:{_LATIN})|\b(?:{'|'.join(_SHORT)})|(?:\b|[a-z])(?:{_JOINED})|\b(?i:{_JOINED}))"
    # Particles may follow in Korean and Japanese; where letters are not ASCII, no boundary is seen.
    rf"(?:\b|_|(?:Number|No|Nr)\b)|(?:{_OTHER})(?:[\xe3-\xed][\x80-\xbf]{{2}}){{0,2}}(?:\xef\xbc\x9a)?)"
)

NATIONAL_IDS = (
    Recognizer(
        "national_id",
        "national_id_by_context",
        rf"{_CUE}{IS}(?:(?i:card|code)\b[ :#]{{0,3}})?"
        r"(?P<value>[A-Z0-9](?:(?:[ ./-]|\xe2\x80[\x90\x91\x93])?[A-Z0-9]){5,21})\b",
        0.85,
        check_national,
    ),
)
