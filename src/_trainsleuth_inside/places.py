"""Finds the user's own line in a stack: the innermost frame that is neither Python's, nor a library's, nor ours."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import CodeType, FrameType
from typing import Any, Dict, List, Optional, Tuple

Place = Tuple[str, int, str]  # file, line, function

OURS, LIBRARY, USER = 0, 1, 2
_OUR_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = tuple(
    os.path.abspath(path) + os.sep for key, path in sysconfig.get_paths().items() if key in ("stdlib", "platstdlib") and path
)
_kinds: Dict[str, int] = {}
_paths: Dict[str, str] = {}


def kind_of(filename: str) -> int:
    """Whose file it is: OURS, LIBRARY or USER; remembered per file name."""
    known = _kinds.get(filename)
    if known is not None:
        return known
    path = os.path.abspath(filename)
    if path.startswith(_OUR_FOLDER):
        kind = OURS
    elif (filename.startswith("<") and not filename.startswith("<ipython")) or _installed(path):
        kind = LIBRARY
    else:
        kind = USER
    _kinds[filename] = kind
    return kind


def is_users(value: Any) -> bool:
    """Whether it is an object of a class that the user wrote."""
    module = sys.modules.get(type(value).__module__)
    return kind_of(getattr(module, "__file__", None) or "<none>") == USER


def _installed(path: str) -> bool:
    """Part of Python, of an installed package, or a console script beside the interpreter."""
    beside_python = os.path.dirname(path) == os.path.dirname(os.path.abspath(sys.executable))
    parts = path.split(os.sep)
    return beside_python or "site-packages" in parts or "dist-packages" in parts or path.startswith(_STANDARD)


def caller(skip: int = 1) -> Optional[Place]:
    """The user's line that led here; a library's line if the user has none on the stack."""
    return of_frame(sys._getframe(skip + 1))


def of_frame(frame: Optional[FrameType]) -> Optional[Place]:
    fallback: Optional[FrameType] = None
    while frame is not None:
        kind = kind_of(frame.f_code.co_filename)
        if kind == USER:
            return place_of(frame)
        if kind == LIBRARY and _worth_naming(frame.f_code):
            fallback = frame  # the outermost library frame is nearest to what the user typed
        frame = frame.f_back
    return None if fallback is None else place_of(fallback)


def around(skip: int = 1) -> Optional[Place]:
    """The user's line that called the function whose line `caller` gives: who asked a helper of theirs to do it."""
    frame: Optional[FrameType] = sys._getframe(skip + 1)
    inner: Optional[FrameType] = None
    while frame is not None:
        if kind_of(frame.f_code.co_filename) == USER:
            if inner is not None:
                return place_of(frame)
            inner = frame
        frame = frame.f_back
    return None


def right_above(skip: int = 1) -> Optional[Place]:
    """The user's line that called the user's function whose line `caller` gives, with nothing of a library in between."""
    frame: Optional[FrameType] = sys._getframe(skip + 1)
    while frame is not None and kind_of(frame.f_code.co_filename) != USER:
        frame = frame.f_back
    above = None if frame is None else frame.f_back
    return place_of(above) if above is not None and kind_of(above.f_code.co_filename) == USER else None


def _worth_naming(code: CodeType) -> bool:
    name = code.co_filename
    return not name.startswith("<") and not name.endswith(("runpy.py", "threading.py"))


def place_of(frame: FrameType) -> Place:
    code = frame.f_code
    path = _paths.get(code.co_filename)
    if path is None:
        path = _paths[code.co_filename] = os.path.abspath(code.co_filename)
    return (path, frame.f_lineno, code.co_name)


def beginning_of(code: CodeType) -> Place:
    """Where Python says that a function begins: at its first decorator, if it has any."""
    return (os.path.abspath(code.co_filename), code.co_firstlineno, code.co_name)


def without_us(traceback: Any) -> Any:
    """The traceback with our own frames taken out: what the program prints is what it prints without us."""
    while traceback is not None and kind_of(traceback.tb_frame.f_code.co_filename) == OURS:
        traceback = traceback.tb_next
    at = traceback
    while at is not None:
        following = at.tb_next
        while following is not None and kind_of(following.tb_frame.f_code.co_filename) == OURS:
            following = following.tb_next
        at.tb_next = following
        at = following
    return traceback


def user_frames(traceback: Any) -> List[Place]:
    """The user's lines of a traceback, outermost first."""
    found: List[Place] = []
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if kind_of(filename) == USER:
            found.append((os.path.abspath(filename), traceback.tb_lineno, traceback.tb_frame.f_code.co_name))
        traceback = traceback.tb_next
    return found
