"""Each remedy on programs as people write them: the diff is small, right, and compiles."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from programs import Diagnosed, Program

from trainsleuth.remedies import Patch, apply, candidates, propose
from trainsleuth.remedies.patch import PatchError
from trainsleuth.rules.kinds import Where

FROZEN, ORPHANS = "stall/params-frozen", "stall/params-not-in-optimizer"
DISCARDED, ASLEEP = "stall/accumulated-gradients-discarded", "mode/eval-during-training"


# -- frozen ----------------------------------------------------------------------------------------------------------


def test_a_loop_that_only_freezes_goes_as_a_whole(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        class Trainer:
            def setup(self):
                self.net = build()
                # keep the backbone
                for layer in self.net.layers.parameters():
                    layer.requires_grad = False
                self.optimizer = Adam(self.net.parameters())
    """)  # fmt: skip
    taken, put = program.changes(FROZEN, "requires_grad = False")
    assert taken == ["# keep the backbone", "for layer in self.net.layers.parameters():", "layer.requires_grad = False"]
    assert put == []


def test_a_loop_that_does_more_keeps_the_rest(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        for name, p in model.named_parameters():
            p.requires_grad = False
            print(name)
    """)  # fmt: skip
    assert program.changes(FROZEN, "requires_grad = False") == (["p.requires_grad = False"], [])


def test_an_else_that_only_freezes_goes_alone(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        for name, p in model.named_parameters():
            if "head" in name:
                trainable.append(p)
            else:
                p.requires_grad = False
    """)  # fmt: skip
    assert program.changes(FROZEN, "requires_grad = False") == (["else:", "p.requires_grad = False"], [])


def test_an_elif_goes_and_what_comes_after_it_stays(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        def freeze(model, mode):
            if mode == "none":
                prepare(model)
            elif mode == "all":
                model.requires_grad_(False)
            else:
                freeze_part(model)
    """)  # fmt: skip
    taken, put = program.changes(FROZEN, "requires_grad_(False)")
    assert taken == ["model.requires_grad_(False)"]
    assert put == ["pass"]


def test_a_condition_with_a_side_effect_is_kept(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        if download(weights):
            model.requires_grad_(False)
        train(model)
    """)  # fmt: skip
    assert program.changes(FROZEN, "requires_grad_") == (["model.requires_grad_(False)"], ["pass"])


def test_a_call_inside_an_expression_is_cut_out_of_it(tmp_path: Path) -> None:
    program = Program(tmp_path, "encoder = build(config).requires_grad_(False).to(device)\n")
    assert program.changes(FROZEN, "requires_grad_")[1] == ["encoder = build(config).to(device)"]


def test_one_line_loops_and_semicolons(tmp_path: Path) -> None:
    one_line = "for p in model.parameters(): p.requires_grad = False\n"
    program = Program(tmp_path, f"x = 1; model.requires_grad_(False); y = 2\n{one_line}")
    assert program.changes(FROZEN, "model.requires_grad_(False)")[1] == ["x = 1; y = 2"]
    assert program.changes(FROZEN, "for p in") == (["for p in model.parameters(): p.requires_grad = False"], [])


