"""All tables of recognisers, each one pass over the texts."""

from __future__ import annotations

from agentunit.privacy.detection.accounts import ACCOUNTS
from agentunit.privacy.detection.assignments import ASSIGNMENTS
from agentunit.privacy.detection.contexts import CONTEXTS
from agentunit.privacy.detection.credentials import CREDENTIALS
from agentunit.privacy.detection.emails import EMAILS
from agentunit.privacy.detection.networks import NETWORKS
from agentunit.privacy.detection.numbers import NUMBERS

# A table with one row needs no second look to tell which row it was, and of numbers a text can have very many.
TABLES = (EMAILS, *((each,) for each in (*NUMBERS, *ACCOUNTS)), NETWORKS, CREDENTIALS, ASSIGNMENTS, CONTEXTS)
