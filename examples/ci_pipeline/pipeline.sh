#!/usr/bin/env bash
# What a CI job does, in four commands. 'agentunit init --ci' writes the same as a workflow for GitHub Actions.
set -uo pipefail
cd "$(dirname "$0")"

# On main: run, and keep the run as the baseline.
VERSION=main agentunit run suite.py --name main > main.log || exit $?
agentunit export last --to baseline.json

# On the pull request: run, compare, and leave a comment and a JUnit file. The exit code is the verdict.
agentunit run suite.py --name pull-request --baseline baseline.json
verdict=$?
agentunit export last --to comment.md
agentunit export last --to junit.xml
exit $verdict
