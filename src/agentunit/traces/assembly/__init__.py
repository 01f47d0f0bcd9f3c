"""The spans of one trace become one record."""
