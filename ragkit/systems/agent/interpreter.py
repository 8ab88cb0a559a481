"""The child process of `Bashkit`: reads one command line as JSON, writes what came of it.

echo '{"line": "ls", "folder": "corpus", ...}' | python -m ragkit.systems.agent.interpreter
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

COMMANDS = 10_000_000  # the time ends a loop before
OVERHEAD = 1 << 30  # address space of Python and the interpreter beside what the line may use


def run(asked: dict[str, Any]) -> tuple[str, int, bool]:
    """Run a line; return its text, exit status, and whether the time was up."""
    import bashkit

    folder = {"host_path": asked["folder"], "vfs_path": "/corpus", "writable": False}
    limits = {"timeout_seconds": asked["seconds"], "max_memory": asked["memory_bytes"]}
    limits |= {"max_commands": COMMANDS, "max_loop_iterations": COMMANDS}
    limits |= {"readonly_filesystem": True, "allowed_mount_paths": [asked["folder"]]}
    environment = {"HOME": "/", "LC_ALL": "C.UTF-8"}
    bash = bashkit.Bash(cwd="/corpus", env=environment, mounts=[folder], **limits)
    done = bash.execute_sync(asked["line"])
    late = "execution timeout" in (done.error or "")
    text = done.stdout + ("" if late else done.stderr)
    if done.error and not late and done.error not in text:
        text += f"{done.error}\n"
    return text[: asked["output_bytes"] + 1], done.exit_code, late


def limit(memory: int, seconds: float) -> None:
    """Let the operating system end what the interpreter's own limits miss."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        cpu = int(seconds) + 2
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    limit(asked["memory_bytes"] + OVERHEAD, asked["seconds"])
    print(json.dumps(run(asked)))
