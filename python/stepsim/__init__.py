"""Predicts how long one training step of a transformer takes on given hardware.

Each function runs the program `stepsim` with --json and returns what it wrote. A config is a path, a YAML text of
several lines, a dict, or nothing, where `model=` names a model of the catalogue. A keyword `train__micro_batch=2`
overrides the key train.micro_batch, as do the items of `set`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    import pandas

    Table = Union["pandas.DataFrame", list[dict[str, Any]]]

__all__ = ["Error", "Result", "compare", "plan", "predict", "program", "run", "sweep"]

Config = Union[Mapping[str, Any], str, "os.PathLike[str]", None]

# Options that make a config from names; other keywords are keys of the config.
STARTER = ("model", "system", "strategy", "tokens", "gpus")


class Error(Exception):
    """What the program refused or could not do: its line, and its exit code (2: the input is wrong)."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class Result(Mapping[str, Any]):
    """A JSON object of the program: its keys are attributes and items. docs/reference.md names them."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no '{name}' among {', '.join(self._values)}") from None

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._values[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        return f"Result({', '.join(self._values)})"

    def to_dict(self) -> dict[str, Any]:
        """Returns the object as the program wrote it."""
        return self._values


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Result(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


def program() -> str:
    """Returns the path of the program: the one in this package, else the one in PATH."""
    inside = Path(__file__).parent / "program" / "bin" / "stepsim"
    found = str(inside) if inside.exists() else shutil.which("stepsim")
    if not found:
        raise Error("the program stepsim is neither in this package nor in PATH", 1)
    return found


def run(*arguments: str, stdin: str | None = None) -> dict[str, Any]:
    """Runs `stepsim ARGUMENTS --json - --quiet` and returns the JSON object. Raises Error with the program's line."""
    done = subprocess.run(
        [program(), *arguments, "--json", "-", "--quiet"], input=stdin or "", capture_output=True, text=True
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"stepsim ended with {done.returncode}"]
        raise Error(lines[-1].removeprefix("stepsim: "), done.returncode)
    return json.loads(done.stdout)


def _text(value: Any) -> str:
    """Returns a value as a config writes it; JSON is YAML."""
    return value if isinstance(value, str) else json.dumps(value)


def _run_on(
    command: str,
    config: Config,
    options: Sequence[str],
    set: Mapping[str, Any] | None,
    overrides: Mapping[str, Any],
) -> dict[str, Any]:
    arguments, stdin = [command], None
    if isinstance(config, Mapping):
        arguments, stdin = [command, "-"], json.dumps(config)
    elif isinstance(config, str) and "\n" in config:
        arguments, stdin = [command, "-"], config
    elif config is not None:
        arguments = [command, os.fspath(config)]
    keys = dict(set or {})
    for name, value in overrides.items():
        if name in STARTER:
            arguments += [f"--{name}", str(value)]
        else:
            keys[name.replace("__", ".")] = value
    for key, value in keys.items():
        arguments += ["--set", f"{key}={_text(value)}"]
    return run(*arguments, *options, stdin=stdin)


def _values(texts: Mapping[str, str]) -> dict[str, Any]:
    """Returns numbers and truth values in place of their texts; other texts stay."""
    values: dict[str, Any] = {}
    for key, text in texts.items():
        try:
            values[key] = json.loads(text)
        except ValueError:
            values[key] = text
    return values


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns the plain values with their paths as keys; lists and configs, which are long, are left out."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and key != "config":
            flat.update(_flat(value, f"{prefix}{key}."))
        elif not isinstance(value, (dict, list)):
            flat[prefix + key] = value
    return flat


def _table(rows: Iterable[Mapping[str, Any]]) -> Table:
    flat = [_flat(row) for row in rows]
    try:
        import pandas
    except ImportError:
        return flat
    return pandas.DataFrame(flat)


def predict(config: Config = None, *, set: Mapping[str, Any] | None = None, **overrides: Any) -> Result:
    """Predicts one step: `predict("my.yaml").prediction.step_time_s`, in seconds."""
    return Result(_run_on("predict", config, [], set, overrides))


def sweep(
    config: Config = None,
    *,
    vary: Mapping[str, Sequence[Any]],
    set: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Table:
    """Predicts every combination of the values of `vary`, {key: values}: one row each, with its values by key."""
    options: list[str] = []
    for key, values in vary.items():
        options += ["--vary", f"{key}={','.join(map(_text, values))}"]
    rows = _run_on("sweep", config, options, set, overrides)["results"]
    return _table({**_values(row.pop("set")), **row} for row in rows)


def plan(config: Config = None, *, set: Mapping[str, Any] | None = None, **overrides: Any) -> Table:
    """Searches the parallel plans that fit in memory: one row each, the fastest first."""
    return _table(_run_on("plan", config, [], set, overrides)["results"])


def compare(
    config: Config = None,
    *,
    systems: Sequence[str],
    set: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Table:
    """Compares systems, each with its best plan: one row each, the cheapest first."""
    options = ["--systems", ",".join(systems)]
    return _table(_run_on("compare", config, options, set, overrides)["results"])
