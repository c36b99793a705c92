"""All readers under atheris, which follows what their code does with a file and looks for what it has not done yet.

python -m tests.readers.fuzz_with_atheris [RUNS]      part of `make test-all`; ends with 0 if nothing crashed, hung or grew

The first byte of an input chooses the reader, the rest is the file. It begins with the files of tests/corpus.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

try:
    import atheris
except ImportError:
    print("atheris is not there for this Python: its part of the fuzzing is left out")
    sys.exit(0)

with atheris.instrument_imports(include=["trainsleuth.readers"]):
    from tests.readers.test_structured_fuzz import SEEDS, check, seeds_of

    MODULES = {name: importlib.import_module(f"trainsleuth.readers.{name}") for name in SEEDS}

RUNS = 10_000
LONGEST = 6_000  # bytes of a file
SECONDS, MEGABYTES = 30, 1_500  # for one file, and for the process


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    names = list(SEEDS)
    with tempfile.TemporaryDirectory() as folder:
        corpus, files = Path(folder) / "corpus", Path(folder) / "files"
        corpus.mkdir()
        files.mkdir()
        for index, name in enumerate(names):
            for number, (_, content) in enumerate(seeds_of(name)):
                (corpus / f"{name}-{number}").write_bytes(bytes([index]) + content[: LONGEST - 1])

        def one(data: bytes) -> None:
            if data:
                name = names[data[0] % len(names)]
                check(MODULES[name], files / SEEDS[name][0].name, data[1:])

        limits = [f"-runs={runs}", f"-max_len={LONGEST}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEGABYTES}", f"-artifact_prefix={folder}/"]
        atheris.Setup([sys.argv[0], *limits, "-print_final_stats=1", "-verbosity=0", str(corpus)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
