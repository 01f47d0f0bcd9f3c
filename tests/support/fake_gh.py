"""A ``gh`` that asks files instead of GitHub: what is tested with it is the shell of an action or a workflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# It has the real jq for --jq, and keeps comments, what it was asked, and main's artifact in files of $GH_FOLDER.
_SCRIPT = r"""#!/usr/bin/env bash
set -euo pipefail
printf '%s\n' "$*" >> "$GH_FOLDER/gh.log"
if [ "${GH_REFUSES:-}" = all ]; then echo "HTTP 403" >&2; exit 1; fi
comments="$GH_FOLDER/comments.json"
artifact="$GH_FOLDER/artifact/baseline.json"
case "$1 $2" in
  "run list") if [ -f "$artifact" ]; then echo 17; fi; exit 0 ;;
  "run download") cp "$artifact" "${!#}"; exit 0 ;;
esac
method=GET; body=""; filter=""; address=""
while [ $# -gt 0 ]; do
  case "$1" in
    api|--silent|--paginate) ;;
    --header) shift ;;
    --method) method="$2"; shift ;;
    --field) body="${2#body=@}"; shift ;;
    --jq) filter="$2"; shift ;;
    *) address="$1" ;;
  esac
  shift
done
if [[ "$address" == */contents/* ]]; then echo "HTTP 404" >&2; exit 1; fi
if [ "$method" != GET ] && [ "${GH_REFUSES:-}" = writing ]; then echo "HTTP 403" >&2; exit 1; fi
case "$method" in
  GET) jq --raw-output "$filter" "$comments" ;;
  POST) jq --rawfile body "$body" '. + [{id: (length + 1), user: {login: "github-actions[bot]"}, body: $body}]' \
          "$comments" > "$comments.new" && mv "$comments.new" "$comments" ;;
  PATCH) jq --rawfile body "$body" --argjson id "${address##*/}" 'map(if .id == $id then .body = $body else . end)' \
          "$comments" > "$comments.new" && mv "$comments.new" "$comments" ;;
esac
"""


class FakeGitHub:
    """The state of one repository, and the folder with the ``gh`` that asks it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = folder / "tools"
        self.tools.mkdir(parents=True)
        program = self.tools / "gh"
        program.write_text(_SCRIPT)
        program.chmod(0o755)
        self.artifact = folder / "artifact" / "baseline.json"
        self.artifact.parent.mkdir()
        self.comments_file = folder / "comments.json"
        self.comments_file.write_text("[]")
        self.log = folder / "gh.log"

    def comments(self) -> list[dict[str, Any]]:
        """What stands under the pull request."""
        return list(json.loads(self.comments_file.read_text()))
