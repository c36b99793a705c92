"""Takes out of a text what should not leave the machine: paths, user and host names, e-mail addresses, network addresses, secrets."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

from _trainsleuth_inside.secrets import HIDDEN, without_secrets

_NOT_A_NAME = frozenset(
    {"root", "user", "users", "admin", "ubuntu", "home", "test", "train", "data", "runner", "work", "localhost", "model"}
)
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_ADDRESS = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?::\d+)?")
_URL = re.compile(r"\b(?P<scheme>[a-z][a-z0-9+.-]*://)(?:[^\s/@]*@)?(?P<host>[^\s/:)>\]\"'`]+)")
_PUBLIC = ("pytorch.org", "github.com", "wandb.me", "huggingface.co", "lightning.ai", "python.org", "tensorflow.org")
_EVENT_FILE = re.compile(r"(tfevents\.\d+\.)[^\s/]+?(?=\.\d+\.\d+|\s|$)")
_SETTING = re.compile(
    r"(?i)\b(?P<name>[\w.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[\w.-]*)"
    r"(?P<sign>\s*[=:]\s*|\s+)(?P<value>['\"]?[^\s'\"`,;)]{6,}['\"]?)"
)
_UNIX_PATH = re.compile(r"(?<![\w.:/~…>-])(?:~|/)(?:[\w.@+=,-]+/)+[\w.@+=,-]*")
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\(?:[^\\\s\"'<>|:]+\\)*[^\\\s\"'<>|:]*")
_INSTALLED = ("site-packages/", "dist-packages/")
_HOME = re.compile(r"(?:/home/|/Users/|\\Users\\)([\w.-]+)")


def redacted(text: str, cwd: Path | None = None, user: str | None = None, host: str | None = None) -> str:
    """The text without them. Paths below the working folder stay as the user would type them; others keep their last part."""
    users = {user or _user(), *_HOME.findall(text), *_HOME.findall(str(cwd or ""))}
    hosts = {host or socket.gethostname()}
    text = _secrets(text)
    text = _EMAIL.sub("<e-mail>", text)
    text = _URL.sub(_url, text)
    text = _EVENT_FILE.sub(r"\1<host>", text)
    text = _ADDRESS.sub("<address>", text)
    for folder in {str(cwd), os.path.realpath(cwd)} if cwd is not None and len(str(cwd)) > 1 else ():
        text = re.sub(re.escape(folder) + r"(?:/|(?=\W|$))", "./", text).replace("././", "./")
    text = _UNIX_PATH.sub(_shortened("/"), text)
    text = _WINDOWS_PATH.sub(_shortened("\\"), text)
    text = _names(text, users, "<user>")
    return _names(text, {part for name in hosts for part in (name, name.partition(".")[0])}, "<host>")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return ""


def _secrets(text: str) -> str:
    text = _SETTING.sub(lambda match: f"{match['name']}{match['sign']}{HIDDEN}", text)
    return "\n".join(re.sub(r"\S+", lambda word: without_secrets([word[0]])[0], line) for line in text.split("\n"))


def _url(match: re.Match[str]) -> str:
    public = match["host"].endswith(_PUBLIC)
    return match["scheme"] + (match["host"] if public else "<address>")


def _shortened(separator: str) -> Callable[[re.Match[str]], str]:
    def shorten(match: re.Match[str]) -> str:
        path = match[0]
        for mark in _INSTALLED:
            if mark in path:
                return "…/" + path[path.index(mark) :]
        return "…/" + path.rstrip(separator).rsplit(separator, 1)[-1]

    return shorten


def _names(text: str, names: Iterable[str], instead: str) -> str:
    for name in sorted(names, key=len, reverse=True):
        if len(name) >= 4 and name.lower() not in _NOT_A_NAME:
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", instead, text)
    return text
