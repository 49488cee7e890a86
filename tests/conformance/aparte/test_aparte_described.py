"""Runs that the reference describes and no recording shows: what the causes say of them holds here too.

`described.json` has the form of the recordings. It was written from the reference's description, not recorded.
"""

import json
from pathlib import Path

import pytest

from .differences import judge, read_entries
from .projection import Json
from .stage import play

DESCRIBED: dict[str, Json] = {
    run["name"]: run for run in json.loads(Path(__file__).with_name("described.json").read_text())
}
ENTRIES = read_entries()

CAUSES = {
    "abort-on-forced-resolved": "no_request_after_a_stop",
    "request-empty-messages": "a_request_is_the_models_to_answer",
    "choice-named-no-tools": "a_request_is_the_models_to_answer",
    "abort-while-reading-first": "a_reply_that_never_came",
    "choice-forced-skips-approval": "a_forced_call_is_checked",
    "choice-forced-tool-limit": "a_forced_call_is_checked",
    "request-tool-schema-wrong": "arguments_are_checked",
    "tool-string-input": "arguments_are_checked",
    "abort-in-tool-at-once": "finished_work_is_kept",
    "emitter-raises-4": "a_listener_never_ends_a_run",
    "abort-on-run-start-forced": "every_call_is_answered",
    "abort-while-reading-after-tool": "a_broken_reply_runs_nothing",
    "history-stopped": "answers_are_announced",
    "usage-lost-refusal": "whole_reply_first",
}
"""The cause that each run is about; a run that is not named is equal but for the order of its reply."""


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_described_run_is_equal_or_listed(name: str) -> None:
    verdict = judge(DESCRIBED[name], play(DESCRIBED[name]), ENTRIES)
    assert not verdict.unlisted, "\n".join([f"{field}: {diff}" for field, diff in verdict.unlisted.items()])
    assert not verdict.stale, f"listed, and equal: {[entry.when for entry in verdict.stale]}"
    if name in CAUSES:
        assert CAUSES[name] in [entry.when for entry in verdict.entries]
