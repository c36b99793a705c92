"""Which of autograd's errors ended the program, by the message that torch gives."""

from __future__ import annotations

from typing import Any, Literal

Error = Literal["modified-in-place", "graph-freed", "leaf-modified", "not-static", "checkpoint", ""]
MESSAGES: dict[str, Error] = {
    "modified by an inplace operation": "modified-in-place",
    "backward through the graph a second time": "graph-freed",
    "saved tensors after they have already been freed": "graph-freed",
    "leaf variable that requires grad": "leaf-modified",
    "leaf variable has been moved into the graph interior": "leaf-modified",
    "legacy autograd function with non-static": "not-static",
    "different number of tensors was saved during the original forward and recomputation": "checkpoint",
    "recomputed values for the following tensors have different metadata": "checkpoint",
    "trying to backward an extra time": "graph-freed",
}


def error_of(crash: dict[str, Any] | None) -> Error:
    text = str((crash or {}).get("message", "")).lower()
    return next((error for part, error in MESSAGES.items() if part in text), "")
