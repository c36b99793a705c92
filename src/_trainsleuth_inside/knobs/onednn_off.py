"""Knob `onednn-off`: convolutions, recurrent layers and matrices are computed by torch's own code, not by oneDNN.

Changes        `torch.backends.mkldnn.enabled`, from the start, whatever the program sets it to
Mechanism      none of its own: other code computes the same thing
Not applicable when torch was built without oneDNN
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    backend = watch.torch.backends.mkldnn
    if backend.is_available() and watch.torch._C._get_mkldnn_enabled():
        watch.torch._C._set_mkldnn_enabled(False)
        watch.torch._C._set_mkldnn_enabled = _stays_off
        vars(type(backend))["enabled"].setter = _stays_off
        says(watch, "onednn-off")()


def _stays_off(_: bool) -> None:
    """What a program sets later has no effect."""
