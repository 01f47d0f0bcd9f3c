"""What in an answer claims nothing: numbering, announcements, courtesies, and sentences that decline to answer.

The patterns are narrow on purpose: a claim that is taken for a courtesy would never be checked.
"""

from __future__ import annotations

import re


def _pattern(*choices: str, after: str = "") -> re.Pattern[str]:
    """Any of some choices, in which a blank stands for white space and an apostrophe for either kind of it."""
    joined = "|".join(choices).replace("'", "['’]").replace(" ", r"\s+")
    return re.compile(f"(?:{joined}){after}", re.IGNORECASE)


_REST = r"[^.!?\n]*"
# A courtesy that goes on with a reason or an exception may claim something in it.
_NO_MORE = r"(?:(?!\b(?:because|since|but|however|although|though|yet|while|which)\b)[^.!?;\n])*"
_TO_US = (
    "(?:ask|reach out|contact (?:me|us)|let (?:me|us) know|get in touch|message (?:me|us)|(?:write|reply) to (?:me|us)|"
    "reply|follow up|share|clarify|provide (?:more|further|additional|the|your))"
)
_FREE = "(?:feel free to|(?:do not|don't) hesitate to)"
_LET_KNOW = rf"let (?:me|us) know(?: (?:if|whether|what|how)\b{_NO_MORE})?"
_GLAD = rf"i(?:'d|'ll| would| will| am|'m)(?: be)? (?:happy|glad) to (?:help|assist)\b{_NO_MORE}"
_HELPERS = "(?:agents?|representatives?|colleagues?|teams?|specialists?|customer (?:service|support|care)|support)"
# Only what a helper might do: "an agent who will refund it" claims something.
_A_HELPER = (
    rf"(?:[a-z]+ ){{0,3}}{_HELPERS}(?: (?:who|that) (?:can|could|may|might)\b{_NO_MORE})?"
    r"(?: for (?:further|more|additional) (?:assistance|help|support|information|options))?"
)
_HANDED_ON = (
    rf"i (?:can|could) (?:transfer|connect) you (?:to|with) {_A_HELPER}|"
    rf"i (?:recommend|suggest) (?:contacting|reaching out to|speaking (?:to|with)) {_A_HELPER}"
)
_OFFERED = rf"{_LET_KNOW}|{_FREE} {_TO_US}\b{_NO_MORE}|feel free|ask(?: (?:me|us|away|again))?|{_GLAD}|{_HANDED_ON}"
_GIVEN = "given|provided|above|following|supplied|available|retrieved|presented|original|source|two|three"
_TEXTS = (
    "passages?|contexts?|texts?|articles?|documents?|information|details|sources?|excerpts?|search results|"
    "materials?|paragraphs?|snippets?"
)
_SOURCE = (
    rf"(?:(?:the|these|those|this|your|all|both) )?(?:(?:{_GIVEN}) )*(?:{_TEXTS})"
    r"(?: (?:\d+|provided|given|above|you (?:provided|gave|shared)|in the (?:passages?|prompt|question)))*"
)
_FORM = (
    "summary|overview|answer|response|explanation|list|outline|recap|rundown|version|breakdown|points?|takeaways?|"
    "facts?|steps?|details?|findings?|highlights?|information|ways?|things?|possibilities|reasons?|examples?"
)
_PLAIN = (
    "a|an|the|some|my|your|and|of|short|brief|concise|quick|detailed|possible|potential|main|key|few|core|important"
)
_HERE = rf"(?:here(?:'s| is| are)|below (?:is|are)|the following (?:is|are)|this is)(?: (?:{_PLAIN}))* (?:{_FORM})\b"
_AGREED = "sure(?: thing)?|certainly|of course|absolutely|okay|ok|great question|good question"

