"""Setting of an examination: the random numbers of a run that was not seeded begin as they began then."""

from __future__ import annotations

import random
import sys
from typing import Any, Optional, Sequence


def turn(watch: Any, torch: Optional[int] = None, python: Optional[Sequence[Any]] = None, numpy: Optional[Sequence[Any]] = None) -> None:
    if torch is not None:
        watch.torch.manual_seed(torch)
    if python is not None:
        random.setstate((python[0], tuple(python[1]), python[2]))
    library = sys.modules.get("numpy")
    if numpy is not None and library is not None:
        library.random.set_state(("MT19937", library.array(numpy[0], dtype=library.uint32), int(numpy[1]), 0, 0.0))
