"""The causes of differences. Each takes what a recording lets us expect, and changes it to what must come here instead.

Where the rest of a run follows from the recording, the change is exact. Where the run goes on there is no recording of
the rest: the cause cuts, and the beginning is compared. A cause that changes nothing does not apply.
"""

from collections.abc import Callable

from .calls import (
    a_failed_call_is_told_to_the_model,
    a_failing_approver_refuses,
    a_forced_call_is_checked,
    a_forced_call_is_no_turn,
    a_question_pauses_the_run,
    a_refusal_spares_the_others,
    a_tools_limit_refuses_one_call,
    arguments_are_checked,
    deny_asks_nobody,
    every_call_is_answered,
    finished_work_is_kept,
    no_input_is_an_empty_object,
    none_offers_no_tools,
    whole_reply_first,
)
from .expected import Expected
from .replies import (
    a_broken_reply_runs_nothing,
    a_cancellation_nobody_asked_for,
    a_failed_reply_is_a_reply,
    a_listener_never_ends_a_run,
    a_reply_that_never_came,
    a_request_is_the_models_to_answer,
    a_stop_ends_every_wait,
    a_stop_is_no_error,
    a_string_is_a_reply,
    answers_are_announced,
    cancelled_before_it_began,
    empty_text_says_nothing,
    no_request_after_a_stop,
    text_is_kept_as_said,
)

Cause = Callable[[Expected], None]

CAUSES: tuple[Cause, ...] = (
    cancelled_before_it_began,
    a_string_is_a_reply,
    a_stop_ends_every_wait,
    a_stop_is_no_error,
    no_request_after_a_stop,
    a_request_is_the_models_to_answer,
    a_reply_that_never_came,
    a_cancellation_nobody_asked_for,
    a_failed_reply_is_a_reply,
    a_broken_reply_runs_nothing,
    no_input_is_an_empty_object,
    whole_reply_first,
    a_forced_call_is_no_turn,
    a_forced_call_is_checked,
    none_offers_no_tools,
    arguments_are_checked,
    deny_asks_nobody,
    a_question_pauses_the_run,
    a_failing_approver_refuses,
    a_refusal_spares_the_others,
    a_tools_limit_refuses_one_call,
    finished_work_is_kept,
    a_failed_call_is_told_to_the_model,
    a_listener_never_ends_a_run,
    every_call_is_answered,
    text_is_kept_as_said,
    empty_text_says_nothing,
    answers_are_announced,
)
"""In the order in which they are asked: each sees what the former made of the recording."""
