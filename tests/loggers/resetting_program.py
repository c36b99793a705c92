"""Logs to MLflow with the number of the batch, which starts again with each epoch."""

import sys

import mlflow
import torch  # noqa: F401  (probes arrive with torch)

mlflow.set_tracking_uri(sys.argv[1])
with mlflow.start_run():
    for epoch in range(3):
        for batch in range(5):
            mlflow.log_metric("loss", 1 / (1 + batch), step=batch)
        mlflow.log_metrics({"epoch_loss": 0.5}, step=epoch)
