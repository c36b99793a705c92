"""Reads configs/<group>/*.yaml and applies `group.key=value` of the command line on top, as Hydra does."""

from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "configs"


class Config(dict):
    __getattr__ = dict.__getitem__


def load(overrides: list[str]) -> Config:
    config = Config()
    for path in sorted(FOLDER.glob("*/*.yaml")):
        config[path.parent.name] = Config(yaml.safe_load(path.read_text()))
    for override in overrides:
        key, found, text = override.partition("=")
        group, _, leaf = key.partition(".")
        if not found or leaf not in config.get(group, {}):
            raise SystemExit(f"the configuration has no key {key}")
        config[group][leaf] = yaml.safe_load(text)
    return config
