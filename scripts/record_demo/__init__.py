"""The demo recording: the customer desk of an invented outdoor-gear shop, really run and recorded.

Run ``python -m scripts.record_demo`` from the repository root; it rewrites the bundled ``demo.jsonl.gz``.

What is real: five rule-based agents read each question, route it, search the help pages with a lexical
retriever, call tools over an in-memory database, and write an answer. Every event in the recording happened,
in that order.

What is simulated, plainly: there is no language model, the rules play its part. The clock is simulated and
seeded, so timestamps and latencies are plausible but were not measured. Tokens are counted as one per four
characters of the text that the rules read and wrote. The models ``summit-small`` and ``summit-large`` and
their prices are invented, and so are the shop, its customers, their e-mail addresses (example.com) and their
telephone numbers (555-01xx).

The desk fails for causes, as software does. These defects are kept on purpose:

- ``find_order`` matches an e-mail address by its local part, and the answer shows whose order it found.
- ``change_address`` reports success on a packed order whose label is printed; nobody reads its note.
- ``orders`` repeats the carrier's delivery note word for word, and gives out the number of a gift's buyer.
- ``orders`` falls back on the promised date when the carrier does not answer, and does not say so.
- Order numbers with the letter O for a zero are not recognised.
- ``returns`` counts the return window from the day of the order, not of the delivery.
- ``returns`` announces a refund because it was attempted, without looking whether it went through.
- ``returns`` assumes that every order has an item in it.
- ``returns`` takes a general question about returns for a request, and asks for an order number.
- ``advice`` adds a closing line written for an older help centre to short answers.
- ``advice`` hands work to ``orders`` although its role does not let it delegate.
- The retriever knows no synonyms, so that some questions are answered from the wrong page or sentence.
- ``triage`` splits questions at question marks only; what follows "and also" is lost.
"""
