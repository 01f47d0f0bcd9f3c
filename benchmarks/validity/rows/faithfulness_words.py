"""What the page says about faithfulness and hallucination rate, backend by backend."""

from __future__ import annotations

MEASURED = (
    "People read an answer or a summary beside its source and marked whether the source supports all of it. "
    "A good score is high where they found nothing made up. The sets cover summaries of news (FRANK, CLIFF), "
    "of news, meetings, sales mails and chats with small edits (SummEdits) and of passages that detectors "
    "find hard (FaithBench), dialogue (BEGIN), questions over retrieved passages (RAGTruth), claims from "
    "Wikipedia (WiCE) and biographies (FActScore). *Balanced accuracy* cuts the score at the threshold that the "
    "backend names for such a case (else at 0.5) and counts good and bad rows alike, so that one fixed answer gets "
    "0.5. *Response-level F1* is how well the same cut finds the answers with something made up."
)
CAN = {
    "lexical": ("The lexical backend finds context strings that the answer repeats word for word; that is all."),
    "local": (
        "The local model reads claim by claim and ranks answers: over a few hundred cases a difference in its "
        "mean is a difference in groundedness, and the claims it scores lowest are the ones to read first."
    ),
}
CANNOT = {
    "lexical": (
        "The lexical backend cannot tell a faithful answer from an invented one: real answers hardly ever repeat a "
        "whole passage, so nearly every score is 0 (hallucination rate: 1). It is informational. Counting shared "
        "words does better on answers that add foreign material, not on small edits of a true text (SummEdits)."
    ),
    "local": (
        "The local model cannot be trusted on one answer: of two answers it often prefers the wrong one, most of all "
        "where one small detail of a fluent summary is false (SummEdits, FaithBench). It knows nothing of the world "
        "beyond the context, and reads English. Beside results of tools in JSON it is weak. Large judges do better "
        "where they may be used."
    ),
}
SIGNS = {
    "▼": "▼ More than 0.02 below content-token precision on the same rows (left-out rows: on the whole set).",
    "‡": "‡ Rows of this set were in the backend's training: the figure says how well it learned, not how good it is. "
    "It is in no mean and in no trust figure; where there is a column of rows left out of training, that one counts.",
}
REMARKS = (
    "A claim that is only partly supported counts as unsupported (WiCE). Rows about the same source text are "
    "resampled together.",
    "The mean weighs every set alike and never pools them: pooled sets that differ in how often answers are "
    "faithful reward a score for recognizing the set.",
)
SINCE_MEASURED = (
    "Rows left out of training were scored with version 2 of the metrics, by a model that was trained without them; "
    "the shipped one was trained on all. Since version 3 claims are read and put together "
    "otherwise, and since version 6 both models were trained further (training/groundedness/README.md)."
)
AS_RATE = "Beyond the lexical backend the hallucination rate is 1 minus faithfulness, so that its figures are the same."
