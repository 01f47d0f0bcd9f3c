#!/usr/bin/env bash
# Writes the report as a comment on the pull request, or brings the comment of an earlier run up to date.
# A comment that cannot be written is a warning: the verdict does not depend on it.
set -euo pipefail

warn() {
  echo "::warning title=agentunit-gate::$1"
  exit 0
}

number=$(jq --raw-output '.pull_request.number // empty' "$GITHUB_EVENT_PATH")
if [ -z "$number" ]; then
  echo "not a pull request: no comment"
  exit 0
fi
if [[ ! "$number" =~ ^[0-9]+$ ]]; then warn "the event names no number of a pull request"; fi

# The mark may hold nothing that ends it.
name=$(printf '%s' "$GATE_NAME" | tr -c 'A-Za-z0-9_./-' '-' | cut -c 1-100)
export GATE_MARK="<!-- agentunit-gate: $name -->"
body=$(mktemp "${RUNNER_TEMP:-/tmp}/agentunit-comment.XXXXXX")
{
  printf '%s\n' "$GATE_MARK"
  cat "$GATE_REPORT"
} > "$body"

# Only a comment of our own account: a stranger's with the same mark stays what it is.
comments="repos/$GITHUB_REPOSITORY/issues/$number/comments"
found=$(gh api --paginate "$comments?per_page=100" \
  --jq '.[] | select(.user.login == env.GATE_AUTHOR and (.body | startswith(env.GATE_MARK))) | .id') ||
  warn "the comments of the pull request cannot be read; the report is on the page of the job"
id=$(printf '%s\n' "$found" | head -n 1)
if [ -n "$id" ]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" --field "body=@$body" ||
    warn "comment $id cannot be updated; the report is on the page of the job"
  echo "comment $id is up to date"
else
  gh api --silent --method POST "$comments" --field "body=@$body" ||
    warn "the token may not comment (a pull request from a fork?); the report is on the page of the job"
  echo "commented on pull request $number"
fi
