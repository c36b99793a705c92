"""Real tracebacks (tests/corpus/tracebacks) become crashes with the user's own lines, and the known ones are explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.readers import tracebacks
from trainsleuth.rules.crash.known import record
from trainsleuth.rules.kinds import Seen
from trainsleuth.rules.known_messages import first_of, known, text_of

CORPUS = Path(__file__).parents[1] / "corpus" / "tracebacks"
KNOWN = {
    "address_in_use": ("ranks/address-in-use", 6), "backward_twice": ("autograd/graph-freed", 5), "batch_sizes_differ": ("crash/target-size", 2),
    "dynamo": ("compile/unsupported", 6), "half_and_float": ("precision/dtype-mismatch", 3), "leaf_in_place": ("autograd/leaf-modified", 3),
    "modified_in_place": ("autograd/modified-in-place", 6), "no_grad_fn": ("autograd/nothing-requires-grad", 5),
    "no_spawn_guard": ("hang/no-main-guard", 7), "pickled_lambda": ("data/not-picklable", 10),
    "shapes_do_not_fit": ("crash/shape-mismatch", 7), "sizes_do_not_match": ("crash/shape-mismatch", 2),
    "stack_of_unequal": ("data/batch-of-unequal-samples", 3), "state_dict_keys": ("checkpoint/keys-do-not-fit", 3),
    "state_dict_sizes": ("checkpoint/sizes-do-not-fit", 2), "target_out_of_bounds": ("data/labels-out-of-range", 2),
    "target_size": ("crash/target-size", 2), "too_many_open_files": ("data/too-many-open-files", 3),
    "unused_parameters": ("ranks/unused-parameters", 13), "weights_only": ("checkpoint/weights-only", 3),
    "by_hand/cuda_oom": ("memory/out-of-memory", 17), "by_hand/device_side_assert": ("data/labels-out-of-range", 61),
    "by_hand/embedding_assert": ("data/index-out-of-range", 30), "by_hand/gloo_timeout": ("ranks/collective-timeout", 58),
    "by_hand/shared_memory": ("data/shared-memory", 33),
}  # fmt: skip


def facts(name: str, kind: str) -> list[dict[str, Any]]:
    return [fact for fact in tracebacks.read(CORPUS / f"{name}.txt") if fact["k"] == kind]


def explained(name: str) -> Seen | None:
    source = SourceRecord(f"{name}.txt")
    for fact in tracebacks.read(CORPUS / f"{name}.txt"):
        source.absorb(fact)
    verdict = record.judge(source)  # type: ignore[arg-type]
    assert verdict is None or isinstance(verdict, Seen)
    return verdict


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_message_is_explained_at_the_users_own_line(name: str) -> None:
    fault, line = KNOWN[name]
    crash = first_of(facts(name, "crash"))
    assert crash is not None
    also = [other["message"] for other in facts(name, "crash") if not other["frames"]]
    found = known({**crash, "also": also})
    assert found is not None
    assert found[0].fault == fault
    seen = explained(name)
    assert seen is not None
    assert seen.where[0] is not None
    assert seen.where[0].at.line == line  # type: ignore[union-attr]
    assert seen.advice
    assert seen.certain or seen.settle
    assert "{" not in seen.title + seen.statement


@pytest.mark.parametrize("name", ["worker_raises", "spawned_rank_raises", "chained", "group"])
def test_an_error_of_the_users_own_is_not_explained_away(name: str) -> None:
    assert explained(name) is None


def test_a_worker_that_raised_is_told_by_its_own_line() -> None:
    (crash,) = facts("worker_raises", "crash")
    assert (crash["kind"], crash["worker"], crash["frames"][-1][1:], crash["code"][-1]) == (
        "KeyError",
        0,
        [6, "__getitem__"],
        'return {}["image"]',
    )


def test_a_chain_is_one_crash() -> None:
    (crash,) = facts("chained", "crash")
    assert crash["kind"] == "KeyError"
    assert [before["kind"] for before in crash["before"]] == ["FileNotFoundError", "RuntimeError"]


def test_a_group_is_one_crash() -> None:
    (crash,) = facts("group", "crash")
    assert [before["kind"] for before in crash["before"]] == ["ExceptionGroup", "ValueError"]
    assert crash["message"] == "'second shard'"


def test_interleaved_ranks_are_told_apart_and_the_first_cause_is_found() -> None:
    crashes = facts("by_hand/torchrun_ranks", "crash")
    assert {(crash["rank"], crash["kind"]) for crash in crashes} == {
        (1, "KeyError"),
        (0, "DistBackendError"),
        (None, "ChildFailedError"),
    }
    first = first_of(crashes)
    assert first is not None
    assert (first["rank"], first["code"][-1]) == (1, 'targets = batch["mask"]')


def test_ranks_in_different_collectives_are_named() -> None:
    seen = explained("by_hand/nccl_timeout")
    assert seen is not None
    assert any("rank 1 allreduce of 25,557,032 numbers; rank 0 allgather_base of 1 numbers" in line for line in seen.evidence)


@pytest.mark.parametrize(
    ("name", "tool", "line"), [("by_hand/py_spy", "py-spy", 6), ("by_hand/gdb", "gdb", 21), ("fault", "faulthandler", 4)]
)
def test_stacks(name: str, tool: str, line: int) -> None:
    (stack,) = facts(name, "stack")
    assert stack["from"] == tool
    assert any(frame[0].endswith("train.py") and frame[1] == line for thread in stack["threads"] for frame in thread["frames"])


def test_a_traceback_that_was_cut_is_still_told(tmp_path: Path) -> None:
    path = tmp_path / "cut.txt"
    path.write_text("\n".join((CORPUS / "shapes_do_not_fit.txt").read_text().splitlines()[:4]))
    (crash,) = [fact for fact in tracebacks.read(path) if fact["k"] == "crash"]
    assert crash["kind"] == "unfinished traceback"
    assert crash["frames"][-1][0].endswith("train.py")


def test_the_text_of_a_crash_holds_what_came_before() -> None:
    assert "Bus error" in text_of(facts("by_hand/shared_memory", "crash")[-1])
