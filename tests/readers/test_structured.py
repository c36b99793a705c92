"""Files that the libraries themselves wrote are read to the same numbers; damage is passed over and reported."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainsleuth.readers import (
    flight_recorder,
    keras_csv,
    lightning_csv,
    mlflow_store,
    tensorboard,
    trainer_state,
    wandb_file,
    wandb_log,
    yaml_config,
)
from trainsleuth.readers.crc32c import crc32c

CORPUS = Path(__file__).parents[1] / "corpus" / "records"
Fact = dict[str, Any]


def points(facts: Iterator[Fact]) -> Iterator[tuple[str, int | None, float]]:
    for fact in facts:
        if fact["k"] == "point":
            yield fact["name"], fact["step"], fact["value"]
        elif fact["k"] == "points":
            yield from ((fact["name"], step, value) for step, value in zip(fact["steps"], fact["values"]))


def settings(facts: Iterator[Fact]) -> dict[str, Any]:
    return {fact["name"]: fact["value"] for fact in facts if fact["k"] == "setting"}


def skips(facts: Iterator[Fact]) -> list[str]:
    return [fact["what"] for fact in facts if fact["k"] == "skipped"]


def event_files() -> list[Path]:
    return sorted(CORPUS.rglob("*tfevents*"))


@pytest.mark.parametrize("path", event_files(), ids=lambda path: path.parent.name)
def test_event_files_give_the_numbers_of_tensorboards_own_reader(path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    reference = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0}, purge_orphaned_data=False)
    reference.Reload()
    expected = {tag: [(e.step, repr(e.value)) for e in reference.Scalars(tag)] for tag in reference.Tags()["scalars"]}
    for tag in reference.Tags()["tensors"]:
        rows = [(e.step, make_ndarray(e.tensor_proto)) for e in reference.Tensors(tag)]
        if all(array.size == 1 and array.dtype.kind in "fiu" for _, array in rows):
            expected[tag] = [(step, repr(float(array.item()))) for step, array in rows]
    found: dict[str, list[tuple[int | None, str]]] = {}
    for name, step, value in points(tensorboard.read(path)):
        found.setdefault(name, []).append((step, repr(value)))
    assert found == expected


def test_steps_that_go_back_are_kept() -> None:
    (path,) = (CORPUS / "steps_begin_again").iterdir()
    assert [step for _, step, _ in points(tensorboard.read(path))] == [*range(20)] * 3


def test_a_purge_begins_another_run() -> None:
    (path,) = (CORPUS / "resumed").glob("*.second")
    assert {fact["run"] for fact in tensorboard.read(path) if fact["k"] == "points"} == {1}


def test_hyperparameters_of_tensorboard() -> None:
    found: dict[str, Any] = {}
    for path in (CORPUS / "healthy").iterdir():
        found.update(settings(tensorboard.read(path)))
    assert found == {"lr": 0.1, "batch": 32.0, "name": "resnet", "nesterov": 1.0}


def healthy_events() -> bytes:
    return max((CORPUS / "healthy").iterdir(), key=lambda path: path.stat().st_size).read_bytes()


def test_an_event_file_that_is_being_written_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = healthy_events()
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(whole[:-5])
    assert len(list(points(tensorboard.read(path)))) == 62
    assert any("still being written" in what for what in skips(tensorboard.read(path)))


def test_a_flipped_bit_costs_one_record_and_a_broken_length_a_stretch(tmp_path: Path) -> None:
    whole = bytearray(healthy_events())
    path = tmp_path / "events.out.tfevents.1"
    starts, at = [], 0
    while at < len(whole):
        starts.append(at)
        at += struct.unpack_from("<Q", whole, at)[0] + 16
    whole[starts[10] + 20] ^= 1
    path.write_bytes(whole)
    assert len(list(points(tensorboard.read(path)))) == 62
    assert skips(tensorboard.read(path)) == ["damaged record"]
    whole[starts[30]] ^= 0x55
    path.write_bytes(whole)
    assert len(list(points(tensorboard.read(path)))) == 61
    assert set(skips(tensorboard.read(path))) == {"damaged record", "damaged stretch"}


def test_the_sum_that_checks_event_files() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_a_wandb_run() -> None:
    path = CORPUS / "wandb_run" / "run-lost.wandb"
    found = list(points(wandb_file.read(path)))
    assert [(step, value) for name, step, value in found if name == "loss"] == [(step, 1 / (step + 1)) for step in range(8)]
    assert not [name for name, _, _ in found if name.startswith("profile/")]
    values = {name: value for name, _, value in found}
    assert math.isnan(values["nan"])
    assert values["inf"] == math.inf
    assert values["nested.x"] == 1.5
    assert settings(wandb_file.read(path)) == {"lr": 0.1, "model.depth": 3}
    assert [fact["step"] for fact in wandb_file.read(path) if fact["k"] == "dropped"] == [2, 5]


def test_the_internal_log_alone_names_the_lost_records(tmp_path: Path) -> None:
    path = tmp_path / "debug-internal.log"
    path.write_bytes((CORPUS / "wandb_run" / "logs" / "debug-internal.log").read_bytes())
    assert [fact["step"] for fact in wandb_log.read(path) if fact["k"] == "dropped"] == [2, 5]


def test_lightning() -> None:
    path = CORPUS / "lightning" / "version_0" / "metrics.csv"
    found = list(points(lightning_csv.read(path)))
    assert [(step, value) for name, step, value in found if name == "train_loss"] == [(step, 1 / (1 + step)) for step in range(6)]
    assert settings(lightning_csv.read(path))["backbone.depth"] == 18


def test_keras() -> None:
    facts = [fact for fact in keras_csv.read(CORPUS / "keras_log.csv") if fact["k"] == "point" and fact["name"] == "val_loss"]
    assert [(fact["epoch"], fact["value"], fact["prefix"]) for fact in facts] == [(e, 1.1 / (1 + e), "val") for e in range(8)]


def test_hugging_face() -> None:
    path = CORPUS / "trainer" / "trainer_state.json"
    found = [(step, value) for name, step, value in points(trainer_state.read(path)) if name == "loss"]
    assert found == [(5, 0.4), (10, 0.2), (15, 2 / 15), (20, 0.0), (25, 0.0), (30, 0.0)]
    assert settings(trainer_state.read(path))["max_steps"] == 30


def test_a_trainer_state_that_was_cut_is_read_so_far(tmp_path: Path) -> None:
    text = (CORPUS / "trainer" / "trainer_state.json").read_text()
    path = tmp_path / "trainer_state.json"
    path.write_text(text[: text.index('"step": 20')])
    assert [step for name, step, _ in points(trainer_state.read(path)) if name == "loss"] == [5, 10, 15]
    assert skips(trainer_state.read(path)) == ["rest of a log history that is cut off or damaged"]


def test_mlflow() -> None:
    (path,) = CORPUS.glob("mlruns/0/*/metrics/train/loss")
    assert mlflow_store.recognises(path, path.read_bytes())
    assert list(points(mlflow_store.read(path))) == [("train/loss", step, 1 / (1 + step)) for step in range(10)]
    (path,) = CORPUS.glob("mlruns/0/*/params/model")
    assert settings(mlflow_store.read(path)) == {"model": "resnet"}


def test_the_flight_recorder_as_json_and_a_damaged_pickle_refused(tmp_path: Path) -> None:
    facts = [fact for fact in flight_recorder.read(CORPUS / "fr_trace_rank_0.json") if fact["k"] == "flight"]
    assert [(fact["rank"], fact["name"]) for fact in facts][-1] == (0, "gloo:broadcast")
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(b"\x80\x05\x95\x00pg_config")
    assert flight_recorder.recognises(path, path.read_bytes())
    assert "run what it says" in skips(flight_recorder.read(path))[0]


CONFIGURATION = """
# a comment
model:
  name: resnet50   # another
  layers: [3, 4, 6, 3]
  drop: 1.0e-3
  norm: {kind: batch, momentum: 0.9}
