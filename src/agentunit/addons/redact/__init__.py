"""Records and spans with their personal data masked: the verb ``redact``, rules of the user, numbers of countries."""
