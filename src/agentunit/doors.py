"""What other rooms ask of add-ons, by name: the one place that says where in ``addons/`` it is.

Nothing else of AgentUnit imports an add-on. Metrics, backends, trace formats, reporters, commands, stores and detectors
come in by tables that other packages add to (``plugins.PluginTable``); what only AgentUnit's own commands ask for is
listed here. A row costs nothing until it is asked for.
"""

from __future__ import annotations

from typing import Any

from agentunit.plugins import import_target

_PARTS: dict[str, str] = {
    "alert_target": "watch.alerting:AlertTarget",
    "ask_about_pairs": "judge.win_rate:ask_about_pairs",
    "asking": "judge.questions:Asking",
    "check_table_output": "scale.table_output:check_table_output",
    "checked_audio": "media.speech:checked_audio",
    "clear_judge_cache": "judge.cache:clear_cache",
    "clip_label": "media.clip.loading:clip_label",
    "clip_unready": "media.clip.loading:clip_unready",
    "configure_judge": "judge.settings:configure_judge",
    "discard_job": "scale.parallel.folder:discard_job",
    "encode_atif": "formats.coding.atif_writer:encode_atif",
    "encode_openai": "formats.writing.openai_writer:encode_openai",
    "encode_otlp": "formats.writing.otlp_writer:encode_otlp",
    "examine_files": "review.doctor_traces:examine_files",
    "find_addresses_in": "names.addresses:find_addresses_in",
    "find_names_in": "names.names:find_names_in",
    "follow_address": "watch.follow_values:read_address",
    "follow_budget": "watch.follow_values:read_budget",
    "follow_endpoint": "watch.follow_values:read_endpoint",
    "follow_files": "watch.follow_command:follow_files",
    "follow_keep": "watch.follow_values:read_keep",
    "follow_share": "watch.following.sampling:parse_share",
    "import_cases": "imports.import_command:import_cases",
    "judge_answers": "judge.doctor:judge_answers",
    "judge_backend": "judge.judge_backend:JudgeBackend",
    "judge_cache": "judge.cache:folder_in_force",
    "judge_cache_finding": "judge.doctor:cache_finding",
    "judge_in_force": "judge.settings:configured",
    "judge_values": "judge.settings:configured_values",
    "label_questions": "review.labeling.rating:label_questions",
    "label_session": "review.labeling.rating:label_session",
    "load_clip": "media.clip.loading:load_clip",
    "mask_traces": "redact.command:mask_traces",
    "model_weights": "media.model_weights:model_weights",
    "n_kept_replies": "judge.cache:n_kept_replies",
    "next_message": "judge.persona:next_message",
    "open_remote_file": "scale.remote:open_remote",
    "open_remote_output": "scale.remote:StorageOutput",
    "open_score_table": "scale.table_reading:ScoreTableFile",
    "open_secret": "judge.settings:open_secret",
    "panel_of": "judge.settings:panel_of",
    "parquet_rows": "scale.parquet_process:parquet_rows",
    "plan_playing": "judge.sending:plan_playing",
    "plan_sending": "judge.sending:plan_sending",
    "print_plan": "scale.score_plan:print_plan",
    "pytest_attempts": "pytest_plugin.marker:run_attempts",
    "pytest_cases": "pytest_plugin.marker:make_tests",
    "pytest_evaluator": "pytest_plugin.evaluation:evaluator_for",
    "pytest_report": "pytest_plugin.session_report:SessionReport",
    "read_document": "imports.foreign_tests:read_document",
    "read_foreign": "imports.foreign_tests:read_foreign",
    "recognizer_of": "media.speech:recognizer_of",
    "refuse_missing_url": "scale.remote:refuse_missing_url",
    "remote_files": "scale.remote:remote_files",
    "remote_state": "scale.remote:remote_state",
    "rewrite_in_processes": "scale.parallel.rewriting_job:rewrite_in_processes",
    "run_from_table": "scale.table_run:run_from_table",
    "score_items": "scale.parallel.scored_items:score_items",
    "score_suspects": "review.suspects_command:score_suspects",
    "score_table_sink": "scale.table_output:TableSink",
    "several_processes": "scale.several_processes:SeveralProcesses",
    "spacy_unready": "names.spacy_model:spacy_unready",
    "spacy_weights_command": "names.spacy_model:weights_command",
    "spend_ledger": "judge.spend_table:spend_ledger",
    "spent_on": "judge.questions:spent_on",
    "tool_marks": "review.suspects.tool_marks:parse_marks",
    "video_encoder": "media.video_vectors:VideoEncoder",
}


def part(name: str) -> Any:
    """What stands in the table under a name, imported when it is asked for."""
    return import_target(f"agentunit.addons.{_PARTS[name]}")


def addon_names() -> list[str]:
    """The add-ons that something is asked of."""
    return sorted({target.partition(".")[0] for target in _PARTS.values()})
