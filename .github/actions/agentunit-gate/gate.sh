#!/usr/bin/env bash
# Runs the suite or scores the traces, and writes the report. The verdict is an output: the comment comes before the end.
set -euo pipefail

# The report goes onto the page of the job once, at the end.
page="${GITHUB_STEP_SUMMARY:-}"
unset GITHUB_STEP_SUMMARY

folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/agentunit-gate.XXXXXX")
report="$folder/report.md"
decide=()
choose=()
while IFS= read -r gate; do
  if [ -n "$gate" ]; then decide+=(--gate "$gate"); fi
done <<< "${GATE_GATES:-}"
if [ -n "${GATE_BASELINE:-}" ]; then decide+=(--baseline "$GATE_BASELINE"); fi
if [ -n "${GATE_UNSURE:-}" ]; then decide+=(--unsure "$GATE_UNSURE"); fi
if [ -n "${GATE_METRICS:-}" ]; then choose+=(--metrics "$GATE_METRICS"); fi

code=0
if [ -n "${GATE_SUITE:-}" ] && [ -z "${GATE_TRACES:-}" ]; then
  export AGENTUNIT_STORE="$folder/runs.db"
  agentunit run --yes ${choose[@]+"${choose[@]}"} ${decide[@]+"${decide[@]}"} -- "$GATE_SUITE" || code=$?
  run=last
elif [ -n "${GATE_TRACES:-}" ] && [ -z "${GATE_SUITE:-}" ]; then
  traces=()
  while IFS= read -r each; do
    if [ -n "$each" ]; then traces+=("$each"); fi
  done <<< "$GATE_TRACES"
  run="$folder/scores.parquet"
  agentunit score --out "$run" ${choose[@]+"${choose[@]}"} -- "${traces[@]}" || code=$?
  # What could not be scored counts: only a clean scoring is decided on.
  if [ "$code" -eq 0 ]; then agentunit show --gate stored ${decide[@]+"${decide[@]}"} -- "$run" || code=$?; fi
else
  echo "agentunit-gate: name a suite or traces, one of them" >&2
  code=2
fi

# The report says the same verdict; a run that never came to be has none.
agentunit export --to "$report" --format markdown ${decide[@]+"${decide[@]}"} -- "${run:-last}" > /dev/null 2>&1 || true
if [ ! -s "$report" ]; then
  printf '### agentunit\n\nNo report: the run ended with exit code %s. The log of the job says why.\n' "$code" > "$report"
fi
if [ -n "$page" ]; then cat "$report" >> "$page"; fi
{
  echo "exit-code=$code"
  echo "report=$report"
} >> "${GITHUB_OUTPUT:-/dev/stdout}"
