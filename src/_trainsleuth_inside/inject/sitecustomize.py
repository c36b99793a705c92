"""Starts the probes in every Python interpreter below `trainsleuth run`, then runs the program's own sitecustomize.

This folder is alone on the injected PYTHONPATH. It takes itself off `sys.path` again, so the program's imports are
those it has without us; children inherit the environment variable and start here as well.
"""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _start_probes() -> None:
    package = os.path.dirname(_here)
    name = "_trainsleuth_inside"
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    from _trainsleuth_inside import bootstrap

    bootstrap.begin()


def _run_the_next_sitecustomize() -> None:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    if os.environ.get("TRAINSLEUTH_CASE"):
        _start_probes()
except Exception as problem:  # the training must start whatever happens here; the supervisor sees that no probe reported
    if os.environ.get("TRAINSLEUTH_DEBUG"):
        sys.stderr.write(f"trainsleuth: probes did not start: {problem!r}\n")
finally:
    _run_the_next_sitecustomize()
