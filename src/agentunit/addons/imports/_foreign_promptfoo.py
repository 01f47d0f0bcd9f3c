"""promptfoo configurations: prompts, variables and tests as cases. Nothing in them is run."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

from agentunit.addons.imports._foreign_assertions import Assertions, assertion_of_cell
from agentunit.addons.imports.foreign_tests import CODE, ForeignSuite, load_cases, read_document
from agentunit.datasets.row_fields import asked
from agentunit.datasets.rows import DatasetError
from agentunit.datasets.structured import plain_yaml
from agentunit.traces.limits import item_too_long, limit_of, raised_by, read_limits

# Templates by plain substitution: names become values, and nothing is ever run.

_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.\[\]]*)\s*-?\}\}")


class Room:
    """How much text may still come of templates; one for a whole file, whose variables may name each other."""

    def __init__(self, file: str = "dataset") -> None:
        self._file = file
        self._left = read_limits().item_bytes

    def take(self, text: str) -> str:
        """The text, if there is room for it; ``DatasetError`` if not."""
        self._left -= len(text)
        if self._left < 0:
            raise DatasetError(f"{self._file}: {item_too_long('what the variables of its templates become')}")
        return text


def fill(value: Any, variables: Mapping[str, Any], room: Room | None = None) -> Any:
    """Plain substitution of ``{{name}}`` and ``{{name.field}}``; whatever else a template says stays as it is.

    >>> fill("{{ q }} for {{who.name}}, {{ q | upper }}", {"q": "Hi", "who": {"name": "Ann"}})
    'Hi for Ann, {{ q | upper }}'
    """
    room = room or Room()
    if isinstance(value, list):
        return [fill(each, variables, room) for each in value]
    if isinstance(value, Mapping):
        return {name: fill(each, variables, room) for name, each in value.items()}
    if not isinstance(value, str) or "{{" not in value:
        return value

    def filled(match: re.Match[str]) -> str:
        found: Any = variables
        for step in re.findall(r"\w+", match[1]):
            if isinstance(found, Mapping) and step in found:
                found = found[step]
            elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            else:
                return match[0]
        return room.take(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False))

    return _VARIABLE.sub(filled, value)


def variables_of(template: str) -> set[str]:
    """The variables that a template shows.

    >>> sorted(variables_of("{{ shop }}: {{order.id}} {{ x | upper }}"))
    ['order', 'shop']
    """
    return {match.split(".")[0].split("[")[0] for match in _VARIABLE.findall(template)}


def without_comments(template: str) -> str:
    """A template without its ``{# … #}``."""
    first, *others = template.split("{#")
    # One that does not end is no comment.
    return first + "".join(rest.partition("#}")[2] if "#}" in rest else "{#" + rest for rest in others)


def chat_of(text: str) -> Any:
    """A prompt that lists messages, as JSON or YAML, is a conversation."""
    if not text.startswith(("[", "- role:")):
        return text
    try:
        found = json.loads(text) if text.startswith("[") else plain_yaml(text.encode())
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, list) and found else text


