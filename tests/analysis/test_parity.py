"""Unequal work is found, whatever made it unequal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.analysis.rows import record, run

from enginebench.analysis.agreement import agreement
from enginebench.analysis.parity import parity
from enginebench.model.record import Record


def sent(target: str, seqs: Sequence[int], **facts: Any) -> list[Record]:
    return [
        record(seq * 10, target=target, seq=seq, **{"prompt_sha256": f"p{seq}", "output_tokens": 10, **facts})
        for seq in seqs
    ]


def about(name: str, **facts: Any) -> dict[str, Any]:
    return {"name": name, "endpoint": "chat", "request_fields": {"temperature": 0.0}, **facts}


def judged(records: Sequence[Record], *targets: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    found = parity(run(records, targets=targets or (about("a"), about("b"))))
    return {one["name"]: (one["verdict"], one["detail"]) for one in found}


def test_equal_work_passes_though_one_target_gets_further() -> None:
    found = judged([*sent("a", range(4)), *sent("b", range(9))])

    assert {name: verdict for name, (verdict, _) in found.items()} == {
        "same_prompts": "pass", "prompt_tokens": "pass", "output_lengths": "pass", "sampling": "pass",
    }  # fmt: skip
    assert found["same_prompts"][1] == "equal on all 4 requests in common"


def test_one_target_has_nothing_to_be_compared_with() -> None:
    assert judged(sent("a", range(4)), about("a")) == {}


def test_a_target_of_which_nothing_succeeded_is_not_compared() -> None:
    assert judged([*sent("a", range(4)), *sent("b", range(4), outcome="error")]) == {}


def test_one_other_prompt_is_unequal_work() -> None:
    other = sent("b", [3], prompt_sha256="another")

    verdict, detail = judged([*sent("a", range(4)), *sent("b", range(3)), *other])["same_prompts"]

    assert (verdict, detail) == ("fail", "b was sent 1 of 4 other than a")


def test_targets_without_a_common_request_are_told_apart() -> None:
    found = judged([*sent("a", [1, 2]), *sent("b", [3, 4])])

    assert found["same_prompts"] == ("warn", "no request in common with a: b")
    assert found["prompt_tokens"][0] == "warn"
    assert found["output_lengths"][0] == "warn"


def test_a_constant_number_of_extra_prompt_tokens_is_shown_as_a_chat_template() -> None:
    records = [*sent("a", range(4), prompt_tokens=500), *sent("b", range(4), prompt_tokens=512)]

    assert judged(records)["prompt_tokens"] == (
        "pass",
        "b: +12 on every request against a, as a chat template adds",
    )


def test_a_constant_number_that_is_much_of_the_prompt_is_unequal_work() -> None:
    records = [*sent("a", range(4), prompt_tokens=50), *sent("b", range(4), prompt_tokens=62)]

    assert judged(records)["prompt_tokens"] == (
        "fail",
        "b: +12 on every request against a, 24% of the prompt",
    )


def test_prompt_tokens_that_differ_from_request_to_request_are_unequal_work() -> None:
    records = [
        *sent("a", range(4)),
        *sent("b", range(3)),
        *sent("b", [3], prompt_tokens=11),
    ]

    assert judged(records)["prompt_tokens"] == ("fail", "b: +0 to +1 against a")


def test_prompt_tokens_that_nobody_reports_are_not_called_equal() -> None:
    records = [*sent("a", range(4)), *sent("b", range(4), prompt_tokens=None)]

    assert judged(records)["prompt_tokens"][0] == "warn"


def test_outputs_are_equal_work_within_a_tenth() -> None:
    def with_output(tokens: int) -> tuple[str, str]:
        records = [
            *sent("a", range(4), output_tokens=100),
            *sent("b", range(4), output_tokens=tokens),
        ]
        return judged(records)["output_lengths"]

    assert [with_output(tokens)[0] for tokens in (89, 90, 110, 111)] == ["fail", "pass", "pass", "fail"]
    assert with_output(50)[1] == "b: 50 % of a's where they differ most"


def test_one_level_of_short_answers_does_not_hide_behind_a_long_level() -> None:
    records = [
        *sent("a", range(100)),
        *sent("b", range(100)),
        *sent("a", [200], level=2.0),
        *sent("b", [200], level=2.0, output_tokens=1),
    ]

    assert judged(records)["output_lengths"][0] == "fail"


def test_only_requests_that_both_got_through_are_compared() -> None:
    records = [*sent("a", range(4)), *sent("b", range(4)), *sent("b", range(4, 9), output_tokens=1)]

    assert judged(records)["output_lengths"][0] == "pass"


def test_another_temperature_is_unequal_work() -> None:
    warm = about("b", request_fields={"stream": True})

    found = judged([*sent("a", range(2)), *sent("b", range(2))], about("a"), warm)

    assert found["sampling"] == ("fail", "temperatures differ: a 0.0, b its own default")


def test_another_endpoint_is_warned_of() -> None:
    found = judged([*sent("a", [1]), *sent("b", [1])], about("a"), about("b", endpoint="completions"))

    assert found["sampling"][0] == "warn"


def test_a_run_that_does_not_tell_its_request_fields_is_not_called_equal() -> None:
    bare = {"name": "a", "endpoint": "chat"}

    assert judged([*sent("a", [1]), *sent("b", [1])], bare, about("b"))["sampling"][0] == "warn"


def answering(name: str, *outputs: str | None) -> dict[str, Any]:
    answers = [{"prompt_sha256": str(i), "output": o, "output_tokens": 3} for i, o in enumerate(outputs)]
    return {"name": name, "agreement": answers}


def test_equal_answers_agree() -> None:
    (found,) = agreement([answering("a", "xyz", "uvw"), answering("b", "xyz", "uvw")])

    assert (found["verdict"], found["detail"]) == ("pass", "a and b: 2 of 2 equal, 100% of the text alike")


def test_answers_that_part_late_warn_with_the_share_alike() -> None:
    (found,) = agreement([answering("a", "abcd", "same"), answering("b", "abXX", "same")])

    assert (found["verdict"], found["detail"]) == ("warn", "a and b: 1 of 2 equal, 75% of the text alike")


def test_the_target_that_diverges_at_once_from_all_others_is_named() -> None:
    targets = [answering("a", "abcd"), answering("broken", "!!!!"), answering("c", "abcd")]

    (found,) = agreement(targets)

    assert found["verdict"] == "warn"
    assert found["detail"].endswith(". broken diverges at once: check its quantisation and chat template")


def test_answers_that_failed_are_left_out_and_a_single_target_is_not_judged() -> None:
    (found,) = agreement([answering("a", "x", "y"), answering("b", "x", None)])

    assert found["detail"].startswith("a and b: 1 of 1 equal")
    assert agreement([answering("a", "x"), {"name": "b"}]) == ()
    assert agreement([answering("a", "x"), answering("b", None)])[0]["verdict"] == "warn"
