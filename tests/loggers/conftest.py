"""Tests with W&B and MLflow themselves; they belong to `make test-all`, which installs the extra `loggers`."""

from importlib.util import find_spec

collect_ignore_glob = ["test_*.py"] if find_spec("wandb") is None or find_spec("mlflow") is None else []
