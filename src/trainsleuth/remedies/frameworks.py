"""Settings of trainers that the user only configures: the argument of TrainingArguments or of Lightning's Trainer that cures."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from trainsleuth.remedies.desk import Way, in_the_files
from trainsleuth.remedies.expressions import argument, called, set_argument
from trainsleuth.remedies.source import NotPossible, Source, called_name

HUGGING_FACE = ("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig")
LIGHTNING = ("Trainer",)


def trainer_setting(hugging_face: Mapping[str, str] | None = None, lightning: Mapping[str, str] | None = None) -> Way:
    """A way that sets these arguments where the file configures one of the two."""

    def way(source: Source) -> str:
        for names, settings in ((HUGGING_FACE, hugging_face), (LIGHTNING, lightning)):
            for call in called(source, *names):
                if settings and not _is_the_other_trainer(call, names):
                    return _set(source, call, settings)
        raise NotPossible(f"{source.path.name} configures no trainer")

    return in_the_files(way)


def _is_the_other_trainer(call: cst.Call, names: tuple[str, ...]) -> bool:
    """transformers has a Trainer too; it takes a model, Lightning's does not."""
    return names is LIGHTNING and (
        argument(call, None, "model", "args", "train_dataset") is not None or argument(call, 0) is not None
    )


def _set(source: Source, call: cst.Call, settings: Mapping[str, str]) -> str:
    said = []
    for name, value in settings.items():
        known = argument(call, None, name)
        if known is not None and source.code(known.value) == value:
            raise NotPossible(f"{called_name(call)} has {name}={value} already")
        set_argument(source, call, name, value)
        said.append(f"{name}={value}")
    return f"{called_name(call)} gets {', '.join(said)} (line {source.first_line(call)})"
