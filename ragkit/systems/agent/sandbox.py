"""Bash over a folder that can be read, and nothing else: one interface, two sandboxes.

- `Sandlock` runs the machine's own bash and GNU tools under Landlock and seccomp (Linux 6.12 and
  later). The kernel denies every file outside the folder but the tools, writing, the network
  and `/proc`.
- `Bashkit` interprets bash inside a child process over a virtual file system in which the folder
  is mounted read-only. It works wherever its wheel installs. Its `grep -r` takes seconds on
  20,000 files, and refuses more than 150 MB.

Both limit a line's time, memory and output. The folder must hold plain files alone, such as
`corpus_tree` writes: a second hard link or a pipe is refused when the sandbox is opened.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ragkit import checks
from ragkit.errors import DataError, ModelError

TOOLS = ("/usr/bin", "/bin", "/usr/lib", "/lib", "/lib64", "/usr/lib64", "/etc/ld.so.cache")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/"}
PROCESSES = 64
TIME_IS_UP, REFUSED = 124, 126
LONGEST_LINE = 100_000
START = 2.0  # seconds for a child process to start, on a busy machine
# The line's output goes through head, so that no line can fill the memory with it.
WRAPPED = '{ eval "$1"; } 2>&1 </dev/null | head -c "$2"; exit "${PIPESTATUS[0]}"'


@dataclass(frozen=True)
class Output:
    """The result of a command line.

    `text` is standard output and error; control characters other than newline and tab are replaced
    by U+FFFD. `status` is the exit status; 124 if the time was up, 126 if the line was not run.
    `truncated`: output was left out, for its length or the time.
    """

    text: str
    status: int
    truncated: bool = False


class Sandbox:
    """Run command lines over the files of a folder. Use `open_sandbox` to get one.

    One line may take so many `seconds` (above 0), print so many `output_bytes` (at least 200) and
    use so many `memory_bytes` (at least 16 MiB), over all its processes. `DataError` if the folder
    is missing, or holds a link, a pipe, a device or a file with a second name.
    """

    name = ""

    def __init__(
        self,
        folder: str | os.PathLike,
        *,
        seconds: float = 30.0,
        output_bytes: int = 20_000,
        memory_bytes: int = 512 << 20,
    ):
        self.folder = Path(folder).resolve()
        self.seconds = checks.number(seconds, "seconds", least=0.01)
        self.output_bytes = checks.whole(output_bytes, "output_bytes", least=200)
        self.memory_bytes = checks.whole(memory_bytes, "memory_bytes", least=16 << 20)
        check_plain(self.folder)

    def run(self, line: str, *, seconds: float | None = None) -> Output:
        """Run a command line in the folder, in so many seconds, if less than the sandbox allows.

        It never raises for what the line does.
        """
        if not isinstance(line, str) or "\0" in line or len(line) > LONGEST_LINE:
            why = f"not run: a line is text of at most {LONGEST_LINE:,} characters\n"
            return Output(why, REFUSED)
        line = line.encode("utf-8", "replace").decode("utf-8")
        seconds = self.seconds if seconds is None else max(0.01, min(seconds, self.seconds))
        raw, status, late = self._run(line, seconds)
        cut, raw = len(raw) > self.output_bytes, raw[: self.output_bytes]
        text = raw.decode("utf-8", "replace")
        text = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
        text += f"\n[output cut at {self.output_bytes:,} bytes]\n" if cut else ""
        text += f"\n[stopped after {seconds:g} s]\n" if late else ""
        return Output(text, TIME_IS_UP if late else status, cut or late)

    def _run(self, line: str, seconds: float) -> tuple[bytes, int, bool]:
        """Return at most `output_bytes` + 1 bytes, the exit status, and if the time was up."""
        raise NotImplementedError


class Sandlock(Sandbox):
    """Bash and GNU tools under Landlock and seccomp; see `Sandbox`."""

    name = "sandlock"

    @staticmethod
    def missing() -> str:
        """Return why it cannot be used here, or an empty string."""
        try:
            import sandlock
        except ImportError:
            return "the package sandlock is not installed (Linux only)"
        found, least = sandlock.landlock_abi_version(), sandlock.min_landlock_abi()
        if found < least:
            return f"this kernel has Landlock {found}, sandlock needs {least} (Linux 6.12)"
        return "" if Path("/bin/bash").exists() else "there is no /bin/bash"

    def _run(self, line, seconds):
        import sandlock

        readable = [*(path for path in TOOLS if Path(path).exists()), str(self.folder)]
        limits = {"max_memory": self.memory_bytes, "max_processes": PROCESSES, "no_coredump": True}
        limits |= {"fs_readable": readable, "fs_writable": ["/dev/null"], "clean_env": True}
        box = sandlock.Sandbox(env=ENVIRONMENT, cwd=str(self.folder), **limits)
        command = ["/bin/bash", "-c", WRAPPED, "bash", line, str(self.output_bytes + 1)]
        done = box.run(command, timeout=seconds)
        late = done.reason == sandlock.ExitReason.TIMEOUT
        return done.stdout, done.exit_code, late


class Bashkit(Sandbox):
    """Bash interpreted in a child process; see `Sandbox`."""

    name = "bashkit"

    @staticmethod
    def missing() -> str:
        """Return why it cannot be used here, or an empty string."""
        return "" if find_spec("bashkit") else "the package bashkit is not installed"

    def _run(self, line, seconds):
        asked = {"line": line, "folder": str(self.folder), "seconds": seconds}
        asked |= {"memory_bytes": self.memory_bytes, "output_bytes": self.output_bytes}
        child = [sys.executable, str(Path(__file__).with_name("interpreter.py"))]
        environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        environment |= {k: v for k, v in os.environ.items() if k in ("SYSTEMROOT", "VIRTUAL_ENV")}
        pipes = {"input": json.dumps(asked).encode(), "capture_output": True}
        try:
            done = subprocess.run(child, timeout=seconds + START, env=environment, **pipes)
            text, status, late = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            return b"", TIME_IS_UP, True
        except ValueError:  # the child died, of its memory limit for one
            return b"[the line needed too much memory]\n", REFUSED, False
        return text.encode("utf-8", "replace"), status, late


SANDBOXES = {kind.name: kind for kind in (Sandlock, Bashkit)}


def open_sandbox(folder: str | os.PathLike, kind: str = "auto", **limits) -> Sandbox:
    """Return a sandbox over a folder, with the limits of `Sandbox`.

    The kind "auto" takes sandlock where the kernel allows it, else bashkit. `ModelError` if the
    sandbox is not available here; the message says why.

    >>> path = Path("files") / "a.txt"
    >>> path.parent.mkdir()
    >>> _ = path.write_text("no refund\\n")
    >>> open_sandbox("files").run("grep -ril refund .").text
    './a.txt\\n'
    """
    checks.choice(kind, "sandbox", ["auto", *SANDBOXES])
    checks.options(limits, ("seconds", "output_bytes", "memory_bytes"), "a sandbox")
    reasons = []
    for name in SANDBOXES if kind == "auto" else [kind]:
        if not (reason := SANDBOXES[name].missing()):
            return SANDBOXES[name](folder, **limits)
        reasons.append(f"{name}: {reason}")
    hint = 'pip install bashkit, or use the policy "offline", which runs no command'
    raise ModelError(f"no sandbox for command lines: {'; '.join(reasons)}", hint)


def check_plain(folder: Path) -> None:
    """Raise `DataError` unless a folder holds folders and plain files with one name alone."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder")
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(above, name)
            found = os.lstat(path)
            plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
            if not plain and not stat.S_ISDIR(found.st_mode):
                what = "links, pipes, devices and files with a second name are not searched"
                hint = "write the folder anew with corpus_tree"
                raise DataError(f"{path!r} is no plain file: {what}", hint)
