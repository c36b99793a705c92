"""The sandbox: what a program does in it stays in it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from trainsleuth.trials import sandbox
from trainsleuth.trials.sandbox import Cancelled, Job, SandboxError
from watching import needs_sandbox

pytestmark = needs_sandbox


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "data.txt").write_text("as it was\n")
    return folder


def python(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def processes_with(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_nothing_that_a_program_writes_reaches_the_real_files(project: Path, tmp_path: Path) -> None:
    home, shared = Path.home() / f".trainsleuth-test-{os.getpid()}", Path(f"/dev/shm/trainsleuth-test-{os.getpid()}")
    source = f"""
import os, shutil, tempfile
open("data.txt", "w").write("changed")
os.rename("data.txt", "moved.txt")
os.makedirs("checkpoints"); open("checkpoints/model.pt", "wb").write(b"x" * 100000)
for path in ({str(home)!r}, {str(shared)!r}, {str(tmp_path / "beside")!r}, tempfile.gettempdir() + "/trainsleuth-test-tmp"):
    open(path, "w").write("x")
    assert open(path).read() == "x"
print(open("moved.txt").read(), sorted(os.listdir(".")))
"""
    before = tree(project)
    ended = sandbox.run(Job(python(source), project, tmp_path / "kept", 20))
    output = (tmp_path / "kept" / "output.txt").read_text()
    assert (ended.kind, ended.code) == ("exit", 0), output
    assert "changed ['checkpoints', 'moved.txt']" in output
    assert tree(project) == before
    assert not home.exists()
    assert not shared.exists()
    assert not (tmp_path / "beside").exists()
    assert not Path("/tmp/trainsleuth-test-tmp").exists()


def test_files_named_by_an_absolute_path_are_as_before_also_when_the_program_is_killed(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "cache.bin").write_bytes(b"as it was")
    source = f"""
import os, time
for folder in ({str(project)!r}, {str(elsewhere)!r}):
    for name in os.listdir(folder):
        open(os.path.join(folder, name), "ab").write(b"changed")
    open(os.path.join(folder, "new"), "w").write("new")
print("written", flush=True)
time.sleep(60)
"""
    before = tree(tmp_path)
    ended = sandbox.run(Job(python(source), project, tmp_path / "kept", 3))
    assert ended.kind == "time"
    assert (tmp_path / "kept" / "output.txt").read_text() == "written\n"
    after = {name: content for name, content in tree(tmp_path).items() if not name.startswith("kept/")}
    assert after == before


def test_a_program_that_takes_too_much_memory_is_ended(project: Path, tmp_path: Path) -> None:
    source = "import time; held = bytearray(400 << 20); held[::4096] = b'x' * len(held[::4096]); time.sleep(60)"
    ended = sandbox.run(Job(python(source), project, tmp_path / "kept", 30, memory=200 << 20))
    assert ended.kind == "memory"


def test_a_network_of_its_own_has_every_port_free(project: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        source = f"import socket; s = socket.socket(); s.bind(('127.0.0.1', {taken.getsockname()[1]})); s.listen(); print('free')"
        ended = sandbox.run(Job(python(source), project, tmp_path / "kept", 20, own_network=True))
    assert ended.code == 0, (tmp_path / "kept" / "output.txt").read_text()


def test_the_kept_folder_alone_is_real(project: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    ended = sandbox.run(Job(python(f"open({str(kept / 'fact')!r}, 'w').write('seen')"), project, kept, 20))
    assert ended.code == 0
    assert (kept / "fact").read_text() == "seen"


def test_a_patched_file_is_patched_for_the_program_only(project: Path, tmp_path: Path) -> None:
    files = {project / "data.txt": b"patched\n"}
    sandbox.run(Job(["/bin/cat", "data.txt"], project, tmp_path / "kept", 20, files=files))
    assert (tmp_path / "kept" / "output.txt").read_text() == "patched\n"
    assert (project / "data.txt").read_text() == "as it was\n"


def test_exit_codes_and_signals_are_told(project: Path, tmp_path: Path) -> None:
    assert sandbox.run(Job(python("raise SystemExit(3)"), project, tmp_path / "kept", 20)).code == 3
    killed = sandbox.run(Job(python("import os; os.kill(os.getpid(), 11)"), project, tmp_path / "kept", 20))
    assert killed.code == -signal.SIGSEGV


@pytest.mark.parametrize("unsafe", [False, True])
def test_when_the_time_is_over_no_process_is_left(project: Path, tmp_path: Path, unsafe: bool) -> None:
    mark = f"trainsleuth-sleeper-{os.getpid()}-{unsafe}"
    source = f"""
