"""Run the benchmarks and print one table; exit 1 if a target was missed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main(names: list[str]) -> int:
    here = Path(__file__).parent
    known = sorted(path.stem.removeprefix("bench_") for path in here.glob("bench_*.py"))
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"no benchmark {unknown[0]!r}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    missed = 0
    head = f"{'what':<58}{'ours':>11}{'peer':>11}  {'peer is':<26}{'value':>11}{'target':>12}"
    print(head, "-" * len(head), sep="\n")
    for name in names or known:
        for row in importlib.import_module(f"tests.bench.bench_{name}").run():
            missed += not row.reached
            sign = ">=" if row.at_least else "<="
            print(
                f"{row.what:<58}{row.ours:>11.4g}{row.peer:>11.4g}  {row.peer_name:<26}"
                f"{row.value:>11.4g}{sign:>4}{row.target:>8.4g}{'' if row.reached else '  MISSED'}",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
