"""What is fuzzed: each target makes an input, reads it, and says in a few words how that went.

A reader may refuse an input with the errors that it declares. Anything else that it raises is a crash, as is taking
longer or more memory than an input may. A new reader is one more ``Target`` here.
"""

from __future__ import annotations

import io
import json
import math
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from agentunit.core.codec import RecordError, decode_record, encode_record
from agentunit.core.records import Record
from benchmarks.torture.fuzz.mutate import mutated, shuffled_words
from benchmarks.torture.made_up import records

_REPOSITORY = Path(__file__).parents[3]
_CORPUS = _REPOSITORY / "tests" / "corpus"
_FOREIGN = _REPOSITORY / "tests" / "data" / "foreign"
_LONGEST_SEED = 12_000


@dataclass(frozen=True)
class Target:
    """``share`` is of all inputs: readers of files cost a hundred times what an expression does."""

    name: str
    share: float
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes], str]
    make: Callable[[random.Random, list[bytes]], bytes] = mutated


def _listed(words: str) -> list[str]:
    return words.split()


class Wrong(AssertionError):
    """An input was read, and what came out cannot be."""


# Files


def _file(name: str) -> Path:
    folder = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path.cwd()
    return folder / f"agentunit-fuzz-{os.getpid()}-{name}"


def _written(data: bytes, name: str) -> Path:
    path = _file(name)
    path.write_bytes(data)
    return path


def _corpus_seeds() -> list[bytes]:
    files = [each for each in sorted(_CORPUS.rglob("*")) if each.is_file() and each.suffix != ".py"]
    return [_cut(each) for each in files if not each.name.endswith(".expected.json")]


def _cut(file: Path) -> bytes:
    """A file that is not too long; of a long one its first lines."""
    data = file.read_bytes()
    if len(data) <= _LONGEST_SEED:
        return data
    whole = data[:_LONGEST_SEED].rpartition(b"\n")[0]
    return whole or data[:_LONGEST_SEED]


def _read_traces(data: bytes) -> str:
    from agentunit.traces.reading import TraceFiles

    return _seen(TraceFiles([_written(data, "traces.jsonl")]))


def _read_forced(data: bytes) -> str:
    """The format is told by the first byte, so that every reader gets what is not its own."""
    from agentunit.traces.formats import format_names
    from agentunit.traces.reading import TraceFiles

    names = sorted(format_names())
    name = names[data[0] % len(names)] if data else names[0]
    return f"{name}: {_seen(TraceFiles([_written(data, 'forced.jsonl')], format=name))}"


def _seen(read: Any) -> str:
    n_records, problems = 0, set()
    for each in read:
        if isinstance(each, Record):
            n_records += 1
            line = encode_record(each)
            if encode_record(decode_record(line)) != line:
                raise Wrong("a record is another after it was written and read")
        else:
            problems.add(type(each).__name__)
    return f"{min(n_records, 3)} records, {sorted(problems)}"


def _read_request(data: bytes) -> str:
    from agentunit.addons.watch.collector.request import decode_request, protobuf_installed

    kinds = ["application/json", *(["application/x-protobuf"] if protobuf_installed() else [])]
    kind = kinds[len(data) % len(kinds)]
    try:
        decoded = decode_request(kind, data)
    except ValueError as error:
        return type(error).__name__
    return f"{min(3, len(decoded.spans)) if hasattr(decoded, 'spans') else type(decoded).__name__}"


def _otlp_seeds() -> list[bytes]:
    return [
        _cut(each)
        for folder in ("otlp-json", "otlp-protobuf")
        for each in sorted((_CORPUS / folder).glob("*"))
        if each.suffix != ".py" and not each.name.endswith(".expected.json")
    ]


# The codec


def _record_seeds() -> list[bytes]:
    return [encode_record(each) for each in records(12)]


def _read_record(data: bytes) -> str:
    try:
        record = decode_record(data)
    except RecordError as error:
        return f"refused: {str(error)[:12]}"
    line = encode_record(record)
    if encode_record(decode_record(line)) != line:
        raise Wrong("a record is another after it was written and read")
    return f"{len(record.trace.events)} events, {type(record.outcome).__name__}"


@cache
def _metrics() -> list[Any]:
    from agentunit.metrics.registry import registry, resolve_metrics

    chosen = [each for each in registry.names() if each not in _LEFT_OUT]
    found = []
    for name in chosen:
        try:
            found += resolve_metrics([name])
        except Exception:  # noqa: BLE001 - one that needs what is not installed, or parameters
            continue
    return found


