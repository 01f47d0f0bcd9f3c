"""What kind of answer is judged: each kind has a threshold of its own for yes or no."""

from __future__ import annotations

from agentunit_local.grounding.segments import split_sentences, words_of

SUMMARY, CLAIM, ANSWER, REPLY = "summary", "claim", "question answering", "dialogue"
KINDS = SUMMARY, CLAIM, ANSWER, REPLY
_FIRST_PERSON = "i i'm i've i'd i'll im me my mine we we're we've our us"
_OF_ONESELF = frozenset(_FIRST_PERSON.split())


def kind_of(question: str | None, n_claims: int) -> str:
    """The kind of an answer, by what was asked and how much was said.

    Without a question, several claims are a summary and one is a claim. With one, it is a reply in a dialogue where
    the question is talk (of oneself, or of several sentences), else an answer to a question.

    >>> kind_of(None, 1), kind_of("When did it sink?", 1), kind_of("I love that film. It is so sad", 1)
    ('claim', 'question answering', 'dialogue')
    """
    if not question or not question.strip():
        return CLAIM if n_claims == 1 else SUMMARY
    said = {word.lower().replace("’", "'") for word in words_of(question)}
    return REPLY if said & _OF_ONESELF or len(split_sentences(question)) > 1 else ANSWER
