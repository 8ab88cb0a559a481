"""Download registered files into the cache: verified, atomic, resumable, with a progress bar."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from ragkit import display, paths
from ragkit.datasets.registry import Entry, entries, pin_path, read_pin
from ragkit.errors import FetchError, HashMismatch, UsageError, did_you_mean
from ragkit.files import sha256, write_text

HUB = "https://huggingface.co/"
AGAIN = "run the same command again: it continues where it stopped"
SPACE = "free some space, or set RAGKIT_CACHE to another disk"


def hub() -> str:
    """Return the address of the Hugging Face hub: `$HF_ENDPOINT`, else the official one.

    No other host is sent the user's token; the slash at the end closes the host's name.

    >>> hub()
    'https://huggingface.co/'
    """
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/") + "/"


def wanted(name: str) -> list[Entry]:
    """Return the official files of a dataset that can be fetched, or the one file of that path.

    Raises `UsageError` if neither a dataset nor a file has that name, `FetchError` if none of its
    files can be fetched.

    >>> [file.path for file in wanted("liverag")]
    ['liverag/LiveRAG_banchmark_20250910.parquet']
    """
    known = entries()
    chosen = [file for file in known.values() if name in (file.dataset, file.path)]
    if not chosen:
        names = {file.dataset for file in known.values()} | set(known)
        raise UsageError(f"no dataset or file {name!r}", did_you_mean(name.lower(), names))
    fetchable = [file for file in chosen if file.url and (file.official or file.path == name)]
    if not fetchable:
        first = chosen[0]
        raise FetchError(
            f"{name} cannot be fetched: {first.path} is {first.origin} at {first.revision}",
            "make it from there, or name a folder that has it as DATA=...",
        )
    return fetchable


def fetch(file: Entry, *, refresh: bool = False, timeout: float = 60.0) -> Path:
    """Download one file into the cache and return its path; a verified copy is kept as it is.

    An interrupted download leaves `NAME.part`, which the next call continues if the server still
    has the same file. The file takes its place only if its digest is the one that the server
    publishes, else the registered one. If it is not registered, the digest is kept beside the file
    ("pinned"). `refresh` asks the server for another version than that in the cache; `timeout` is
    in seconds without a byte. Raises `FetchError` if the server or the disk says no, `HashMismatch`
    if what came is not the published or registered file; it is deleted.
    """
    target = paths.cache_dir() / file.path
    part = target.with_name(target.name + ".part")
    try:
        pin = read_pin(target) if target.is_file() else {}
        expected = pin.get("sha256") or file.sha256
        intact = target.is_file() and (not expected or sha256(target) == expected)
        if intact and not refresh:
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        answer = _download(file, part, pin.get("etag", "") if intact else "", timeout)
        if answer is None:
            return target
        digest, expected = sha256(part), answer["digest"] or file.sha256
        if expected and digest != expected:
            part.unlink()
            _tag(part).unlink(missing_ok=True)
            raise HashMismatch(
                f"{file.path}: the download has sha256 {digest[:12]}..., "
                f"expected {expected[:12]}...",
                "the source has changed or the transfer was damaged; nothing was kept",
            )
        if digest == file.sha256:
            pin_path(target).unlink(missing_ok=True)
        else:
            pin = {"url": file.url, "sha256": digest, "published": bool(answer["digest"])}
            pin |= {"revision": answer["revision"], "etag": answer["etag"]}
            write_text(pin_path(target), json.dumps(pin, indent=1) + "\n")
        os.replace(part, target)
        _tag(part).unlink(missing_ok=True)
    except OSError as error:
        words = f"cannot write {part} ({error.strerror or error})"
        raise FetchError(f"{file.path}: {words}", f"{SPACE}; the same command continues") from None
    return target


def _download(file: Entry, part: Path, known: str, timeout: float) -> dict | None:
    """Fill `part` and return what the server says; None if the version `known` is the newest."""
    import httpx2

    url = hub() + file.url.removeprefix(HUB) if file.url.startswith(HUB) else file.url
    said = {"digest": "", "revision": "", "etag": ""}

    def note(response: httpx2.Response) -> None:
        # The hub states a large file's digest on the first hop, before it redirects.
        tag = response.headers.get("x-linked-etag", "").strip('"')
        if re.fullmatch(r"[0-9a-f]{64}", tag):
            said["digest"] = tag
        said["revision"] = response.headers.get("x-repo-commit", said["revision"])
        said["etag"] = response.headers.get("etag", "")

    # Without a digest or an ETag nothing would tell another version from the one that was begun.
    begun = part.is_file() and (file.sha256 or _tag(part).is_file())
    options = {"follow_redirects": True, "timeout": timeout, "event_hooks": {"response": [note]}}
    try:
        with httpx2.Client(**options) as client:
            for start in dict.fromkeys((part.stat().st_size if begun else 0, 0)):
                headers = {"Accept-Encoding": "identity", **_token(url)}
                if start:
                    headers["Range"] = f"bytes={start}-"
                elif known:
                    headers["If-None-Match"] = known
                with client.stream("GET", url, headers=headers) as response:
                    if known and response.status_code == 304:
                        return None
                    rest = start and response.status_code in (206, 416)
                    if rest and not _continues(response, part, start):
                        continue
                    if not (rest and response.status_code == 416):
                        _write(response, file, part, start, bool(said["digest"]))
                    return said
    except httpx2.InvalidURL as error:
        raise FetchError(f"{file.path}: the address cannot be read ({error})") from None
    except httpx2.HTTPError as error:
        done = part.stat().st_size if part.is_file() else 0
        words = f"{type(error).__name__} after {done:,} bytes from {urlsplit(url).hostname}"
        raise FetchError(f"{file.path}: {words}", AGAIN) from None


def _continues(response, part: Path, start: int) -> bool:
    """Whether the answer to a request for the rest belongs to what is there already."""
    headers = response.headers
    begin, _, total = headers.get("content-range", "").removeprefix("bytes ").partition("/")
    if response.status_code == 416:  # nothing is left of a file of that size
        return total == str(start)
    tag, now = _tag(part), headers.get("etag", "")
    same = not (now and tag.is_file()) or tag.read_text("utf-8") == now
    return same and begin.startswith(f"{start}-") and "content-encoding" not in headers


def _write(response, file: Entry, part: Path, start: int, published: bool) -> None:
    """Write the file, or the rest of it from byte `start`, as it comes."""
    headers, status, host = response.headers, response.status_code, response.url.host
    if status in (401, 403):
        hint = "accept its terms on the hub if it is gated, then set HF_TOKEN"
        raise FetchError(f"{file.path}: {status} from {host}", hint)
    if status != 200 and not (status == 206 and start):
        raise FetchError(f"{file.path}: {status} {response.reason_phrase} from {host}")
    framed = {"content-length", "transfer-encoding"} & set(headers)
    if not (framed or published or file.sha256):
        words = f"{host} states neither size nor digest, a cut could not be noticed"
        raise FetchError(f"{file.path}: {words}")
    if status == 200:
        start = 0
        size = "" if "content-encoding" in headers else headers.get("content-length", "")
    else:
        size = headers.get("content-range", "").rpartition("/")[2]
    total = int(size) if size.isdigit() else file.bytes
    missing, free = (total or 0) - start, shutil.disk_usage(part.parent).free
    if missing > free:
        words = f"needs {missing:,} bytes, {part.parent} has {free:,} free"
        raise FetchError(f"{file.path}: {words}", SPACE)
    if not start:
        part.unlink(missing_ok=True)
        _tag(part).unlink(missing_ok=True)
        tag = headers.get("etag", "")
        if tag and not tag.startswith("W/"):
            write_text(_tag(part), tag)
    with open(part, "ab") as stream, display.Bar(Path(file.path).name, total, "B") as bar:
        bar.update(start)
        for chunk in response.iter_bytes():
            stream.write(chunk)
            bar.update(len(chunk))
    done = part.stat().st_size
    if size.isdigit() and done < int(size):
        raise FetchError(f"{file.path}: {done:,} of {int(size):,} bytes came", AGAIN)


def _tag(part: Path) -> Path:
    """Return where the ETag of the version that was begun is kept."""
    return part.with_name(part.name + ".etag")


def _token(url: str) -> dict[str, str]:
    if not url.startswith(hub()):
        return {}
    from huggingface_hub import get_token

    token = get_token() or ""
    if not (token.isascii() and token.isprintable()):
        raise FetchError("HF_TOKEN holds characters that no token has", "set it again")
    return {"Authorization": f"Bearer {token}"} if token else {}
