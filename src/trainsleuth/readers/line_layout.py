"""The layout of one line of a log: which of its numbers are values with a name, which count steps and epochs, which mean nothing.

Nothing here knows a framework. A name stands before its number, joined by `:`, `=` or a blank; `a/b` is a counter with its total, in
brackets or not; two counters are epoch and batch; what is in parentheses right after a value is its mean; a bar with percent, count and
times is a progress bar. Words are only asked for two things: whether a number counts epochs or steps, and whether a section is training
or validation. Lines are bytes: a letter is whatever is not ASCII punctuation, in any language and in any broken encoding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from trainsleuth.readers import stamps

LONGEST_LINE = 4000
MOST_NAME_WORDS = 4
MOST_NAME = 80

_TOKEN = re.compile(
    rb"""(?P<num>[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?P<unit>%|[a-zA-Z\xc2\xb5]+(?:/[a-zA-Z]+)?|/s\b|/sec\b)?(?![\w\x80-\xff]|\.\d)
      |(?P<word>[A-Za-z_@#\d][\w@#]*(?:[/.@-][\w@#]+)*(?:\([A-Za-z_]{1,12}\d{0,3}\))?(?:[\x80-\xff]+[A-Za-z_]*)?|[\x80-\xff][\x80-\xffA-Za-z_]*)
      |(?P<arrow>->|=>|<-)
      |(?P<punct>[:=,;|()\[\]{}/<>\t*~-])
      |(?P<gap>[ ]{2,})""",
    re.VERBOSE,
)
_BAR = re.compile(
    rb"(?P<percent>\d{1,3})%\s*\|[^|]*\|\s*(?P<at>\d+)/(?P<of>\d+|\?)\s*\[(?P<spent>[\d:.]+)<(?P<left>[\d:.?]+)"
    rb"(?:,\s*(?P<rate>[\d.?]+)\s*(?P<unit>[A-Za-z]+/[A-Za-z]+))?,?\s*(?P<postfix>[^\]]*)\]?"
)
_DRAWING = re.compile(rb"\[(?=[=>.#\- ]{3,}\])[=>.#-][=>.#\- ]*\]|(?:\xe2[\x94-\x96][\x80-\xbf])+|[=#]{4,}|[-]{4,}")
_BARE_DIGIT = re.compile(rb"\d(?<![A-Za-z_\d].)(?<![A-Za-z_][/.@-].)")  # not one of a word, as those of `v2` and `part-17`
_BARE_WORD = re.compile(rb"[in](?<!\w.)(?:nf|nfinity|an|ull|one)\b")  # in small letters, a word that stands for a number
_LENGTH_OF_TIME = re.compile(rb"(?:\d+ days?,? )?\b\d{1,4}:\d\d(?::\d\d(?:\.\d+)?)?\b")
_WIDE = {"：": b":  ", "＝": b"=  ", "，": b",  ", "、": b",  ", "。": b"   ", "（": b"(  ", "）": b")  ", "【": b"[  ", "】": b"]  ", "；": b";  ",
         "｜": b"|  ", "［": b"[  ", "］": b"]  ", "　": b"   ", "％": b"%  "}  # fmt: skip
_WIDE_BYTES = [(wide.encode(), narrow) for wide, narrow in _WIDE.items()]
_NOT_FINITE = {b"nan": b"nan", b"inf": b"inf", b"infinity": b"inf", b"+inf": b"inf", b"nan.0": b"nan", b"inf.0": b"inf"}
_EPOCH = re.compile(
    r"(?:(?:current|cur|train|training|val|valid|validation|eval|test)[ _]?)?"
    r"(?:epoch|epochs|ep|エポック|エポック数|轮|轮次|轮数|周期|世代|에폭|에포크)(?:\((?:train|val|test)\))?"
)
_STEP = re.compile(
    r"(?:(?:global|train|training|current|cur|optim|optimizer|opt|val|valid|eval|test)[ _]?)?"
    r"(?:step|steps|episode|episodes|timestep|timesteps|total[ _]timesteps|iter|iters|iteration|"
    r"iterations|it|itr|batch|batches|minibatch|batch[ _]idx|update|updates|num[ _]updates|"
    r"ステップ|ステップ数|イテレーション|反復|步|步数|迭代|批次|스텝|단계|반복|배치)(?:\((?:train|val|test)\))?"
)
_FILLERS = frozenset((b"the", b"and", b"with", b"a", b"an", b"is", b"was", b"of", b"at", b"its", b"now", b"equals", b"are"))
_SOURCE_FILE = re.compile(r"\.(?:py|cc|cpp|c|cu|h)$")
_GLOBAL = ("global_step", "num_updates", "global step", "num updates", "updates", "update", "trainer/global_step")
_COUNTED = re.compile(
    rb"(?:\xe7\xac\xac\s*(?P<n>\d+)\s*(?:\xe4\xb8\xaa|\xe6\xac\xa1)?\s*|(?<![\w.])(?P<m>\d+)\s*)"  # 第 3 个 epoch, 3 エポック, 3 에폭
    rb"(?P<what>epoch\b|\xe8\xbd\xae(?:\xe6\xac\xa1)?|\xe3\x82\xa8\xe3\x83\x9d\xe3\x83\x83\xe3\x82\xaf|\xec\x97\x90\xed\x8f\xad|"
    rb"\xec\x97\x90\xed\x8f\xac\xed\x81\xac|\xe6\xad\xa5|\xe3\x82\xb9\xe3\x83\x86\xe3\x83\x83\xe3\x83\x97)"
    rb"(?:\xe7\x9b\xae)?(?!\s*[\d\[=:])"
)
_STEPS_COUNTED = ("步".encode(), "ステップ".encode())
TRAIN = ("train", "training", "trn", "学習", "訓練", "训练", "학습", "훈련")
HELD_OUT = ("val", "valid", "validation", "eval", "evaluation", "test", "testing", "dev", "検証",
            "評価", "テスト", "验证", "测试", "评估", "검증", "평가", "테스트")  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A number of the line that means something: where it stands, and what it is."""

    name: str
    start: int
    end: int
    constant: float | None = None  # nan or inf: the number is a word, the same in all lines of this shape


@dataclass
class Layout:
    values: list[Number] = field(default_factory=list)
    epoch: Number | None = None
    step: Number | None = None
    total: Number | None = None  # of which the step counts a part
    epochs: Number | None = None  # how many there will be
    stamp: stamps.Stamp | None = None
    prefix: str = ""
    bar: bool = False
    nulls: list[str] = field(default_factory=list)  # names whose value is written as null
    digits_in_names: list[tuple[int, int]] = field(default_factory=list)
    unnamed: list[Number] = field(default_factory=list)
    words: int = 0
    joined: bool = False  # a name and its number are joined by : or =

    @property
    def has_axis(self) -> bool:
        return self.epoch is not None or self.step is not None


@dataclass
class _Seen:
    """One number while the line is being read."""

    name: str
    start: int
    end: int
    text: bytes
    unit: bytes
    total: tuple[int, int] | None = None
    bracket: bool = False
    mean: bool = False
    constant: float | None = None
    before: tuple[int, int] = (0, 0)  # where the words of its name stand
    spaced: bool = False  # a blank stands before it
    first: bool = False  # it is the first thing in the line


def may_tell_numbers(line: bytes) -> bool:
    """Whether it is worth while to read a line: in one where this is false, `layout_of` finds neither values nor counters nor nulls.

    Every token that is a number begins with a digit (after a sign or point) that no word before it takes in.
    """
    line = line[:LONGEST_LINE]
    return not line.isascii() or _BARE_DIGIT.search(line) is not None or _BARE_WORD.search(line.lower()) is not None


def layout_of(line: bytes) -> Layout:
    """Read one line. Positions are those of the line as given."""
    line = line[:LONGEST_LINE]
    layout = Layout(stamp=stamps.find(line))
    line = _plain(line, layout)
    line = _take_counted_words(line, layout)
    line = _take_bar(line, layout)
    numbers = _numbers(line, layout)
    _sort_out(numbers, layout)
    return layout


def _plain(line: bytes, layout: Layout) -> bytes:
    """Wide punctuation made narrow, drawings and times blanked; every byte stays in its place."""
    if not line.isascii():
        for wide, narrow in _WIDE_BYTES:
            if wide in line:
                line = line.replace(wide, narrow)
    if layout.stamp is not None:
        line = line[: layout.stamp.start] + b" " * (layout.stamp.end - layout.stamp.start) + line[layout.stamp.end :]
    return line


def _blank(line: bytes, start: int, end: int, with_: bytes = b" ") -> bytes:
    return line[:start] + with_ * (end - start) + line[end:]


def _take_counted_words(line: bytes, layout: Layout) -> bytes:
    if line.isascii():
        return line
    for match in list(_COUNTED.finditer(line))[:2]:
        group = "n" if match["n"] else "m"
        number = Number("epoch", match.start(group), match.end(group))
        if match["what"] in _STEPS_COUNTED:
            layout.step = layout.step or number
        else:
            layout.epoch = layout.epoch or number
        line = _blank(line, match.start(), match.end(), b",")
    return line


def _take_bar(line: bytes, layout: Layout) -> bytes:
    match = _BAR.search(line) if b"%" in line else None
    if match is not None:
        layout.bar = True
        layout.step = Number("step", *match.span("at"))
        if match["of"] != b"?":
            layout.total = Number("total", *match.span("of"))
        if match["rate"] and b"?" not in match["rate"]:
            layout.values.append(Number(match["unit"].decode("utf-8", "replace"), *match.span("rate")))
        end = match.start("postfix") if match["postfix"] else match.end()
        line = _blank(line, match.start(), end, b",")
    drawn = _DRAWING.sub(lambda found: b"|" * len(found[0]), line)
    layout.bar = layout.bar or (drawn != line and b"/" in line)
    return _LENGTH_OF_TIME.sub(lambda found: b" " * len(found[0]), drawn)


def _numbers(line: bytes, layout: Layout) -> list[_Seen]:
    """All numbers with what stands before them."""
    found: list[_Seen] = []
    words: list[tuple[bytes, int, int]] = []
    joined = slash = False
    depth = square = aside = 0  # how deep in braces, in brackets, and in parentheses that follow a value
    sections: list[str] = []
    after_value = False  # nothing but blanks and an opening parenthesis since the last value
    matches = list(_TOKEN.finditer(line))
    layout.words = sum(1 for match in matches if match.lastgroup == "word")
    for index, match in enumerate(matches):
        kind = match.lastgroup
        if kind == "unit":
            kind = "num"
        if kind == "num":
            text, unit = match["num"], match["unit"] or b""
            if slash and found and found[-1].total is None:
                found[-1].total = match.span("num")
            else:
                name, span = _name(words, sections if depth else [])
                seen = _Seen(name, *match.span("num"), text, unit, bracket=square > 0, before=span, mean=aside > 0)
                seen.spaced = line[: match.start()].endswith(b" ")
                seen.first = not line[: match.start()].strip(b" [")
                layout.joined = layout.joined or (joined and bool(name))
                found.append(seen)
            words, joined, slash, after_value = [], False, False, True
            continue
        if kind == "gap":
            if words and not joined and _next_is_word(matches, index):
                words = []
            continue
        if kind == "word":
            word = match["word"]
            low = word.lower()
            if low in _NOT_FINITE and words and _value_place(matches, index, joined):
                name, span = _name(words, sections if depth else [])
                constant = float(_NOT_FINITE[low].decode()) * (-1 if line[: match.start()].endswith(b"-") else 1)
                found.append(_Seen(name, *match.span(), word, b"", constant=constant, before=span))
                layout.joined = layout.joined or joined
                words, joined, slash, after_value = [], False, False, True
            elif low in (b"null", b"none") and words and joined:
                layout.nulls.append(_name(words, sections)[0])
                words, joined = [], False
            else:
                if joined:
                    words, joined = [], False
                words.append((word, match.start(), match.end()))
            slash = after_value = False
            continue
        mark = match[0]
        if mark in (b":", b"="):
            following = matches[index + 1] if index + 1 < len(matches) else None
            if mark == b":" and words and following is not None and following.lastgroup == "word" and not _is_value(following):
                _section(words, layout)
                words = []
            else:
                joined = True
        elif mark == b"/":
            slash = bool(found) and after_value
            words = []
            continue
        elif mark == b"[":
            square += 1
            if words and not joined and not axis_of(_name(words, [])[0]):
                _section(words, layout)
                words = []
        elif mark == b"]":
            square = max(0, square - 1)
            if words and not joined:
                _section(words, layout)
            words, joined = [], False
        elif mark == b"{":
            if joined and words:
                sections = [_name(words, [])[0]]
                depth += 1
            words, joined = [], False
        elif mark == b"}":
            depth = max(0, depth - 1)
            words, joined = [], False
        elif mark == b"(":
            if after_value or aside:
                aside += 1
                continue
        elif mark == b")":
            aside = max(0, aside - 1)
            slash = False
            continue
        elif mark == b"|" and words and _cell(matches, index):
            joined = True
        elif mark not in (b"~", b"<", b">") or not joined:
            if words and mark in (b"|", b"-", b"\t") and not joined:
                _section(words, layout)
            words, joined = [], False
        slash = False
        if mark != b"\t":
            after_value = False
    return found


def _is_value(match: re.Match[bytes]) -> bool:
    return match[0].lower() in _NOT_FINITE or match[0].lower() in (b"null", b"none")


def _value_place(matches: list[re.Match[bytes]], index: int, joined: bool) -> bool:
    """A bare `nan` after a name is a value when the next thing is not the rest of a sentence."""
    if joined or index + 1 == len(matches):
        return True
    following = matches[index + 1]
    if following.lastgroup != "word" or _is_value(following):
        return True
    return index + 2 < len(matches) and (matches[index + 2].lastgroup in ("num", "unit") or _is_value(matches[index + 2]))


def _cell(matches: list[re.Match[bytes]], index: int) -> bool:
    """`| name | 0.5 |`: the bar between a name and its number, where the number fills its cell."""
    after = [match for match in matches[index + 1 : index + 4] if match.lastgroup != "gap"]
    return len(after) == 2 and after[0].lastgroup in ("num", "unit") and after[1][0] == b"|"


def _next_is_word(matches: list[re.Match[bytes]], index: int) -> bool:
    return index + 1 < len(matches) and matches[index + 1].lastgroup == "word"


def _section(words: list[tuple[bytes, int, int]], layout: Layout) -> None:
    """A heading before the values: it matters only if it says training or validation."""
    for word, _, _ in words[-3:]:
        which = split_of(word.decode("utf-8", "replace"))
        if which and not layout.prefix:
            layout.prefix = which


def split_of(word: str) -> str:
    """`train` or `val` where the word says so."""
    parts = re.split(r"[\s_/.\-()]+", word.strip().lower())
    if any(part in HELD_OUT for part in parts):
        return "val"
    return "train" if any(part in TRAIN for part in parts) else ""


def _name(words: list[tuple[bytes, int, int]], sections: list[str]) -> tuple[str, tuple[int, int]]:
    if not words:
        return "", (0, 0)
    chosen = words[-MOST_NAME_WORDS:]
    while len(chosen) > 1 and chosen[-1][0].lower() in _FILLERS:
        chosen = chosen[:-1]
    while len(chosen) > 1 and chosen[0][0].lower() in _FILLERS:
        chosen = chosen[1:]
    text = " ".join(word.decode("utf-8", "replace") for word, _, _ in chosen)
    if sections and sections[0]:
        text = f"{sections[0]}/{text}"
    return text[:MOST_NAME], (chosen[0][1], chosen[-1][2])


def axis_of(name: str) -> str:
    """`epoch` or `step` where a name counts one of them."""
    low = name.lower().strip("#. ")
    last = low.split(" ")[-1] if " " in low else low
    if _EPOCH.fullmatch(low) or _EPOCH.fullmatch(last):
        return "epoch"
    return "step" if _STEP.fullmatch(low) or _STEP.fullmatch(last) or low in _GLOBAL else ""


def _whole(text: bytes) -> bool:
    return text.isdigit()


def _sort_out(numbers: list[_Seen], layout: Layout) -> None:
    """Give each number its part: epoch, step, value or nothing."""
    counters: list[_Seen] = []
    named_epoch = any(axis_of(seen.name) == "epoch" for seen in numbers if seen.name)
    for seen in numbers:
        axis = axis_of(seen.name) if seen.name else ""
        if not axis and seen.unit and _whole(seen.text):
            axis = axis_of(seen.unit.decode("utf-8", "replace"))  # 3epoch, 100batch
        alone = seen.total is None and _whole(seen.text) and not seen.unit
        split_only = alone and not named_epoch and seen.spaced and seen.name.lower() in TRAIN + HELD_OUT
        in_brackets = seen.bracket and _whole(seen.text) and (seen.total is not None or not (seen.name or seen.unit))
        if axis or split_only or in_brackets:
            layout.prefix = layout.prefix or split_of(seen.name)
        if axis == "epoch" or split_only:
            if layout.epoch is None and seen.constant is None:
                layout.epoch = Number(seen.name, seen.start, seen.end)
                layout.epochs = Number("epochs", *seen.total) if seen.total else None
        elif axis == "step":
            if _whole(seen.text):
                _take_step(seen, layout)
        elif seen.mean and not in_brackets:
            continue
        elif in_brackets or (seen.total is not None and _whole(seen.text) and not seen.name):
            counters.append(seen)
        elif seen.name or b"/" in seen.unit:
            name = seen.name or seen.unit.decode("utf-8", "replace")
            if not _SOURCE_FILE.search(name) and name not in {value.name for value in layout.values}:
                layout.values.append(Number(name, seen.start, seen.end, seen.constant))
                if any(letter.isdigit() for letter in seen.name):
                    layout.digits_in_names.append(seen.before)
        else:
            layout.unnamed.append(Number("", seen.start, seen.end))
    _take_counters(counters, layout)


def _take_step(seen: _Seen, layout: Layout) -> None:
    known = layout.step
    if known is None or (seen.name.lower() in _GLOBAL and known.name.lower() not in _GLOBAL):
        layout.step = Number(seen.name, seen.start, seen.end)
        layout.total = Number("total", *seen.total) if seen.total else None


def _take_counters(counters: list[_Seen], layout: Layout) -> None:
    """Counters without a name: two are epoch and batch, one is the batch."""
    if len(counters) >= 2 and layout.epoch is None:
        first = counters.pop(0)
        layout.epoch = Number("epoch", first.start, first.end)
        layout.epochs = Number("epochs", *first.total) if first.total else None
    if counters and layout.step is None and (counters[0].total is not None or layout.epoch is not None or counters[0].first):
        layout.step = Number("step", counters[0].start, counters[0].end)
        layout.total = Number("total", *counters[0].total) if counters[0].total else None