# The number of a list item, a bullet or the sign of a heading: "1.", "b)", "-", "##", "Step 2:".
_MARKER = re.compile(
    r"(?:[-–—*•▪·‣]+|#+|\(?\d{1,3}[.)]|\(?(?:[a-z]|[ivx]{1,4})\)|step\s+\d{1,3}\s*[.:)-])(?:\s+|$)|\*\*(?=\S)",
    re.IGNORECASE,
)
# Words in front of a sentence, which is left whole behind them.
_LEAD_INS = (
    rf"(?:{_AGREED})\s*[,!.:] ",
    rf"(?:based (?:(?:solely|only) )?(?:up)?on|according to|as (?:stated|mentioned|described|noted) in|as per|from|in)"
    rf" {_SOURCE}\s*[,:] ",
    rf"{_HERE}[^.:!?\n]{{0,80}}: ",
    r"(?:in (?:summary|conclusion|short|brief)|to (?:summari[sz]e|conclude|sum up)|overall)\s*[,:] ",
    r"(?:please )?note that ",
    r"it(?:'s| is)(?: also)? (?:worth (?:noting|mentioning)|important to (?:note|mention|remember)) that ",
    r"(?:summary|answer|response|overview|note|conclusion)\s*: ",
    r"did you know(?: that)? ",
)
_LEAD_IN = _pattern(*_LEAD_INS)
# Whole sentences that say nothing about the subject.
_REMARK = _pattern(
    _AGREED,
    rf"{_HERE}{_REST}",
    rf"(?:the )?(?:(?:{_PLAIN}) )*(?:{_FORM}) (?:include|includes|are|is)(?: as follows| the following)?",
    rf"(?:(?:{_AGREED})\s*[,!] )?{_GLAD}",
    rf"(?:please )?{_LET_KNOW}",
    rf"(?:please )?{_FREE} {_TO_US}\b{_NO_MORE}",
    rf"if you(?:'d like| (?:have|need|want|would like|decide|believe|wish))\b[^,.!?;\n]*"
    rf"(?:, (?:such as|like|including)\b[^.!?;\n]*)?,\s*(?:please )?(?:just )?(?:{_OFFERED})",
    _HANDED_ON,
    rf"(?:could|can|would) you\b{_REST}\?",
    "(?:happy|glad) to help|no problem|my pleasure|we(?:'re| are) (?:always )?here to help",
    "(?:sorry|(?:i|we) apologi[sz]e|(?:my|our) apologies) for (?:the|any|this) "
    "(?:inconvenience|confusion|delay|trouble)(?: (?:this|that|it) (?:may|might) (?:have caused|cause))?",
    r"(?:i )?hope (?:this|that|it)(?: (?:information|answer|summary))? "
    r"(?:helps(?: you)?|(?:is|was) helpful|answers your question)",
    r"(?:thank you|thanks)(?: (?:so|very) much| a lot)?(?: for (?:asking|reaching out|sharing|waiting|your "
    r"(?:question|patience|time|interest|message|understanding)|the (?:question|information|context)))?",
    "you(?:'re| are) (?:very |most )?welcome",
    rf"(?:is there anything|do you have any(?: (?:other|more|further))? questions?)\b{_REST}",
    rf"(?:would you like me to|do you want me to|shall i|can i help|how (?:else )?(?:can|may) i help)\b{_REST}",
    "(?:have|enjoy) (?:a|your) (?:(?:great|nice|good|lovely|wonderful|safe|pleasant) )?"
    "(?:day|time|weekend|evening|trip|journey|flight|stay)",
    rf"(?:safe travels|take care|goodbye|bye)(?:\s*[,!] (?:and )?i hope\b{_NO_MORE})?",
    "(?:great|good|excellent) question|good luck|hello|hi(?: there)?|hey|greetings|good (?:morning|afternoon|evening)",
    r"(?:best|kind|warm) (?:regards|wishes)(?:\s*,\s*\w+(?: \w+)?)?|sincerely",
    after=r"\s*[.!?:,…)*]*",
)
_SORRY = r"i(?:'m| am) (?:sorry|afraid)|sorry|unfortunately|my apologies|i apologi[sz]e"
_UNABLE = (
    "cannot|can't|can not|could not|couldn't|(?:am|was) (?:unable|not able) to|'m (?:unable|not able) to|won't|will not"
)
_UNSAID = r"(?:(?!\b(?:but|however|although|though|yet|while)\b)[^.,;!?\n])*"
_APOLOGY = rf"(?:(?:{_SORRY})(?: about that)?\s*[,:]? (?:but )?)?"
_NOT_SAYING = (
    "(?:(?:does|do|did) not|(?:does|do|did)n't) (?:[a-z]+ly )?(?:mention|say|state|include|contain|provide|specify|"
    "give|describe|address|discuss|cover|answer|explain|indicate|have)"
)
_NOTHING_KNOWN = (
    "(?:any |enough |sufficient )?(?:[a-z]+ )?(?:(?:information|mention) (?:about|on|of|regarding|concerning|for|"
    rf"available|provided|given|in {_SOURCE})|(?:details?|answers?|references?) (?:about|regarding|concerning|to|"
    rf"in {_SOURCE}))"
)
_DECLINES = _pattern(
    rf"{_APOLOGY}(?:{'|'.join(_LEAD_INS)})?"
    r"(?:i (?:(?:do not|don't) (?:know|have (?:enough|any|sufficient|that|this|the|access|(?:[a-z]+ )?information))"
    rf"|(?:(?:{_UNABLE}) (?:answer|help|assist|provide|determine|find|tell|say|comply|do that|give|confirm))"
    rf"|am not sure)\b{_UNSAID}"
    rf"|i'm not sure\b{_UNSAID}"
    # "We" is often a shop or an office, whose "we cannot give refunds" is a claim.
    rf"|we (?:(?:do not|don't) know|(?:{_UNABLE}) (?:answer|determine|tell|say)|(?:(?:do not|don't) have|(?:{_UNABLE})"
    r" (?:find|provide|give))(?: (?!to\b)\w+){0,3} (?:information|details?|data|context|evidence|answers?))"
    rf"\b{_UNSAID})",
    rf"(?:i(?:'m| am) )?(?:unable|not able) to (?:answer|help|assist|provide|determine|find)\b{_REST}",
    rf"(?:{_SORRY})(?: about that)?",
    # What texts do not say is no claim about the subject; what else the sentence says would be one.
    rf"{_APOLOGY}{_SOURCE} {_NOT_SAYING}\b{_UNSAID}",
    rf"{_APOLOGY}(?:{'|'.join(_LEAD_INS)})?there (?:is|was|are|were) (?:no|not) {_NOTHING_KNOWN}\b{_UNSAID}",
    rf"(?:this|that|it|the answer) (?:is not|isn't|was not|wasn't) (?:mentioned|stated|specified|given|provided|"
    rf"covered|discussed) in {_SOURCE}",
    "no (?:answer|information)(?: (?:is |was )?(?:found|available|given))?",
    "(?:there (?:is|was) )?(?:not enough|insufficient) information(?: (?:to|for)\\b"
    rf"{_UNSAID})?|unanswerable",
    "(?:the )?answer (?:is )?(?:unknown|not (?:found|available|known|given))",
    "not (?:stated|mentioned|available)|unknown|n/?a",
    after=rf"(?: (?:in|from|based on|by|within) {_SOURCE})?\s*[.!…]*".replace(" ", r"\s+"),
)
_AROUND = " \t\r\n*_\"“”'`"