optimizer:
  betas:
  - 0.9
  - 0.999
  groups:
    - {name: head, lr: 0.01}
    - name: body
      lr: 0.001
text: "a # that is no comment"
quoted: 'it''s'
empty:
flag: true
other: null
long: |
  first
  second
"""


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for index, item in enumerate(value):
            yield from flat(item, f"{name}.{index}")
    else:
        yield name, value


def test_yaml_gives_what_pyyaml_gives(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIGURATION)
    expected = dict(flat(yaml.safe_load(CONFIGURATION)))
    betas = expected.pop("optimizer.betas")
    expected.update({f"optimizer.betas.{index}": value for index, value in enumerate(betas)})
    del expected["empty"]
    found = settings(yaml_config.read(path))
    found["long"] += "\n"
    assert found == expected


def test_hydras_overrides_and_foreign_tags(tmp_path: Path) -> None:
    path = tmp_path / "overrides.yaml"
    path.write_text("- trainer.precision=16-mixed\n- +model.depth=3\n")
    assert settings(yaml_config.read(path)) == {"trainer.precision": "16-mixed", "model.depth": "3"}
    path.write_text("args: !!python/object:os.system\n  command: rm\nlr: 1e-3\n")
    assert settings(yaml_config.read(path)) == {"args.command": "rm", "lr": 0.001}
