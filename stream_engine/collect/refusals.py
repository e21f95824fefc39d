"""What is refused of participants: a status, a reason that is counted, and a line that says what to do."""

from typing import NamedTuple

# reason -> HTTP status
REASONS = {
    "not_json": 400,
    "not_an_answer": 400,  # no id, no worker, nothing chosen
    "not_shown": 422,  # chosen what was not shown, or not so many
    "not_asked": 404,
    "other_study": 409,
    "late": 410,
    "stranger": 403,  # without the key of his link, or to what another was asked
    "too_large": 413,
    "too_many": 429,
    "no_media": 404,
    "bad_object": 422,
    "not_durable": 503,
}


class Rejection(Exception):
    """Nothing was done; one line: what, got, expected."""

    def __init__(self, reason: str, why: str):
        super().__init__(why)
        self.reason, self.status = reason, REASONS[reason]


class Body(NamedTuple):
    """A refusal as it is sent."""

    refused: str
    why: str