# They load models or look at media; the others see every record that the codec accepts.
_LEFT_OUT = {
    "cross_modal_grounding",
    "video_response_relevance",
    "image_caption_accuracy",
    "audio_transcription_quality",
}


def _score(data: bytes) -> str:
    from agentunit.engine.scoring.records import score

    try:
        record = decode_record(data)
    except RecordError:
        return "refused"
    states = []
    for scored in score([record], _metrics()):
        for name, each in sorted(scored.scores.items()):
            value = each.result.value
            if value is not None and not math.isfinite(value):
                raise Wrong(f"{name} is {value}")
            json.dumps(each.result.detail, default=str)
            states.append(each.status[0])
    return "".join(states)


# Expressions

_GATE_WORDS = _listed(
    """exact_match cost faithfulness[judge] pass^3 pass@2 p95 p50 mean all any min max total labeled rate >= <= == > <
    != 0.9 1 0 -1 1e9 nan inf 95% 0.5.5 ( ) [ ] and or not , : = >== metric $0.02 é 9999999999999999999 agreement
    judge_flips by metadata.category in \ud800"""
)


def _gate(data: bytes) -> str:
    from agentunit.engine.deciding.gate_expressions import GateError, parse_gate

    try:
        gate = parse_gate(_text(data))
    except GateError as error:
        return f"refused: {str(error)[-20:]}"
    if parse_gate(str(gate)) != gate:
        raise Wrong(f"the gate {str(gate)!r} is another when it is read again")
    return f"{gate.metric[:3]}"


def _filter(data: bytes) -> str:
    from agentunit.addons.viewer.filters import FilterError, parse_filter

    try:
        parse_filter(_text(data), ["exact_match", "cost"])
    except FilterError as error:
        return f"refused: {str(error)[:25]}"
    return "read"


_FILTER_WORDS = _listed(
    """exact_match cost failed passed id tag: metadata.a : = >= < 0.5 " ' ( ) and or not - text /x/ * \\ \ud800"""
)


def _from_words(words: list[str]) -> Callable[[random.Random, list[bytes]], bytes]:
    def make(chance: random.Random, seeds: list[bytes]) -> bytes:
        if chance.random() < 0.5:
            return mutated(chance, seeds)
        return shuffled_words(chance, words).encode("utf-8", "surrogatepass")

    return make


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


# The detector


def _detector_seeds() -> list[bytes]:
    texts = [
        "Write to ana.lopez@example.com or call +1 (555) 010-9999 before 5 pm.",
        "Card 4111 1111 1111 1111, SSN 123-45-6789, IBAN DE89 3704 0044 0532 0130 00.",
        "My name is Mia Li and I live at 12 Rue de Rivoli, 75001 Paris; born 1990-02-30.",
        "key sk-abcdefghijklmnopqrstuvwxyz012345 password: hunter2 AKIAIOSFODNN7EXAMPLE",
        "192.168.0.1 and 2001:db8::1 at https://user:pass@example.com/?token=abc",
        "ＭＡＩＬ ａ＠ｂ．ｃｏｍ m\u200bia@example.com mia (at) example (dot) com",
        "\u202eмосква улица Ленина 5 電話 03-1234-5678 \ud83d\ude00",
    ]
    return [each.encode("utf-8", "surrogatepass") for each in texts]


@cache
def _detector() -> Any:
    from agentunit.privacy.detectors import detector_named

    return detector_named("patterns", "fuzz")


