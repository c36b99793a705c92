"""Tests with W&B and MLflow themselves; they belong to `make test-all`, which installs the extra `loggers`."""

from importlib.util import find_spec

collect_ignore_glob = ["test_*.py"] if any(find_spec(name) is None for name in ("wandb", "mlflow", "lightning")) else []
