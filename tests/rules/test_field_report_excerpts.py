"""The field reports' own symptoms, typed in as their logs show them, are diagnosed from the text alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainsleuth.postmortem import examine
from trainsleuth.rules.kinds import Finding


@pytest.fixture
def diagnosed(tmp_path: Path):  # type: ignore[no-untyped-def]
    def diagnose(text: str) -> Finding:
        log = tmp_path / "excerpt.log"
        log.write_text(text, encoding="utf-8")
        return examine([str(log)]).diagnosis.findings[0]

    return diagnose


def test_000_backward_never_returns(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed(
        "Forward pass: 0.05s\nCTC Loss: 12.8113 (0.001s)\nloss.backward() ...\n^CTraceback (most recent call last):\n"
        '  File "train.py", line 96, in <module>\n    loss.backward()\n'
        '  File "/opt/venv/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward\n    torch.autograd.backward(\n'
        '  File "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 825, in _engine_run_backward\n'
        "    return Variable._execution_engine.run_backward(\nKeyboardInterrupt\n"
    )
    assert found.rule == "hang/backward"
    assert (found.where[0].file, found.where[0].line) == ("train.py", 96)
    assert "trainsleuth attach" in found.settle
    assert "In-place layers do not" in found.settle


def test_000_loss_falls_and_the_error_rate_does_not(diagnosed) -> None:  # type: ignore[no-untyped-def]
    rows = [f"Epoch {e}: Loss {20 / (e + 1):.4f}, CER {0.991 - 0.0003 * (e % 3):.4f}, Accuracy 0.0000" for e in range(12)]
    found = diagnosed("\n".join(rows))
    assert found.rule == "stall/metric-does-not-follow-loss"
    assert "overfit one batch" in found.settle


def test_001_a_loss_that_never_moves(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed(
        "[2025-10-19 10:38:20] Train: [0/30][0/1819]    tot_loss 0.3105 (0.3105)\n"
        "[2025-10-19 10:39:18] Train: [0/30][50/1819]   tot_loss 0.3105 (0.3105)\n...\n"
        "[2025-10-20 06:56:01] Train: [29/30][1800/1819] tot_loss 0.3105 (0.3105)\n"
        "Acc@1: 0.0742\nAcc@5: 0.6003\nmAP: 0.0833\n"
    )
    assert found.rule == "stall/uniform-predictions"
    assert found.title == "loss fixed at 0.3105 = ln 12 / 8, rounded in half precision: 12 equally likely classes"
    assert any("in float32 it would print 0.3106" in line for line in found.evidence)
    assert found.where[0].code.startswith("[2025-10-19 10:38:20] Train: [0/30][0/1819]")
    assert "trainsleuth run" in found.settle


def test_001_without_the_scores_the_readings_are_ranked(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed("".join(f"Train: [{e}/30][{b}/1819]   tot_loss 0.3105 (0.3105)\n" for e in range(30) for b in (0, 900, 1800)))
    assert "most likely ln 12 / 8" in found.title
    assert any("it could also be" in line for line in found.evidence)


def test_002_compile_crashes(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed(
        "AssertionError: lift_tracked_freevar_to_input should not be called on root SubgraphTracer\n\nfrom user code:\n"
        '   File "third_party/VRT/models/network_vrt.py", line 185, in drop_path\n     if drop_prob == 0. or not training:\n'
    )
    assert found.rule.startswith(("crash/", "compile/"))
    assert "lift_tracked_freevar_to_input" in " ".join([found.title, *found.evidence])


def test_002_nothing_to_load(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed(
        "[SpikeDeblurDataset] Loading 0 blur, 0 sharp, 0 voxel files...\n"
        "[SpikeDeblurDataset] Cache preloaded: 0 items, 0.0GB / 30.0GB\n"
    )
    assert found.rule == "data/empty-dataset"
    assert found.symptoms == ["cache/empty"]
    assert "print the folder" in found.settle


def test_002_channels_last_on_five_dimensions(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed("RuntimeError: Tensor must have 4 dimensions, but got 5 dimensions\n")
    assert found.rule.startswith(("crash/", "layout/"))
    assert "4 dimensions" in " ".join([found.title, *found.evidence])


def test_002_nan_in_the_chart_of_tensorboard(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed("Name: .\nSmoothed: NaN\nValue: NaN\nStep: 30\n")
    assert found.rule == "nan/loss-not-finite"
    assert "trainsleuth run" in found.settle


def test_003_half_precision_costs_accuracy(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed(
        "- Run b1bipuoz (16-bit): H-mean 0.7816, Runtime 16m 44s\n- Run nuhmawgr (32-bit): H-mean 0.8863, Runtime 19m 39s\n"
    )
    assert found.rule == "precision/accuracy-loss"
    assert found.title == "H-mean is 12 % lower in 16 bit: 0.8863 → 0.7816"
    assert "the same seeds" in found.settle


def test_003_steps_that_do_not_increase(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed("WARNING wandb.run_manager - Step must be strictly increasing\n" * 3)
    assert found.rule == "logging/step-not-increasing"
    assert "3 warnings" in found.title


def test_003_maps_that_are_there_and_not_used(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed(
        "# First validation (cache miss, maps loaded)\n[INFO] ✓ Using .npz maps (from cache or disk): 16/16 samples (100.0%)\n\n"
        "# Second validation (cache hit, but cached items lack maps)\n"
        "[WARNING] ⚠ Fallback to on-the-fly generation: 16/16 samples (100.0%)\n[INFO] [CACHE HIT] Returning cached tensor for index 0\n"
    )
    assert found.rule == "cache/stale-entries"
    assert "another configuration" in found.causes[0].statement
    assert "clear the cache" in found.settle


def test_004_modified_in_place(diagnosed) -> None:  # type: ignore[no-untyped-def]
    found = diagnosed(
        "Traceback (most recent call last):\n"
        '  File "D:/workspace/TorchLRP/examples/expalin_rnn.py", line 97, in lrp_explanation\n'
        "    grad = torch.autograd.grad(lrp_loss, [lrp_embedding_vector], allow_unused=True)[0].detach().cpu().numpy()\n"
        '  File "D:\\Anaconda\\Anaconda3\\envs\\lemna_python37\\lib\\site-packages\\torch\\autograd\\__init__.py", line 157, in grad\n'
        "    inputs, allow_unused)\n"
        '  File "D:/workspace/TorchLRP\\lrp\\functional\\linear.py", line 72, in _backward_alpha_beta\n'
        "    input, weights, bias = ctx.saved_tensors\n"
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [8]], which is output 0 of SelectBackward, is at version 10; expected version 9 instead.\n"
    )
    assert found.rule.startswith(("crash/", "autograd/"))
    assert "modified by an inplace operation" in " ".join([found.title, *found.evidence])
    assert (found.where[0].file, found.where[0].line) == ("D:/workspace/TorchLRP\\lrp\\functional\\linear.py", 72)