def _detect(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    kinds = set()
    for finding in _detector().find([text])[0]:
        if not 0 <= finding.start < finding.end <= len(text):
            raise Wrong(f"a finding from {finding.start} to {finding.end} in a text of {len(text)}")
        kinds.add(str(getattr(finding, "type", "?")))
    return ",".join(sorted(kinds))


# Datasets, labels, other tools' tests, exported runs, judges


def _dataset_seeds() -> list[bytes]:
    return [
        b'{"id": "a", "query": "1 + 1", "expected_output": "2", "metadata": {"k": [1]}}\n{"id": "b", "query": "?"}\n',
        b'id,query,expected_output,tags\na,what?,this,"x,y"\nb,"long\nline",,\n',
        b"- id: a\n  query: what?\n  turns: [one, {query: two}]\n- {id: b, query: '?', context: [x]}\n",
        b'[{"id": 1, "question": "q", "answer": "a"}]',
        b"id\tquery\na\tb\n",
        b"cases: &x\n  - id: a\n    query: b\n  - *x\n",
        # As YAML, by their length: levels that end a parser which follows them.
        b"[" * 25_002,
        b"- " * 12_501,
    ]


def _load_dataset(data: bytes) -> str:
    from agentunit.datasets.readers import load_dataset
    from agentunit.datasets.rows import DatasetError

    suffix = (".jsonl", ".csv", ".yaml", ".json", ".tsv")[len(data) % 5]
    try:
        return f"{suffix} {min(3, len(load_dataset(_written(data, 'dataset' + suffix))))}"
    except DatasetError as error:
        return f"{suffix} refused: {str(error)[-15:]}"


def _foreign_seeds() -> list[bytes]:
    return [_cut(each) for each in sorted(_FOREIGN.rglob("*")) if each.suffix in (".json", ".jsonl", ".csv", ".yaml")]


def _read_foreign(data: bytes) -> str:
    from agentunit.addons.imports.foreign_tests import read_foreign
    from agentunit.datasets.rows import DatasetError

    suffix = (".json", ".jsonl", ".csv", ".yaml")[len(data) % 4]
    try:
        suite = read_foreign(_written(data, "foreign" + suffix))
    except DatasetError as error:
        return f"{suffix} refused: {str(error)[-15:]}"
    return f"{suffix} {min(3, len(suite.cases))}"


def _label_seeds() -> list[bytes]:
    return [
        b"id,label,rater\nc1,yes,ana\nc2,0.5,ben\n",
        b'{"case_id": "c1", "label": true}\n{"case_id": "c2", "label": 0, "note": "x"}\n',
        b'{"traceId": "t", "name": "correct", "value": 1, "dataType": "NUMERIC"}\n',
    ]


def _read_labels(data: bytes) -> str:
    from agentunit.addons.review.labeling.label_files import LabelsError, orient_labels, read_label_file

    suffix = (".csv", ".jsonl")[len(data) % 2]
    try:
        labels = read_label_file(str(_written(data, "labels" + suffix)))
        return f"{suffix} {min(3, len(orient_labels(labels, 'good')))}"
    except LabelsError as error:
        return f"{suffix} refused: {str(error)[-15:]}"


@cache
def _portable_seed() -> bytes:
    from agentunit.engine.scoring.rescoring import score_run
    from agentunit.store.portable import export_run
    from agentunit.store.sqlite import Store
    from benchmarks.torture.made_up import add_run

    file, out = _file("seed.db"), _file("seed.json")
    try:
        run_id = add_run(file, 3)
        with Store(file) as store:
            score_run(store, run_id, _metrics()[:3])
            export_run(store, run_id, out)
        return out.read_bytes()
    finally:
        for each in file.parent.glob(f"{file.name}*"):
            each.unlink()


def _read_portable(data: bytes) -> str:
    from agentunit.store.portable import read_portable
    from agentunit.store.schema import StoreError

    try:
        _, cases = read_portable(_written(data, "run.json"))
        return f"{len(list(cases))}"
    except (StoreError, RecordError) as error:
        return f"refused: {str(error)[-15:]}"


_REPLIES = [
    b'{"mark": "m1", "verdict": "yes", "score": 0.5, "claims": [{"n": 1, "supported": true}]}',
    b'Sure! ```json\n{"mark": "m1", "score": 4}\n``` done',
    b'<think>{"mark": "m1"}</think>{"mark": "m1", "score": 1,}',
]


def _read_reply(data: bytes) -> str:
    from agentunit.addons.judge.replies import own_object
    from agentunit.backends.asking import UnreadableReply

    try:
        return f"{sorted(map(str, own_object(_text(data), 'm1')))[:3]}"
    except UnreadableReply as error:
        return f"refused: {str(error)[:15]}"


# The command line

_VERBS = _listed(
    """init run score compare show label convert redact gate runs rerun promote export import metrics doctor validity
    scor --version"""
)
_ARGUMENTS = [
    *_listed(
        """records.jsonl dataset.csv suite.yaml last last~1 c1 nothing . - -- --json --help --metrics exact_match,cost
        --gate --out out.jsonl --to out.html --format junit --store other.db --jobs 2 0 -1 x --by metadata.k
        --expected --strict --max-errors 99999999999999999999 --from otlp-json --group-by session --tag a=b
        --name --repeats auto --set model=a,b --limit 1 --resume --seed --param cost.x=1 --backend lexical"""
    ),
    "exact_match >= 0.5",
    "",
    " ",
    "\udcff\udcfe",
    "a\n::error::x",
    "\x1b[31m",
    "\u202e",
    "é" * 300,
    "nowhere/../" * 40,
    "/dev/null",
    "postgresql://u:p@[::1",
    "s3://",
    "https://example.invalid/x",
]


def _make_arguments(chance: random.Random, seeds: list[bytes]) -> bytes:
    words = [chance.choice(_VERBS), *(chance.choice(_ARGUMENTS) for _ in range(chance.randrange(6)))]
    if chance.random() < 0.3:
        at = chance.randrange(len(words))
        words[at] = _text(mutated(chance, [words[at].encode("utf-8", "surrogateescape")])).replace("\0", "")[:2000]
    return json.dumps(words).encode()


def _here(word: str) -> str:
    """No place outside of the folder: reading a whole disk takes long, and that is no fault."""
    leads_away = (word.startswith(("/", "~")) and word != "/dev/null") or ".." in word.split("/")
    return word.replace("/", "_") if leads_away and not word.startswith("nowhere/") else word


def _command_line(data: bytes) -> str:
    """The whole command in this process. It must leave with one of its exit codes and say why in words of its own."""
    from agentunit.cli import main

    try:
        words = [_here(str(each).replace("\0", "")) for each in json.loads(data)]
    except (ValueError, TypeError):
        return "no arguments"
    if words and words[0] in ("view", "collect", "demo"):
        return "not asked"
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors="replace", write_through=True) for _ in range(2))
    before = sys.argv, sys.stdout, sys.stderr, sys.stdin
    folder = os.getcwd()
    try:
        sys.argv, sys.stdout, sys.stderr, sys.stdin = ["agentunit", *words], out, err, io.TextIOWrapper(io.BytesIO())
        code = main._run_verb()
    finally:
        sys.argv, sys.stdout, sys.stderr, sys.stdin = before
        os.chdir(folder)
    said = err.buffer.getvalue().decode()  # type: ignore[attr-defined]
    if code not in (0, 1, 2, 3, 4, 130, 141):
        raise Wrong(f"exit code {code}")
    if "AGENTUNIT_TRACEBACK" in said or "Traceback" in said:
        raise Wrong(said[-500:])
    for line in (*said.splitlines(), *out.buffer.getvalue().decode().splitlines()):  # type: ignore[attr-defined]
        if line.lstrip().startswith("::") or "\x1b" in line:
            raise Wrong(f"a line that a CI log or a terminal obeys: {line[:200]!r}")
    return f"{words[:1]} {code} {said[-15:]}"