_FILE = "file://"
_CASES_VARIABLE = "AGENTUNIT_MAX_CASES"
_MOST_OF_A_TEST = 10_000
_TEXTS = (".txt", ".md", ".j2", ".html", ".xml", ".sql")
_DATA = (".json", ".yaml", ".yml", ".jsonl", ".csv")
# What an assertion reads: the names in a template, and in code that is not run.
_READ_BY_GRADERS = re.compile(r"(?:\{\{|vars)([^}]{0,200})")
# Settings that say how promptfoo runs, not what is tested.
_SETTINGS = frozenset(
    [
        *("$schema", "description", "env", "evaluateOptions", "commandLineOptions", "outputPath", "sharing", "tags"),
        *("prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "assertionTemplates"),
        *("metadata", "writeLatestResults", "tracing"),
    ]
)
_TEST_SETTINGS = frozenset(
    ["vars", "assert", "description", "metadata", "options", "provider", "providers", "prompts", "config", "path"]
)


def read_promptfoo(content: Any, file: Path) -> ForeignSuite:
    """The cases of a configuration, of a list of tests, or of a table with a column ``__expected``."""
    return _ConfigReader(file).read(content if isinstance(content, Mapping) else {"tests": content})


class _ConfigReader:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._folder = file.absolute().parent.resolve()
        self._suite = ForeignSuite("promptfoo")
        self._unmapped: Counter[str] = self._suite.unmapped
        self._assertions = Assertions()
        self._assertions.unmapped = self._unmapped
        self._templates: Mapping[str, Any] = {}
        self._room = Room(str(file))

    def read(self, config: Mapping[str, Any]) -> ForeignSuite:
        for name in config.keys() - _SETTINGS:
            if not str(name).startswith("x-"):
                self._unmapped[f"setting {name}"] += 1
        self._templates = _mapping(config.get("assertionTemplates"))
        default = self._test(config.get("defaultTest")) or {}
        prompts = list(self._prompts(config.get("prompts")))
        tests = list(self._tests(config.get("tests")))
        for scenario in _items(config.get("scenarios")):
            tests += self._scenario(scenario)
        if not tests and not {"tests", "scenarios", "redteam"} & config.keys():
            tests = [{}]
        cases: list[dict[str, Any]] = []
        most = read_limits().cases
        for number, test in enumerate(tests, 1):
            for case in self._cases(number, _merged(default, test), prompts):
                cases.append(case)
                if len(cases) > most:
                    problem = "its prompts and variables make more cases than a dataset may hold"
                    raise DatasetError(f"{self._file}: {problem} ({raised_by(_CASES_VARIABLE)})")
        suite = self._suite
        suite.metrics, suite.gates, suite.asks_judge = self._assertions.finish()
        suite.became = self._assertions.became
        for case in cases:
            if case["metadata"].get("assertions") == []:
                del case["metadata"]["assertions"]
        suite.cases = load_cases(cases, self._file)
        suite.metrics = suite.metrics or ["response_time"]
        return suite

    def _cases(self, number: int, test: Mapping[str, Any], prompts: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
        options = _mapping(test.get("options"))
        for name in test.keys() - _TEST_SETTINGS:
            if test[name] is not None:
                self._unmapped[f"{name} of a test"] += 1
        if options.get("transformVars"):
            self._unmapped["transformVars"] += 1
        transformed = any(options.get(name) for name in ("transform", "postprocess"))
        own_rubric = {"rubricPrompt": options["rubricPrompt"]} if options.get("rubricPrompt") else {}
        wanted = [str(each) for each in _items(test.get("prompts"))]
        chosen = [each for each in prompts if each[0] in wanted] or prompts
        combinations = self._combinations(number, self._variables(test.get("vars")), options, len(chosen) or 1)
        asserts = [self._assertion(each) for each in _items(test.get("assert"))]
        asserts = [{**own_rubric, **each} if isinstance(each, Mapping) else each for each in asserts]
        graded = set(re.findall(r"\w+", " ".join(_READ_BY_GRADERS.findall(json.dumps(asserts, default=str)))))
        for n_prompt, (label, template) in enumerate(chosen or [("", "")], 1):
            for n_vars, variables in enumerate(combinations, 1):
                parts = [f"test-{number}"]
                parts += [f"vars-{n_vars}"] if len(combinations) > 1 else []
                parts += [f"prompt-{n_prompt}"] if len(chosen) > 1 else []
                text = f"{options.get('prefix', '')}{template}{options.get('suffix', '')}" if template else ""
                case = self._case("/".join(parts), text, variables, graded)
                metadata = {**_mapping(test.get("metadata")), **case["metadata"]}
                if test.get("description"):
                    metadata["description"] = str(test["description"])
                if len(chosen) > 1:
                    metadata["prompt"] = label
                case["metadata"] = metadata
                rendered = [self._rendered_assertion(each, variables) for each in asserts]
                self._assertions.add(rendered, case, transformed=transformed)
                yield case

    def _case(self, case_id: str, template: str, variables: Mapping[str, Any], graded: set[str]) -> dict[str, Any]:
        case: dict[str, Any] = {"id": case_id, "metadata": {}}
        shown = variables_of(template)
        if template:
            text = str(fill(without_comments(template), variables, self._room))
            if "{{" in text or "{%" in text:
                self._unmapped["template in a prompt that plain substitution does not fill"] += 1
            query, rest = asked(chat_of(text.strip()))
        else:
            query, rest = asked(dict(variables)) if variables else ("", {})
            rest.pop("inputs", None)
        case["query"] = query
        case["metadata"].update(rest)
        for name, value in variables.items():
            # What the prompt does not show and an assertion reads is an answer key; agents do not receive it.
            hidden = name not in shown and (name in graded or name.lower().startswith("expected"))
            case["metadata"].setdefault("expected_vars" if hidden else "vars", {})[name] = value
        context = variables.get("context")
        if isinstance(context, str) or (isinstance(context, list) and all(isinstance(each, str) for each in context)):
            case["context"] = context
        return case

    def _rendered_assertion(self, assertion: Any, variables: Mapping[str, Any]) -> Any:
        if not isinstance(assertion, Mapping):
            return assertion
        made = dict(assertion)
        if isinstance(made.get("assert"), list):
            made["assert"] = [self._rendered_assertion(each, variables) for each in made["assert"]]
        if "value" in made:
            made["value"] = fill(made["value"], variables, self._room)
        return made

    def _assertion(self, assertion: Any) -> Any:
        """An assertion with its template, and with the file that its value names, where that is data."""
        if isinstance(assertion, Mapping) and isinstance(assertion.get("$ref"), str):
            template = _mapping(self._templates.get(assertion["$ref"].rpartition("/")[2]))
            assertion = {**template, **{name: value for name, value in assertion.items() if name != "$ref"}}
        if not isinstance(assertion, Mapping):
            return assertion
        value = assertion.get("value")
        if isinstance(value, str) and value.startswith(_FILE) and (file := self._file_named(value, *_TEXTS, *_DATA)):
            return {**assertion, "value": self._document(file) if file.suffix in _DATA else self._text(file)}
        return assertion

    def _prompts(self, given: Any) -> Iterator[tuple[str, str]]:
        """Each prompt's label and text; one that is code, or cannot be read, is counted."""
        for prompt in _items(given):
            label, text = "", prompt
            if isinstance(prompt, Mapping):
                text = prompt.get("raw") or prompt.get("file") or prompt.get("id") or ""
                label = str(prompt.get("label") or prompt.get("id") or "")
                if isinstance(text, (list, Mapping)):
                    text = json.dumps(text, ensure_ascii=False)
            text = str(text)
            suffix = Path(text.partition(_FILE)[2] or text).suffix.partition(":")[0]
            named = text.startswith(_FILE) or (
                "\n" not in text and "{{" not in text and suffix in (*_TEXTS, *_DATA, *CODE)
            )
            if not named:
                yield label or text[:80], text
                continue
            known = [file for file in self._files(text) if file.suffix in (*_TEXTS, ".json", ".yaml", ".yml")]
            read = [(file, found) for file in known if (found := self._text(file)) is not None]
            if not read:
                self._unmapped[f"prompt {text[:60]}"] += 1
            for file, found in read:
                pieces = re.split(r"(?m)^---\s*$", found) if file.suffix == ".txt" else [found]
                for piece in pieces:
                    if piece.strip():
                        yield label or text, piece.strip()

    def _tests(self, given: Any) -> Iterator[Mapping[str, Any]]:
        if isinstance(given, Mapping):
            given = given.get("path") or [given]
        for test in _items(given):
            if isinstance(test, Mapping) and isinstance(test.get("path"), str) and "vars" not in test:
                test = test["path"]
            if isinstance(test, str):
                found = [file for file in self._files(test) if file.suffix in _DATA]
                if not found:
                    self._unmapped[f"tests of {test[:60]}"] += 1
                for file in found:
                    listed = map(self._listed_test, _items(self._document(file)))
                    yield from (each for each in listed if each is not None)
            elif (single := self._listed_test(test)) is not None:
                yield single

    def _listed_test(self, given: Any) -> Mapping[str, Any] | None:
        """A test in a list of tests; what is none there makes no case and is counted."""
        test = self._test(given)
        if test is None:
            self._unmapped["test that is not an object"] += 1
        elif not isinstance(test.get("vars"), (Mapping, str, type(None))):
            self._unmapped["variables that are not an object"] += 1
        return test

    def _test(self, given: Any) -> Mapping[str, Any] | None:
        """A test; a row of a table is one, whose columns are its variables."""
        given = self._data(given, "test")
        if not isinstance(given, Mapping):
            return None
        if given and not {"vars", "assert", "options", "description", "metadata", "provider"} & given.keys():
            return _of_row(given, self._unmapped) if all(isinstance(name, str) for name in given) else None
        return given

    def _scenario(self, scenario: Any) -> Iterator[Mapping[str, Any]]:
        scenario = self._test(scenario) if isinstance(scenario, str) else scenario
        if not isinstance(scenario, Mapping):
            self._unmapped["scenario that is not an object"] += 1
            return
        configs, tests = _items(scenario.get("config")), _items(scenario.get("tests"))
        for config in list(self._tests(configs)) if configs else [{}]:
            for test in list(self._tests(tests)) if tests else [{}]:
                yield _merged(config, test)

    def _variables(self, given: Any) -> dict[str, Any]:
        given = _mapping(self._data(given, "variables"))
        return {str(name): self._variable(value) for name, value in given.items()}

    def _combinations(
        self, number: int, variables: Mapping[str, Any], options: Mapping[str, Any], n_prompts: int
    ) -> list[dict[str, Any]]:
        """A variable that is a list stands for one test a value."""
        if options.get("disableVarExpansion"):
            return [dict(fill(variables, variables, self._room))]
        lists = [value if isinstance(value, list) and value else [value] for value in variables.values()]
        n_cases = n_prompts * prod(map(len, lists))
        if n_cases > limit_of(_CASES_VARIABLE, _MOST_OF_A_TEST):
            raise DatasetError(
                f"{self._file}: test {number}: its prompts and lists of variables make {n_cases:,} cases, more than "
                f"one test may ({raised_by(_CASES_VARIABLE)})"
            )
        chosen = [dict(zip(variables, values, strict=True)) for values in itertools.product(*lists)]
        # A variable may name others.
        return [dict(fill(each, each, self._room)) for each in chosen]

    def _variable(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith(_FILE):
            return value
        file = self._file_named(value, *_TEXTS, *_DATA)
        text = None if file is None else self._text(file)
        if text is None:
            self._unmapped[f"variable of {value[:60]}"] += 1
        return value if text is None else text.strip()

    def _files(self, name: str) -> list[Path]:
        """The files that a name stands for: beside the configuration or below it, nowhere else."""
        if "://" in name and not name.startswith(_FILE):
            return []
        path = re.sub(r":[A-Za-z_]\w*$", "", name.removeprefix(_FILE)).removeprefix("./")
        if not path or Path(path).is_absolute() or ".." in Path(path).parts or "{{" in path:
            return []
        try:
            found = sorted(self._folder.glob(path)) if any(each in path for each in "*?[") else [self._folder / path]
            return [each for each in found if each.is_file() and self._folder in each.resolve().parents]
        except (OSError, ValueError):
            return []

    def _file_named(self, name: str, *suffixes: str) -> Path | None:
        """The first file that a name stands for, if it is of one of these kinds."""
        found = self._files(name)
        return found[0] if found and found[0].suffix in suffixes else None

    def _data(self, given: Any, what: str) -> Any:
        """What the configuration holds, or, where it names a file, what is in there."""
        if not isinstance(given, str):
            return given
        file = self._file_named(given, *_DATA)
        found = None if file is None else self._document(file)
        if found is None:
            self._unmapped[f"{what} in a file that cannot be read"] += 1
        return found

    def _document(self, file: Path) -> Any:
        try:
            return read_document(file)
        except DatasetError as error:
            self._unmapped[f"file that cannot be read ({error})"] += 1
            return None

    def _text(self, file: Path) -> str | None:
        try:
            if file.stat().st_size > read_limits().item_bytes:
                return None
            return file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeError):
            return None


def _of_row(row: Mapping[str, Any], unmapped: Counter[str]) -> dict[str, Any]:
    test: dict[str, Any] = {"vars": {}, "assert": [], "options": {}, "metadata": {}}
    for column, cell in row.items():
        name = column.strip()
        if not name.startswith("__"):
            test["vars"][name] = cell
        elif not isinstance(cell, str) or not cell.strip():
            continue
        elif name.startswith("__expected"):
            test["assert"].append(assertion_of_cell(cell.strip()))
        elif name in ("__prefix", "__suffix"):
            test["options"][name[2:]] = cell
        elif name == "__description":
            test["description"] = cell
        elif name.startswith("__metadata:"):
            test["metadata"][name.partition(":")[2].removesuffix("[]")] = cell
        elif name != "__metric":
            unmapped[f"column {name}"] += 1
    return test


def _merged(default: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**default, **test}
    for name in ("vars", "options", "metadata"):
        if isinstance(test.get(name), str):
            continue
        merged[name] = {**_mapping(default.get(name)), **_mapping(test.get(name))}
    keeps_default = not _mapping(test.get("options")).get("disableDefaultAsserts")
    merged["assert"] = [*(_items(default.get("assert")) if keeps_default else []), *_items(test.get("assert"))]
    return merged


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
