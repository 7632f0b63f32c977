"""A retry policy for operators of other providers that run ``stream-wh``: errors that no retry can repair fail at once.

The operators of Spark and of pods raise one exception for every failure of the command; only its text has the exit code. Airflow
asks a policy before it tries a task again (AIP-105, Airflow 3.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow.sdk import RetryDecision, RetryPolicy

from airflow_stream_wh.process import CommandResult
from airflow_stream_wh.verdict import TaskOutcome, judge

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["StreamWarehouseRetryPolicy", "exit_code_in"]

_CODES = (
    re.compile(r"\. Error code is: (-?[1-9]\d*)\."),  # SparkSubmitHook, of spark-submit where the driver runs in it
    re.compile(r"""['"]exit_code['"]: ?([1-9]\d*)"""),  # the state of a pod's container as KubernetesPodOperator shows it
)


class StreamWarehouseRetryPolicy(RetryPolicy):
    """Fails a task whose command ended with an exit code that no retry can repair: 1, 2 or 4.

    Exit codes 3 and 130 and a command that was killed are retried as the task says (``retries``, ``retry_delay``), and so
    is a failure without an exit code, such as the failure of a driver that a cluster runs.
    """

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Return the decision by the exit code in the text of an exception."""
        del try_number, max_tries, context
        code = exit_code_in(str(exception))
        if code is None:
            return RetryDecision.default()
        judgement = judge(CommandResult(code, "", ()))
        return RetryDecision.default() if judgement.verdict is TaskOutcome.RETRY else RetryDecision.fail(judgement.reason)


def exit_code_in(text: str) -> int | None:
    """Return the exit code in the text of an exception; None if the text has no exit code except that of success.

    >>> exit_code_in("Cannot execute: spark-submit jobs/update.py. Error code is: 2.")
    2
    """
    first_match = next((match for pattern in _CODES if (match := pattern.search(text))), None)
    return None if first_match is None else int(first_match[1])
