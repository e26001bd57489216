from __future__ import annotations

import json

import pytest
from tests.wire.playback import sse_capture

from enginebench.wire.decode import decode
from enginebench.wire.redact import MAX_MESSAGE_CHARS, message

SECRET = "my-very-own-key"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (f"bad key {SECRET}.", "bad key ***."),
        (f"{SECRET}{SECRET}", "******"),
        ("Authorization: Bearer abc.def-123 refused", "Authorization: Bearer *** refused"),
        ('{"authorization": "bearer: abc"}', '{"authorization": "bearer ***"}'),
        ("Incorrect API key provided: sk-proj-Ab12_cd34.", "Incorrect API key provided: ***"),
        ("gsk_0123456789abcdef", "***"),
        ("hf_0123456789abcdef!", "***!"),
        ("bce-v3/ALTAK-0123456789", "***"),
        ("AIzaSyA0123456789abcdefghijklm", "***"),
        ("the task-force and risk-averse words stay", "the task-force and risk-averse words stay"),
        ("a\r\n\tb\x00c\x1b[31md\u2028e\u202ef\x9bg", "a b c [31md e f g"),
        ("half \ud83d of it", "half of it"),
        ("", None),
        (" \n ", None),
    ],
)
def test_words_are_one_line_without_secrets(said: str, kept: str | None) -> None:
    assert message(said, (SECRET,)) == kept


def test_a_longer_secret_goes_before_one_that_is_part_of_it() -> None:
    assert message("key abc-123-xyz", ("abc", "abc-123-xyz", "")) == "key ***"


def test_a_secret_across_the_limit_is_replaced_before_the_cut() -> None:
    said = "x" * (MAX_MESSAGE_CHARS - 4) + SECRET
    assert message(said, (SECRET,)) == "x" * (MAX_MESSAGE_CHARS - 4) + "***"
    assert len(message("y" * 9_999, ()) or "") == MAX_MESSAGE_CHARS


def test_no_text_of_a_response_brings_a_secret_into_the_record() -> None:
    echo = json.dumps({"error": {"message": f"no access for {SECRET}"}}).encode()
    capture = sse_capture(echo, status=401)
    capture.headers += [("x-request-id", f"r-{SECRET}"), ("x-ratelimit-key", SECRET)]
    decoded = decode(capture, (SECRET,))
    assert SECRET not in repr(decoded)
    assert decoded.error_message == "no access for ***"


def test_a_secret_in_the_reason_of_a_failed_connection_is_replaced() -> None:
    capture = sse_capture(ending="send_failed")
    capture.status, capture.ending_detail = None, f"{SECRET} refused"
    assert decode(capture, (SECRET,)).error_message == "*** refused"
