"""Where the cases of a suite come from: a file, a list, or a function that makes one."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agentunit.core.case import DatasetCase, set_origin
from agentunit.core.records import LooseRecord, Record
from agentunit.core.results import json_fallback
from agentunit.datasets.rows import BadRow, CaseCollector, DatasetError, shown
from agentunit.datasets.structured import collect_json, collect_lines, collect_yaml
from agentunit.datasets.tables import collect_csv, collect_parquet, collect_tsv
from agentunit.traces.compressed import BROKEN_STREAM, ZstandardMissing, decompressed, describe_damage
from agentunit.traces.formats_base import cannot_be_read

__all__ = ["BadRow", "DatasetError", "fingerprint", "load_dataset"]

_FORMATS: dict[str, tuple[str, Callable[[io.BufferedIOBase, CaseCollector], None]]] = {
    ".jsonl": ("line", collect_lines),
    ".ndjson": ("line", collect_lines),
    ".json": ("item", collect_json),
    ".csv": ("line", collect_csv),
    ".tsv": ("line", collect_tsv),
    ".yaml": ("line", collect_yaml),
    ".yml": ("line", collect_yaml),
    ".parquet": ("row", collect_parquet),
}
_COMPRESSED = (".gz", ".zst")


def load_dataset(source: Any, *, folder: str | os.PathLike[str] = ".") -> list[DatasetCase]:
    """The cases of a dataset, each with an id of its own; anything that is wrong with it raises ``DatasetError``.

    ``source`` is a file (JSONL, JSON, CSV, TSV, YAML, Parquet; also ``.gz`` and ``.zst``; relative to ``folder``), a
    list or iterable of cases or dicts, or a function that returns one of these. A case without an id is called
    ``case-N`` by its position, counted from 1.

    >>> [case.id for case in load_dataset([{"query": "2 + 2?"}, {"id": "capital", "question": "Capital of France?"}])]
    ['case-1', 'capital']
    """
    if isinstance(source, (str, os.PathLike)):
        return _of_file(Path(folder) / os.path.expanduser(source))
    if isinstance(source, Mapping) and isinstance(source.get("cases"), (list, tuple)):
        return _of_items(source["cases"], "dataset")
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes)):
        return _of_items(source, "dataset")
    if callable(source):
        return _of_function(source, folder)
    raise DatasetError(
        "load_dataset: source must be a file, a list of cases or a function that returns one; "
        f"received {type(source).__name__}"
    )


def fingerprint(cases: Iterable[DatasetCase]) -> str:
    """A hash of what the cases say, in their order: equal for equal datasets, in every process.

    The order of the names within an object does not count; functions count by their name, other objects by their type.

    >>> one, two = DatasetCase("a", "2 + 2?"), DatasetCase("b", "3 + 3?")
    >>> fingerprint([one, two]) == fingerprint([one, two]), fingerprint([one, two]) == fingerprint([two, one])
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    for case in cases:
        try:
            line = _stable_encoder.encode(case)
        except (TypeError, UnicodeEncodeError):
            line = _encode_odd(case)
        except RecursionError:
            raise DatasetError(f"case {shown(case.id)}: its values are nested too deeply") from None
        digest.update(line)
        digest.update(b"\n")
    return digest.hexdigest()


def _of_file(path: Path) -> list[DatasetCase]:
    unit, collect = _format_of(path)
    cases = CaseCollector(str(path), unit)
    try:
        with open(path, "rb") as raw:
            collect(decompressed(raw), cases)
    except BROKEN_STREAM as error:
        cases.refuse(None, describe_damage(error, ""))
    except ZstandardMissing as error:
        cases.refuse(None, str(error))
    except OSError as error:
        cases.refuse(None, _spoken(error, path))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # a hostile file must end as a sentence about it
        cases.refuse(None, cannot_be_read(error))
    read = cases.finish()
    folder = str(path.absolute().parent)
    for case in read:
        set_origin(case, folder)
    return read


def _format_of(path: Path) -> tuple[str, Callable[[io.BufferedIOBase, CaseCollector], None]]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _FORMATS:
        return _FORMATS[suffix]
    if path.is_dir() or not path.exists():
        raise DatasetError(f"{path}: {'is a folder, not a file' if path.is_dir() else 'no such file'}")
    hint = "; a spreadsheet can be saved as CSV" if suffix in (".xls", ".xlsx", ".ods") else ""
    raise DatasetError(f"{path}: a dataset's name must end in {', '.join(_FORMATS)} (also .gz, .zst){hint}")


def _of_function(make: Callable[[], Any], folder: str | os.PathLike[str]) -> list[DatasetCase]:
    name = getattr(make, "__qualname__", type(make).__qualname__)
    try:
        made = make()
    except Exception as error:
        raise DatasetError(f"the dataset function {name} failed: {type(error).__name__}: {error}") from error
    if callable(made) or made is None:
        raise DatasetError(f"the dataset function {name} must return a list of cases; received {type(made).__name__}")
    return load_dataset(made, folder=folder)


def _of_items(items: Iterable[Any], source: str) -> list[DatasetCase]:
    cases = CaseCollector(source, "item")
    number = 0
    try:
        for number, item in enumerate(items, 1):
            is_recorded = isinstance(item, (Record, LooseRecord))
            case = item.case if is_recorded else item
            if is_recorded and isinstance(case, DatasetCase) and (case.turns, case.user) != (None, None):
                # Fields of these names may be facts of another dataset's own.
                case = msgspec.to_builtins(case, enc_hook=json_fallback)
                case = {**(case.pop("__extra__", None) or {}), **case}
            if isinstance(case, DatasetCase):
                cases.add(number, case)
            else:
                cases.add_fields(number, case)
    except Exception as error:
        raise DatasetError(f"{source}: failed after item {number}: {type(error).__name__}: {error}") from error
    return cases.finish()


def _spoken(error: OSError, path: Path) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    return "is a folder, not a file" if path.is_dir() else (error.strerror or str(error)).lower()


def _stable_stand_in(value: Any) -> Any:
    """What stands for an object that JSON does not know. Its text may name its address, which no two runs share."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return getattr(value, "__qualname__", type(value).__qualname__)


_stable_encoder = msgspec.json.Encoder(enc_hook=_stable_stand_in, order="deterministic")


def _encode_odd(case: DatasetCase) -> bytes:
    """What the fast encoder refuses: names that are no texts, sets of several kinds, halves of surrogate pairs."""
    return json.dumps(_in_stable_order(msgspec.structs.asdict(case))).encode()


def _in_stable_order(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        pairs = ([_in_stable_order(key), _in_stable_order(each)] for key, each in value.items())
        return {"object": sorted(pairs, key=json.dumps)}
    if isinstance(value, (set, frozenset)):
        return sorted((_in_stable_order(each) for each in value), key=json.dumps)
    if isinstance(value, (list, tuple)):
        return [_in_stable_order(each) for each in value]
    try:
        return msgspec.json.decode(_stable_encoder.encode(value))
    except (TypeError, UnicodeEncodeError):
        return _stable_stand_in(value)
