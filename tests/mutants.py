"""Change the code that computes numbers, one change at a time: some test must fail for each.

`make mutants` fetches mutmut and runs it over the functions that `mutants.toml` names. It prints how
many changes ("mutants") each module had and what became of them, then every one that no test
noticed, and ends with 1 if `mutants.toml` does not explain it. Changes to the text of an error are
counted apart. Names of mutants after the command run only these, for example
`python -m tests.mutants 'ragkit.irt.likelihood.*'`.

mutmut changes the bodies of functions; numbers at the head of a module and properties are left to
the tests.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTICED = ("killed", "timeout", "segfault")
COLUMNS = ("mutants", "noticed", "in errors", "explained", "open")


def mutmut(*arguments: str, **options) -> str | None:
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, text=True, **options).stdout


def errors(path: Path) -> set[str]:
    """Return the lines of a file that raise an error."""
    text = path.read_text("utf-8")
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Raise)]
    lines = text.splitlines()
    return {line.strip() for node in found for line in lines[node.lineno - 1 : node.end_lineno]}


def change(name: str) -> tuple[str, str, str]:
    """Return the function that a mutant changes, and its lines before and after."""
    module, _, rest = name.rpartition(".")
    rest = re.sub(r"^x_?|__mutmut_\d+$", "", rest).strip("ǁ").replace("ǁ", ".")
    lines = mutmut("show", name, capture_output=True).splitlines()
    diff = lines[lines.index(next(line for line in lines if line.startswith("@@"))) :]
    before, after = (
        " ".join(line[1:].strip() for line in diff if line.startswith(sign)) for sign in "-+"
    )
    return f"{module}.{rest}", before, after


def main(names: list[str]) -> int:
    file = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    explained = {(r["function"], r["was"], after) for r in file["kept"] for after in r["becomes"]}
    mutmut("run", "--max-children", "1", *(names or file["run"]))
    table, left, seen = defaultdict(Counter), [], set()
    results = mutmut("results", "--all", "true", capture_output=True)
    for name, status in re.findall(r"^ *(\S+__mutmut_\d+): (.+)$", results, re.M):
        if status == "not checked":
            continue
        module = name.rpartition(".")[0]
        kind = "noticed"
        if status not in NOTICED:
            seen.add(one := change(name))
            path = ROOT / f"{module.replace('.', '/')}.py"
            kind = "in errors" if one[1] in errors(path) else "open"
            if one in explained:
                kind = "explained"
            elif kind == "open":
                left.append((f"{name}: {status}", *one))
        table[module].update(["mutants", kind])
    if not names:
        left += [("explained, but noticed or gone", *one) for one in sorted(explained - seen)]
    print(f"\n{'module':<34}" + "".join(f"{column:>11}" for column in COLUMNS))
    for module, row in table.items():
        print(f"{module:<34}" + "".join(f"{row[column]:>11,}" for column in COLUMNS))
    for title, function, before, after in left:
        print(f"\n{title}\n{function}\n- {before}\n+ {after}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
