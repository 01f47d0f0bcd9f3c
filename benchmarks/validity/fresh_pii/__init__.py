"""Fresh labeled text for measuring personal-data detectors; see the README beside this file."""

from benchmarks.validity.fresh_pii.generate import SPAN_TYPES, Template, load_templates, rows

__all__ = ["SPAN_TYPES", "Template", "load_templates", "rows"]