def test_a_parameter_made_without_gradient_is_made_with_one(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        class Scale(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.gain = nn.Parameter(
                    torch.ones(n),
                    requires_grad=False,
                )

        loss = criterion(model(x), y)
    """)  # fmt: skip
    taken, _ = program.changes(FROZEN, "loss = criterion", evidence=["frozen: block.gain, 12 numbers"])
    assert "requires_grad=False," in taken


def test_a_name_filter_that_a_wrapper_defeats_is_told_about_the_wrapper(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        for name, p in ddp.named_parameters():
            p.requires_grad = name.startswith(("head.", "neck."))
    """)  # fmt: skip
    finding = program.finding(FROZEN, "requires_grad", evidence=["frozen: module.head.weight, module.body.weight"])
    narrow, plain = candidates(finding)
    assert 'name.removeprefix("module.").startswith(("head.", "neck."))' in narrow.diff()
    assert "removeprefix" not in plain.diff()


def test_a_word_that_matches_too_much_is_compared_with_whole_names(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        for key, p in model.named_parameters():
            if "embed" in key:
                p.requires_grad = False
    """)  # fmt: skip
    evidence = ["frozen: embed.weight, embed_out.weight and 4 more, 960 numbers"]
    assert program.changes(FROZEN, "requires_grad", evidence=evidence)[1] == ['if "embed" in key.split("."):']


# -- not in the optimizer --------------------------------------------------------------------------------------------


def test_the_optimizer_moves_below_the_line_that_replaces_the_head(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        def main():
            net = resnet()
            opt = optim.SGD(net.parameters(), lr=0.1)  # keep
            net.fc = nn.Linear(512, 12)
            for epoch in range(3):
                train(net, opt)
    """)  # fmt: skip
    patch = propose(program.finding(ORPHANS, "optim.SGD", "net.fc =|made after the optimizer"))
    assert patch is not None
    text = next(iter(patch.files.values())).decode()
    built = text.index("opt = optim.SGD(net.parameters(), lr=0.1)  # keep")
    assert text.index("net.fc = nn.Linear") < built < text.index("for epoch")


def test_what_depends_on_the_optimizer_moves_along(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        class Trainer:
            def __init__(self, cfg):
                self.model = build(cfg)
                self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
                self.scheduler = CosineAnnealingLR(self.optimizer, cfg.steps)
                self.device = cfg.device
                self.add_head(cfg.classes)

            def add_head(self, classes):
                self.model.head = nn.Linear(8, classes)
    """)  # fmt: skip
    patch = propose(program.finding(ORPHANS, "torch.optim.AdamW", "self.model.head =|made after the optimizer"))
    assert patch is not None
    assert patch.kind == "patch", patch.summary
    text = next(iter(patch.files.values())).decode()
    assert text.index("self.add_head(cfg.classes)") < text.index("self.optimizer =") < text.index("self.scheduler =")


def test_a_wrapper_made_later_gives_the_parameters(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        class Task(nn.Module):
            pass

        def main():
            encoder = Encoder()
            optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05)
            model = Task(encoder, 10)
            train(model, optimizer)
    """)  # fmt: skip
    assert program.changes(ORPHANS, "torch.optim.SGD")[1] == ["optimizer = torch.optim.SGD(model.parameters(), lr=0.05)"]


def test_a_part_of_the_model_becomes_the_whole(tmp_path: Path) -> None:
    program = Program(tmp_path, "optimizer = AdamW(self.net.head.parameters(), lr=1e-3)\n")
    assert program.changes(ORPHANS, "AdamW")[1] == ["optimizer = AdamW(self.net.parameters(), lr=1e-3)"]


def test_no_patch_where_the_source_does_not_explain_it(tmp_path: Path) -> None:
    program = Program(tmp_path, "optimizer = AdamW(self.head.parameters(), lr=1e-3)\n")
    patch = propose(program.finding(ORPHANS, "AdamW"))
    assert patch is not None
    assert patch.kind == "advice"
    assert patch.files == {}
    assert "Build the optimizer from the final model" in patch.summary


def test_no_move_when_the_line_below_needs_the_optimizer(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        model = build()
        optimizer = Adam(model.parameters())
        model, optimizer = wrap(model, optimizer)
    """)  # fmt: skip
    patch = propose(program.finding(ORPHANS, "Adam(", "wrap(|made after the optimizer"))
    assert patch is not None
    assert patch.kind == "advice"


# -- discarded gradients ---------------------------------------------------------------------------------------------


def test_clearing_moves_behind_the_step(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        def epoch(loader, net, opt, every):
            for i, (x, y) in enumerate(loader):
                opt.zero_grad()
                loss = net(x, y) / every
                loss.backward()
                if (i + 1) % every == 0:
                    opt.step()
    """)  # fmt: skip
    taken, put = program.changes(DISCARDED, "zero_grad", "opt.step()")
    assert taken == put == ["opt.zero_grad()"]
    patch = propose(program.finding(DISCARDED, "zero_grad", "opt.step()"))
    assert patch is not None
    assert next(iter(patch.files.values())).decode().endswith("            opt.step()\n            opt.zero_grad()\n")


def test_a_scaler_gets_its_update_before_the_clearing_and_its_optimizer_is_found(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        class Loop:
            def one(self, batch, i):
                self.model.zero_grad(set_to_none=True)
                self.scaler.scale(self.loss(batch)).backward()
                if i % 4 == 3:
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
                    self.schedule.step()
    """)  # fmt: skip
    patch = propose(program.finding(DISCARDED, "zero_grad", "self.scaler.step("))
    assert patch is not None
    text = next(iter(patch.files.values())).decode()
    assert "self.scaler.update()\n            self.optimizer.zero_grad()\n            self.schedule.step()" in text
    assert "self.model.zero_grad" not in text


def test_a_clearing_that_is_there_already_is_not_doubled(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        for i, batch in enumerate(loader):
            if (i == 0) or ((i + 1) % 8 == 0):
                optimizer.zero_grad()  # as recommended
            model(batch).backward()
            if (i + 1) % 8 == 0:
                optimizer.step()
                optimizer.zero_grad()
    """)  # fmt: skip
    taken, put = program.changes(DISCARDED, "as recommended", "optimizer.step()")
    assert taken == ["if (i == 0) or ((i + 1) % 8 == 0):", "optimizer.zero_grad()  # as recommended"]
    assert put == []


def test_without_a_recorded_step_the_only_one_of_the_function_is_taken(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        def train():
            for x in data:
                o.zero_grad()
                f(x).backward()
                if full():
                    o.step()
                    scheduler.step()
    """)  # fmt: skip
    assert program.changes(DISCARDED, "zero_grad")[1] == ["o.zero_grad()"]


# -- eval mode -------------------------------------------------------------------------------------------------------


def test_the_model_wakes_before_its_training_loop(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        def run(net, loader, val, criterion, opt):
            for epoch in range(9):
                for x, y in loader:
                    out = net(x.to(device))
                    criterion(out, y).backward()
                    opt.step()
                net.eval()
                validate(net, val)
    """)  # fmt: skip
    patch = propose(program.finding(ASLEEP, "net.eval()", "out = net("))
    assert patch is not None
    text = next(iter(patch.files.values())).decode()
    assert "    for epoch in range(9):\n        net.train()\n        for x, y in loader:" in text


def test_a_validation_inside_the_loop_wakes_it_in_every_pass(tmp_path: Path) -> None:
    program = Program(tmp_path, """
        class Trainer:
            def check(self):
                self.model.eval()

            def fit(self, loader):
                for i, batch in enumerate(loader):
                    loss = self.model(batch).mean()
                    loss.backward()
                    if i % 100 == 99:
                        self.check()
    """)  # fmt: skip
    patch = propose(program.finding(ASLEEP, "self.model.eval()", "self.model(batch)"))
    assert patch is not None
    text = next(iter(patch.files.values())).decode()
    assert "enumerate(loader):\n            self.model.train()\n            loss =" in text


def test_a_builder_that_returns_a_sleeping_model(tmp_path: Path) -> None:
    program = Program(tmp_path, "def build():\n    model = Net()\n    return model.eval()\n")
    assert program.changes(ASLEEP, "model.eval()")[1] == ["return model"]


# -- writing ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def frozen(tmp_path: Path) -> tuple[Path, Patch]:
    path = tmp_path / "träin.py"
    path.write_bytes("# -*- coding: latin-1 -*-\r\nname = 'Jörg'\r\nmodel.requires_grad_(False)\r\nfit(model)".encode("latin-1"))
    path.chmod(0o755)
    patch = propose(Diagnosed(FROZEN, [Where(str(path), 3, "model.requires_grad_(False)")]))
    assert patch is not None
    return path, patch


def test_apply_keeps_encoding_newlines_mode_and_the_missing_last_newline(frozen: tuple[Path, Patch]) -> None:
    path, patch = frozen
    apply(patch)
    assert path.read_bytes() == "# -*- coding: latin-1 -*-\r\nname = 'Jörg'\r\nfit(model)".encode("latin-1")
    assert os.stat(path).st_mode & 0o777 == 0o755
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_apply_refuses_a_file_that_changed_meanwhile(frozen: tuple[Path, Patch]) -> None:
    path, patch = frozen
    path.write_text("something else\n")
    with pytest.raises(PatchError, match="has changed"):
        apply(patch)
    assert path.read_text() == "something else\n"


def test_the_diff_is_one_that_patch_takes(tmp_path: Path) -> None:
    program = Program(tmp_path, "import torch\n\nmodel = build()\nmodel.requires_grad_(False)\nfit(model)\n")
    patch = propose(program.finding(FROZEN, "requires_grad_"))
    assert patch is not None
    subprocess.run(["git", "apply", "-"], input=patch.diff(tmp_path), cwd=tmp_path, text=True, check=True)
    assert program.path.read_bytes() == patch.files[program.path]


def test_a_library_is_not_patched(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    program = Program(folder, "model.requires_grad_(False)\n")
    patch = propose(program.finding(FROZEN, "requires_grad_"))
    assert patch is not None
    assert patch.kind == "advice"
    assert "belongs to a library" in patch.summary


def test_a_file_that_is_gone_or_broken_leads_to_advice(tmp_path: Path) -> None:
    program = Program(tmp_path, "model.requires_grad_(False)\n")
    finding = program.finding(FROZEN, "requires_grad_")
    for content in ("def (:\n", None):
        if content is None:
            program.path.unlink()
        else:
            program.path.write_text(content)
        patch = propose(finding)
        assert patch is not None
        assert patch.kind == "advice"


def test_a_rule_without_a_remedy_has_none(tmp_path: Path) -> None:
    assert propose(Diagnosed("stall/flat-loss", [])) is None


# -- divisors --------------------------------------------------------------------------------------------------------


def test_a_count_that_can_be_none_is_at_least_one_and_another_divisor_is_never_zero(tmp_path: Path) -> None:
    program = Program(tmp_path, "rate = clicks / shown\n")
    counted = ["operand: int64[32] of whole numbers from 0 to 8, 1 zeros"]
    assert program.changes("nan/zero-division", "clicks", evidence=counted)[1] == ["rate = clicks / shown.clamp(min=1)"]
    measured = [counted[0], "operand: float32[32] from 0 to 8.31, 1 zeros"]  # the divisor comes last
    assert program.changes("nan/zero-division", "clicks", evidence=measured)[1] == ["rate = clicks / (shown + 1e-8)"]
