"""Counts that a log gives in words: `0 samples`, `16/16 (100.0%)`; by their structure, not by the wording of one project."""

from __future__ import annotations

import re

from trainsleuth.case.record_chart import Message, SourceRecord

_THINGS = (
    r"(?:samples?|items?|images?|files?|examples?|records?|rows?|sequences?|clips?|frames?|batches|videos?|documents?|utterances?|pairs?|entries|"
    r"data ?points?|"
    r"instances?|sentences?|tokens?|サンプル|件|枚|个样本|條|条|样本|张|개|샘플)"
)
_ZERO = re.compile(rf"(?i)(?<![\w.,:/%-])0\s*(?:[\w-]+\s+){{0,2}}?{_THINGS}(?![\w/])")
_ZERO_AFTER = re.compile(
    rf"(?i)(?:{_THINGS}|dataset size|size of (?:the )?dataset|len\([\w.]*(?:data|set)[\w.]*\)|num_samples|データ数|数据量|样本数|"
    r"サンプル数|샘플 수)(?:\s+(?:found|loaded|in [\w'\"/.-]+))?\s*[:=]\s*0(?![\d.%])"
)
_SOME = re.compile(rf"(?i)(?<![\w.,:/%-])[1-9]\d*\s*(?:[\w-]+\s+){{0,2}}?{_THINGS}(?![\w/])")
_GOOD_NEWS = re.compile(
    r"(?i)missing|corrupt|skip|fail|error|invalid|\bbad\b|remov|filter|drop|duplicat|exclud|ignor|unmatch|truncat|backgroun|discard|lost|"
    r"unlabel|reject|left over|remaining|pending|欠損|破損|损坏|跳过|누락|건너"
)
CACHE = re.compile(r"(?i)cache|キャッシュ|缓存|캐시")
_FALLBACK = re.compile(
    r"(?i)fall(?:ing)?[ -]?back|on[- ]the[- ]fly|cache miss|re-?comput|re-?generat|not (?:found )?in (?:the )?cache|"
    r"フォールバック|回退|폴백|キャッシュミス"
)
_SHARE = re.compile(r"(?<![\d.])(\d+)\s*/\s*(\d+)(?![\d/])")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def says_nothing_there(message: Message) -> bool:
    """A line that counts data and arrives at zero, the last time too."""
    return bool(_zero(message.text) and _zero(message.last_text)) and not _GOOD_NEWS.search(message.text)


def _zero(text: str) -> bool:
    return _ZERO.search(text) is not None or _ZERO_AFTER.search(text) is not None


def also_counts_some(message: Message) -> bool:
    return _SOME.search(message.text) is not None


def messages(source: SourceRecord) -> list[Message]:
    return sorted(source.messages.values(), key=lambda message: message.line)


def fallback_share(text: str) -> float | None:
    """The share of cases in which a prepared result was not used, where a line tells it."""
    return share(text) if _FALLBACK.search(text) else None


def share(text: str) -> float | None:
    found = _SHARE.search(text)
    if found and int(found[2]) > 0 and int(found[1]) <= int(found[2]):
        return int(found[1]) / int(found[2])
    found = _PERCENT.search(text)
    return float(found[1]) / 100 if found and float(found[1]) <= 100 else None