import subprocess, sys, time
child = [sys.executable, "-c", "import time; time.sleep(60)", {mark!r}]
subprocess.Popen(child, start_new_session=True)
subprocess.Popen(["/bin/sh", "-c", "trap '' TERM INT; sleep 60; : {mark}"])
time.sleep(60)
"""
    began = time.monotonic()
    ended = sandbox.run(Job(python(source), project, tmp_path / "kept", 1.5), unsafe=unsafe)
    assert ended.kind == "time"
    assert time.monotonic() - began < 12
    assert processes_with(mark) == []


def test_a_daemon_that_outlives_the_program_is_buried_with_it(project: Path, tmp_path: Path) -> None:
    mark = f"trainsleuth-daemon-{os.getpid()}"
    ended = sandbox.run(Job(["/bin/sh", "-c", f"setsid sh -c 'sleep 60; : {mark}' & exit 0"], project, tmp_path / "kept", 20))
    assert (ended.kind, ended.code) == ("exit", 0)
    assert processes_with(mark) == []


def test_a_run_can_be_called_off_from_another_thread(project: Path, tmp_path: Path) -> None:
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    with pytest.raises(Cancelled):
        sandbox.run(Job(["/bin/sleep", "60"], project, tmp_path / "kept", 50), cancel=cancel)


def test_nothing_of_it_stays_mounted_or_in_the_temporary_folder(project: Path, tmp_path: Path) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    base = tmp_path / "temporary"
    base.mkdir()
    source = (
        "import sys; sys.path[:0] = {path!r}; from pathlib import Path; from trainsleuth.trials.sandbox import Job, run;"
        "run(Job(['/bin/true'], Path({project!r}), Path({kept!r}), 20))"
    ).format(path=sys.path, project=str(project), kept=str(tmp_path / "kept"))
    subprocess.run(python(source), env={**os.environ, "TMPDIR": str(base)}, check=True, timeout=30)
    assert list(base.iterdir()) == []
    assert Path("/proc/self/mountinfo").read_text() == before


def test_trackers_are_offline(project: Path, tmp_path: Path) -> None:
    source = "import os; print(os.environ['WANDB_MODE'], os.environ['HF_HUB_OFFLINE'], os.environ['MLFLOW_TRACKING_URI'][:7])"
    sandbox.run(Job(python(source), project, tmp_path / "kept", 20, environment={"WANDB_MODE": "online"}))
    assert (tmp_path / "kept" / "output.txt").read_text() == "offline 1 file://\n"


def test_endless_output_is_kept_at_both_ends(project: Path, tmp_path: Path) -> None:
    source = "print('begin'); [print('x' * 1000) for _ in range(4000)]; print('end')"
    sandbox.run(Job(python(source), project, tmp_path / "kept", 20))
    output = (tmp_path / "kept" / "output.txt").read_text()
    assert output.startswith("begin\n")
    assert output.endswith("end\n")
    assert "bytes left out" in output
    assert len(output) < 2_500_000


def test_a_command_that_does_not_exist_is_an_error_for_the_user(project: Path, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="no-such-program"):
        sandbox.run(Job(["no-such-program"], project, tmp_path / "kept", 20))


def test_unsafe_runs_in_a_copy_of_the_working_folder(project: Path, tmp_path: Path) -> None:
    source = "import os; open('data.txt', 'a').write('more'); print(os.getcwd()); print(open('data.txt').read())"
    job = Job(python(source), project, tmp_path / "kept", 20, files={project / "data.txt": b"patched "})
    assert sandbox.run(job, unsafe=True).code == 0
    where, text = (tmp_path / "kept" / "output.txt").read_text().splitlines()
    assert text == "patched more"
    assert where != str(project)
    assert not Path(where).exists()
    assert (project / "data.txt").read_text() == "as it was\n"


def test_a_refusal_says_what_unsafe_would_do() -> None:
    text = sandbox.refusal("unshare is not permitted")
    assert "unshare is not permitted" in text
    assert "--unsafe" in text
    assert "copy of the working folder" in text


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to give up being able to mount")
def test_without_the_right_to_mount_a_user_namespace_does_the_same(project: Path, tmp_path: Path) -> None:
    powerless = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
    writes = f"echo changed > data.txt; cat data.txt; echo x > {tmp_path}/beside; echo x > {tmp_path}/kept/real; exit 4"
    source = (
        "import sys; sys.path[:0] = {path!r}; from pathlib import Path; from trainsleuth.trials import sandbox;"
        "print(sandbox.available());"
        "print(sandbox.run(sandbox.Job(['/bin/sh', '-c', {writes!r}], Path({project!r}), Path({kept!r}), 20)).code)"
    ).format(path=sys.path, writes=writes, project=str(project), kept=str(tmp_path / "kept"))
    done = subprocess.run([*powerless, *python(source)], capture_output=True, text=True, timeout=60)
    assert (project / "data.txt").read_text() == "as it was\n"
    assert not (tmp_path / "beside").exists()
    available, *code = done.stdout.splitlines()
    if available != "None":  # a machine without user namespaces: it refuses, and nothing was run
        assert not code
        assert "SandboxError" in done.stderr
        return
    assert code == ["4"], done.stderr
    assert (tmp_path / "kept" / "output.txt").read_text() == "changed\n"
    assert (tmp_path / "kept" / "real").exists()
