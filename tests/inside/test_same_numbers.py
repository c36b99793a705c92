"""Losses, weights, random generators and standard output are, to the bit, what they are without TrainSleuth."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from side_by_side import both_ways

HERE = Path(__file__).parent


def test_every_kind_of_training_prints_the_same_numbers(tmp_path: Path) -> None:
    plain, watched, report = both_ways([sys.executable, str(HERE / "numbers_program.py")], tmp_path)
    assert plain.stdout.count("weights") == 6, plain.stderr
    assert watched.stdout == plain.stdout
    assert watched.stderr == plain.stderr
    assert "graphs 2\n" in plain.stdout
    assert report["probes_off"] == []
    assert report["verdict"] != "unsure"


def test_two_ranks_print_the_same_numbers(tmp_path: Path) -> None:
    def command(side: str) -> list[str]:
        port = f"--master_port={free_port()}"
        return [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", port, str(HERE / "ranks_program.py")]

    plain, watched, report = both_ways(command, tmp_path)
    assert plain.returncode == 0, plain.stderr
    assert "0x" in plain.stdout
    assert watched.stdout == plain.stdout
    assert report["probes_off"] == []
    assert report["verdict"] != "unsure"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