def prepare_folder() -> None:
    """The files that command lines name."""
    from benchmarks.torture.made_up import add_run, write_records

    write_records(Path("records.jsonl"), 5)
    Path("dataset.csv").write_text("id,query,expected_output\nc1,what?,this\n")
    Path("suite.yaml").write_text("dataset: dataset.csv\nagent: agents:answer\nmetrics: [exact_match]\n")
    Path("agents.py").write_text("def answer(query, model=''):\n    return query\n")
    add_run(Path(".agentunit", "runs.db"), 5)


TARGETS = (
    Target("trace files, format told by content", 0.08, _corpus_seeds, _read_traces),
    Target("trace files, format forced", 0.06, _corpus_seeds, _read_forced),
    Target("OTLP requests", 0.20, _otlp_seeds, _read_request),
    Target("records (codec)", 0.25, _record_seeds, _read_record),
    Target("records scored by every metric", 0.01, _record_seeds, _score),
    Target(
        "gate expressions",
        0.15,
        lambda: [b"exact_match >= 0.9", b"cost p95 <= 0.02", b"faithfulness[judge] pass^3 >= 0.5"],
        _gate,
        _from_words(_GATE_WORDS),
    ),
    Target(
        "filters of the viewer",
        0.08,
        lambda: [b"exact_match < 0.5 and failed", b'id:"a b" or cost >= 1'],
        _filter,
        _from_words(_FILTER_WORDS),
    ),
    Target("detector of personal data", 0.04, _detector_seeds, _detect),
    Target("datasets", 0.04, _dataset_seeds, _load_dataset),
    Target("tests of other tools", 0.02, _foreign_seeds, _read_foreign),
    Target("files of labels", 0.02, _label_seeds, _read_labels),
    Target("exported runs", 0.02, lambda: [_portable_seed()], _read_portable),
    Target("replies of judges", 0.02, lambda: list(_REPLIES), _read_reply),
    Target("command lines", 0.01, lambda: [b"[]"], _command_line, _make_arguments),
)


def target_named(name: str) -> Target:
    return next(each for each in TARGETS if each.name == name)


def all_names() -> Iterator[str]:
    return (each.name for each in TARGETS)
