"""Steps that never go back: one counter in front of W&B, TensorBoard, MLflow and CSV. Users import this to prevent a sickness."""

from trainsleuth.stepping.logger import StepLogger

__all__ = ["StepLogger"]
