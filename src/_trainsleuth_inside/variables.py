"""The environment variables that change how torch computes."""

from __future__ import annotations

import os
from typing import Dict

VARIABLES = (
    "OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OMP_DYNAMIC", "OMP_PROC_BIND", "MKL_NUM_THREADS", "KMP_AFFINITY",
    "CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG", "PYTORCH_CUDA_ALLOC_CONF", "NCCL_DEBUG", "TORCHDYNAMO_DISABLE",
    "PYTHONHASHSEED", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY",
)  # fmt: skip


def that_are_set() -> Dict[str, str]:
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}
