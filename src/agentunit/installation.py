"""How AgentUnit is installed here, and the command that adds a part of it: the one place that words such hints."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

DISTRIBUTION = "agentunit-eval"
LOCAL_FOLDER = "packages/agentunit-local"
_LOCAL = "local"
# The local models are packages of their own in the same checkout, and on no index; the larger one needs the other.
_OWN_FOLDERS = {_LOCAL: (LOCAL_FOLDER,), "local-large": (LOCAL_FOLDER, "packages/agentunit-local-large")}


def install_command(extra: str) -> str:
    """The command that adds an extra here: from the checkout or repository that AgentUnit came from, else by name."""
    folder = _checkout()
    return _command(extra, folder, None if folder else _origin()[1])


def reinstall_command() -> str:
    """The command that installs AgentUnit itself once more."""
    folder = _checkout()
    return f"pip install --force-reinstall {_quoted(str(folder or _origin()[1] or DISTRIBUTION))}"


def remote_install_command() -> str:
    """The command that installs AgentUnit and its local model on another machine: from where it came, else by name."""
    repository = _origin()[1]
    local = _command(_LOCAL, None, repository)
    return local if repository is None else local.replace("pip install ", f"pip install {_quoted(repository)} ", 1)


def _command(extra: str, folder: Path | None, repository: str | None) -> str:
    if folder is not None:
        targets = [str(folder / own) for own in _OWN_FOLDERS.get(extra, ())] or [f"{folder}[{extra}]"]
        return f"pip install {' '.join(map(_quoted, targets))}"
    if repository is not None:
        targets = [f"{repository}#subdirectory={own}" for own in _OWN_FOLDERS.get(extra, ())]
        targets = targets or [f"{DISTRIBUTION}[{extra}] @ {repository}"]
        return f"pip install {' '.join(map(_quoted, targets))}"
    return f'pip install "{DISTRIBUTION}[{extra}]"'


def _quoted(target: str) -> str:
    return f'"{target}"' if set(target) & set("[ #@") else target


@cache
def _checkout() -> Path | None:
    """The source folder that AgentUnit runs or was installed from, while it is still there."""
    beside = Path(__file__).resolve().parents[2]
    if _holds_local(beside):
        return beside
    stated = _origin()[0]
    return stated if stated is not None and _holds_local(stated) else None


def _holds_local(folder: Path) -> bool:
    return (folder / LOCAL_FOLDER / "pyproject.toml").is_file()


@cache
def _origin() -> tuple[Path | None, str | None]:
    """What pip noted when it installed AgentUnit: a folder, or a repository."""
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit

    try:
        noted = distribution(DISTRIBUTION).read_text("direct_url.json")
        facts = msgspec.json.decode(noted) if noted else {}
        url = urlsplit(facts["url"])
    except (PackageNotFoundError, OSError, msgspec.DecodeError, AttributeError, KeyError, TypeError, ValueError):
        return None, None
    if "vcs_info" in facts:
        system, revision = facts["vcs_info"].get("vcs", "git"), facts["vcs_info"].get("requested_revision")
        return None, f"{system}+{facts['url']}" + (f"@{revision}" if revision else "")
    if url.scheme == "file" and "dir_info" in facts:
        from urllib.request import url2pathname

        return Path(url2pathname(url.path)), None
    return None, None