def without_marker(text: str, start: int) -> int:
    """Where an item's text begins behind its number or bullet.

    >>> text = "2) Bread"
    >>> text[without_marker(text, 0):]
    'Bread'
    """
    marker = _MARKER.match(text, start)
    return marker.end() if marker else start


def without_lead_in(text: str) -> int:
    """How many characters of a sentence announce what comes: the sentence behind them is left whole.

    >>> text = "Sure! Here is a concise summary: The film is from 2014."
    >>> text[without_lead_in(text):]
    'The film is from 2014.'
    """
    end = 0
    while (found := _LEAD_IN.match(text, end)) and any(sign.isalnum() for sign in text[found.end() :]):
        end = found.end()
    return end


def is_remark(text: str) -> bool:
    """Whether a sentence says nothing about the subject: an announcement, a courtesy, an offer of help.

    What states a number is a claim, unless it announces a list.

    >>> [is_remark(text) for text in ("Key points include:", "I hope this helps!", "The key is under the mat.")]
    [True, True, False]
    """
    bare = text.strip(_AROUND)
    announces = bare.endswith((":", "："))
    return bool(_REMARK.fullmatch(bare)) and (announces or not any(sign.isdigit() for sign in bare))


def declines(text: str) -> bool:
    """Whether a sentence declines to answer, so that it claims nothing about the subject.

    >>> [declines(text) for text in ("Unable to answer based on given passages.", "He did not know the way.")]
    [True, False]
    """
    return bool(_DECLINES.fullmatch(text.strip(_AROUND)))
