"""Run every benchmark of this folder and print one table: `python -m benchmarks [NAME ...]`.

A benchmark is a module with `run() -> list[Ratio]`. Exit status: 0 all bounds met, 1 a bound is missed, 2 a benchmark
could not be measured (and no bound is missed).
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Sequence
from typing import cast

import benchmarks
from benchmarks.model import NotMeasured, Ratio
from benchmarks.table import table


def main(names: Sequence[str]) -> int:
    found = discover()
    unknown = sorted(set(names) - found.keys())
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(found)}", file=sys.stderr)
        return 2
    ratios: list[Ratio] = []
    missing: list[str] = []
    for name, run in found.items():
        if names and name not in names:
            continue
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        try:
            ratios += run()
        except NotMeasured as reason:
            missing.append(f"{name} was not measured: {reason}")
    print("\n".join([*table(ratios), *missing]))
    if not all(ratio.met for ratio in ratios):
        return 1
    return 2 if missing else 0


def discover() -> dict[str, Callable[[], list[Ratio]]]:
    """Every module of this folder that has a `run`, by name."""
    modules = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name[0] != "_")
    loaded = {name: importlib.import_module(f"benchmarks.{name}") for name in modules}
    return {
        name: cast("Callable[[], list[Ratio]]", module.run) for name, module in loaded.items() if hasattr(module, "run")
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
