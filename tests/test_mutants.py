"""The files of `make mutants` agree with the code; the run itself takes most of an hour."""

import tomllib

from tests.conftest import ROOT


def test_what_is_explained_is_in_the_code():
    kept = tomllib.loads((ROOT / "tests/mutants.toml").read_text("utf-8"))["kept"]
    for row in kept:
        (path,) = (path for path in changed() if row["function"].startswith(name(path)))
        text = " ".join((ROOT / path).read_text("utf-8").split())
        assert " ".join(row["was"].split()) in text
        assert row["becomes"]
        assert row["why"].endswith(".")
        assert row["was"] not in row["becomes"]


def test_what_is_changed_and_what_must_notice_exist():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mutmut"]
    tests = [test.partition("::")[0] for test in options["pytest_add_cli_args_test_selection"]]
    assert all((ROOT / path).is_file() for path in (*changed(), *tests))


def changed() -> list[str]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mutmut"][
        "only_mutate"
    ]


def name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".") + "."
