"""How AgentUnit is installed here, and the command that adds a part of it: the one place that words such hints."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

DISTRIBUTION = "agentunit-eval"
LOCAL_FOLDER = "packages/agentunit-local"
# The local models are packages of their own in the same checkout; the larger one needs the other.
_OWN_FOLDERS = {"local": (LOCAL_FOLDER,), "local-large": (LOCAL_FOLDER, "packages/agentunit-local-large")}


def install_command(extra: str) -> str:
    """The command that adds an extra here: from the checkout, repository or folder of wheels that AgentUnit came from.

    AgentUnit's own distributions are on no index, where anybody could register their names. So no command asks an
    index for them: where the origin is unknown, an extra is spelled out as the packages of others that it stands for.
    """
    folder = _checkout()
    if folder is not None:
        return _pip_install(*([str(folder / own) for own in _OWN_FOLDERS.get(extra, ())] or [f"{folder}[{extra}]"]))
    repository = _origin().repository
    if repository is not None:
        own = [f"{repository}#subdirectory={each}" for each in _OWN_FOLDERS.get(extra, ())]
        return _pip_install(*(own or [f"{DISTRIBUTION}[{extra}] @ {repository}"]))
    if extra in _OWN_FOLDERS:
        return _pip_install(*map(_wheel, _OWN_FOLDERS[extra]))
    return _pip_install(*(_requirements(extra) or [_wheel(DISTRIBUTION)]))


def reinstall_command() -> str:
    """The command that installs AgentUnit itself once more, with what the base install consists of."""
    place = _checkout() or _origin().repository or _wheel(DISTRIBUTION)
    return f"pip install --force-reinstall {_quoted(str(place))}"


def remote_install_command() -> str:
    """The command that installs AgentUnit and its local model on another machine: from a commit of a repository.

    Where no repository is known that has the commit, that is from wheels which ``wheels_command`` makes.
    """
    checkout = _checkout()
    repository = _origin().repository if checkout is None else _published(checkout)
    if repository is not None:
        return _pip_install(repository, f"{repository}#subdirectory={LOCAL_FOLDER}")
    return f"pip install {' '.join(f'wheels/{_wheel_name(each)}' for each in (DISTRIBUTION, LOCAL_FOLDER))}"


def wheels_command() -> str:
    """The command that puts the wheels of AgentUnit and its local model into the folder ``wheels``."""
    checkout = _checkout()
    if checkout is None:
        return f"mkdir -p wheels && cp {_quoted(_wheel(DISTRIBUTION))} {_quoted(_wheel(LOCAL_FOLDER))} wheels/"
    return f"pip wheel --no-deps --wheel-dir wheels {_quoted(str(checkout))} {_quoted(str(checkout / LOCAL_FOLDER))}"


def _pip_install(*targets: str) -> str:
    return f"pip install {' '.join(map(_quoted, targets))}"


def _quoted(target: str) -> str:
    return f'"{target}"' if set(target) & set("[ #@<>;") else target


def _wheel(own: str) -> str:
    """The wheel of one of our distributions: beside the installed one, else in a folder that the user knows."""
    folder = _origin().wheels
    found = sorted(folder.glob(_wheel_name(own))) if folder is not None else []
    return str(found[-1]) if found else f"FOLDER_OF_WHEELS/{_wheel_name(own)}"


def _wheel_name(own: str) -> str:
    return f"{own.rpartition('/')[2].replace('-', '_')}-*.whl"


def _requirements(extra: str) -> list[str]:
    """The requirements on packages of others that an extra stands for, as pip reads them."""
    found: list[str] = []
    for line in _declared():
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        ours = re.search(r"""extra\s*==\s*(['"])(.+?)\1""", marker)
        if ours is None or ours[2] != extra:
            continue
        own = re.fullmatch(rf"{DISTRIBUTION}\[(.+)\]", requirement)
        if own is not None:
            found += [each for name in own[1].split(",") for each in _requirements(name.strip())]
            continue
        condition = re.sub(r"\s*\band\s*$|^\s*and\b\s*", "", marker.replace(ours[0], "")).strip().strip("()")
        found.append(requirement + (f"; {condition}" if condition else "").replace('"', "'"))
    return found


@cache
def _checkout() -> Path | None:
    """The source folder that AgentUnit runs or was installed from, while it is still there."""
    beside = Path(__file__).resolve().parents[2]
    if _holds_local(beside):
        return beside
    stated = _origin().checkout
    return stated if stated is not None and _holds_local(stated) else None


def _published(checkout: Path) -> str | None:
    """A checkout's commit in the repository it was cloned from, as pip names it; ``None`` where it is not there."""
    import subprocess

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, text=True)
        except OSError:
            return ""
        return "" if done.returncode else done.stdout.strip()

    # pip does not read addresses like git@host:path; and no password may end up in a workflow.
    address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", git("remote", "get-url", "origin"))
    address = re.sub(r"^https://[^/@]*@", "https://", address)
    commit = git("rev-parse", "HEAD")
    is_there = address.startswith("https://") and git("branch", "--remotes", "--contains", commit)
    return f"git+{address}@{commit}" if is_there else None


def _holds_local(folder: Path) -> bool:
    return (folder / LOCAL_FOLDER / "pyproject.toml").is_file()


@cache
def _declared() -> list[str]:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        return requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return []


class _Origin(NamedTuple):
    checkout: Path | None = None
    repository: str | None = None
    wheels: Path | None = None


@cache
def _origin() -> _Origin:
    """What pip noted when it installed AgentUnit: a folder, a repository, or a wheel. An index is not noted."""
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        noted = distribution(DISTRIBUTION).read_text("direct_url.json")
        facts = msgspec.json.decode(noted) if noted else {}
        url = urlsplit(facts["url"])
        if "vcs_info" in facts:
            # The commit, not the branch that it was asked for by: that may have moved since.
            system, commit = facts["vcs_info"].get("vcs", "git"), facts["vcs_info"]["commit_id"]
            return _Origin(repository=f"{system}+{facts['url']}@{commit}")
    except (PackageNotFoundError, OSError, msgspec.DecodeError, AttributeError, KeyError, TypeError, ValueError):
        return _Origin()
    if url.scheme != "file":
        return _Origin()
    place = Path(url2pathname(url.path))
    return _Origin(checkout=place) if "dir_info" in facts else _Origin(wheels=place.parent)


def engine_problem(engine: object) -> str | None:
    """What is wrong with the name of an engine, or lacks here to use it; ``None`` when nothing is.

    >>> engine_problem("spark")
    "must be ray, or ray://HOST:PORT; received 'spark'"
    """
    if engine != "ray" and not (isinstance(engine, str) and engine.startswith("ray://") and engine != "ray://"):
        return f"must be ray, or ray://HOST:PORT; received {engine!r}"
    return f"needs the extra ray: {install_command('ray')}" if find_spec("ray") is None else None


def usable_processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
