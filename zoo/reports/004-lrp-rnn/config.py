"""Reads config.yaml and applies `--opts KEY VALUE ...` on top of it."""

import yaml


class Config(dict):
    __getattr__ = dict.__getitem__

    @classmethod
    def load(cls, path: str, opts: list[str]) -> "Config":
        with open(path) as f:
            config = cls.of(yaml.safe_load(f))
        if len(opts) % 2:
            raise SystemExit(f"--opts needs pairs of KEY VALUE, got {opts}")
        for key, value in zip(opts[::2], opts[1::2]):
            config.override(key, value)
        return config

    @classmethod
    def of(cls, tree: dict) -> "Config":
        return cls({k: cls.of(v) if isinstance(v, dict) else v for k, v in tree.items()})

    def override(self, dotted: str, text: str) -> None:
        *parents, leaf = dotted.split(".")
        node = self
        for name in parents:
            node = node.get(name, {})
        if leaf not in node:
            raise SystemExit(f"--opts: the configuration has no key {dotted}")
        value = yaml.safe_load(text)
        node[leaf] = float(value) if isinstance(node[leaf], float) else value
