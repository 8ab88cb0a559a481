"""Download registered files into the cache: verified, atomic, resumable, with a progress bar."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from ragkit import paths
from ragkit.datasets.registry import Entry, entries, pin_path
from ragkit.errors import FetchError, HashMismatch, UsageError, did_you_mean
from ragkit.files import sha256, write_text

CHUNK = 1 << 20


def wanted(name: str) -> list[Entry]:
    """Return the fetchable files of a dataset, or the one file of that path.

    A dataset's stand-ins are left out: whoever has a network gets the official files.

    Raises
    ------
    UsageError
        If neither a dataset nor a file has that name.
    FetchError
        If none of its files can be fetched, with what to do instead.
    """
    known = entries()
    chosen = [file for file in known.values() if name in (file.dataset, file.path)]
    if not chosen:
        datasets = {file.dataset for file in known.values()}
        raise UsageError(f"no dataset or file {name!r}", did_you_mean(name, datasets | set(known)))
    fetchable = [file for file in chosen if file.url and (file.official or file.path == name)]
    if not fetchable:
        raise FetchError(
            f"{name} cannot be fetched: {chosen[0].path} is {chosen[0].origin} at {chosen[0].revision}",
            "make it from there, or name a folder that has it as DATA=...",
        )
    return fetchable


def fetch(
    file: Entry, *, url: str | None = None, progress: bool = True, timeout: float = 60.0
) -> Path:
    """Download one file into the cache and return its path; a verified copy is kept as it is.

    An interrupted download leaves `NAME.part`, which the next call continues. The file takes its
    place only after its size and digest are right: the registered digest, or, where there is
    none, the one that the server publishes; the latter is then pinned beside the file.

    Parameters
    ----------
    file : Entry
    url : str, optional
        Another address for the same file.
    progress : bool
        Whether to draw a progress bar.
    timeout : float
        Seconds without a byte before giving up.

    Raises
    ------
    FetchError
        If the server or the disk says no. A private or gated file names the variable to set.
    HashMismatch
        If what came is not the registered file; it is deleted.
    """
    target = paths.cache_dir() / file.path
    if target.is_file() and (not file.sha256 or sha256(target) == file.sha256):
        return target
    part = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    published, revision = _download(file, url or file.url, part, progress, timeout)
    digest = sha256(part)
    expected = file.sha256 or published
    if expected and digest != expected:
        part.unlink()
        raise HashMismatch(
            f"{file.path}: the download has sha256 {digest[:12]}..., expected {expected[:12]}...",
            "the source has changed or the transfer was damaged; nothing was kept",
        )
    if not file.sha256:
        pin = {
            "url": file.url,
            "sha256": digest,
            "published": bool(published),
            "revision": revision,
        }
        write_text(pin_path(target), json.dumps(pin, indent=1) + "\n")
    os.replace(part, target)
    return target


def _download(file: Entry, url: str, part: Path, progress: bool, timeout: float) -> tuple[str, str]:
    """Fill `part`; return the digest that the server publishes and its revision, if any."""
    import httpx
    from tqdm.auto import tqdm

    start = part.stat().st_size if part.is_file() else 0
    headers = {"Accept-Encoding": "identity", **_token(url)}
    if start:
        headers["Range"] = f"bytes={start}-"
    facts = {"digest": "", "revision": ""}

    def note(response: httpx.Response) -> None:
        # The hub states a large file's digest on the first hop, before it redirects.
        tag = response.headers.get("x-linked-etag", "").strip('"')
        if re.fullmatch(r"[0-9a-f]{64}", tag):
            facts["digest"] = tag
        facts["revision"] = response.headers.get("x-repo-commit", facts["revision"])

    try:
        with (
            httpx.Client(
                follow_redirects=True, timeout=timeout, event_hooks={"response": [note]}
            ) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            if response.status_code == 416 and start:
                return facts["digest"], facts["revision"]
            if response.status_code in (401, 403):
                raise FetchError(
                    f"{file.path}: {response.status_code} from {httpx.URL(url).host}",
                    "accept its terms on the hub if it is gated, then set HF_TOKEN",
                )
            if response.status_code >= 400:
                raise FetchError(
                    f"{file.path}: {response.status_code} {response.reason_phrase} "
                    f"from {httpx.URL(url).host}"
                )
            if response.status_code != 206:
                start = 0
            length = int(response.headers.get("content-length", 0)) or None
            total = length + start if length else file.bytes
            _check_space(part, (total or 0) - start, file)
            with (
                open(part, "r+b" if start else "wb") as stream,
                tqdm(
                    total=total,
                    initial=start,
                    unit="B",
                    unit_scale=True,
                    desc=Path(file.path).name,
                    disable=not progress,
                ) as bar,
            ):
                stream.seek(start)
                for chunk in response.iter_bytes(CHUNK):
                    stream.write(chunk)
                    bar.update(len(chunk))
                stream.truncate()
    except httpx.HTTPError as error:
        done = part.stat().st_size if part.is_file() else 0
        raise FetchError(
            f"{file.path}: {type(error).__name__} after {done:,} bytes from {httpx.URL(url).host}",
            "run the same command again: it continues where it stopped",
        ) from None
    except OSError as error:
        raise FetchError(f"{file.path}: cannot write {part} ({error.strerror or error})") from None
    return facts["digest"], facts["revision"]


def _token(url: str) -> dict[str, str]:
    import httpx

    if httpx.URL(url).host != "huggingface.co":
        return {}
    from huggingface_hub import get_token

    token = get_token()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _check_space(part: Path, missing: int, file: Entry) -> None:
    free = shutil.disk_usage(part.parent).free
    if missing > free:
        raise FetchError(
            f"{file.path}: needs {missing / 1e9:.1f} GB, {part.parent} has {free / 1e9:.1f} GB free",
            "free some space, or set RAGKIT_CACHE to another disk",
        )
