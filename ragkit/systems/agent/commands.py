"""The commands of the sandbox, each written here: no program is ever started.

A command is a function of its words that returns what will run: a function of a `Desk` and of
the bytes that come through the pipe (None at its head), which yields the bytes that go out.
Options are read before anything runs. What is allowed does as GNU's tools do; where that differs
from here, the command's text says so.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from ragkit.systems.agent.jail import BLOCK, Budget, Entry, Jail, Place, joined, printable
from ragkit.systems.agent.line import Refused, Word
from ragkit.systems.agent.options import Options, read, whole
from ragkit.systems.agent.patterns import Pattern, PatternError, Wildcard

Bytes = Iterator[bytes]
Command = Callable[["Desk", Bytes | None], Bytes]
COUNT = 10**15
CONTEXT = 100  # lines of context: they are held
OBJECT = 64  # bytes that a held line takes beside its own
NESTED = 40  # brackets and negations within each other in an expression of find
_HERE = Word(".")


class Desk:
    """What one command of a pipeline works with: the files, the budget, status and messages."""

    def __init__(self, name: str, jail: Jail, budget: Budget, messages: list[str] | None):
        self.name, self.jail, self.budget = name, jail, budget
        self.messages = messages
        self.status = 0

    def say(self, message: str, status: int) -> None:
        self.status = max(self.status, status)
        if self.messages is not None and len(self.messages) < 50:
            self.messages.append(f"{self.name}: {message}")

    def complain(self, shown: str, error: OSError | str, status: int = 1) -> None:
        reason = error if isinstance(error, str) else (error.strerror or "cannot be read")
        self.say(f"{printable(shown).decode('utf-8', 'replace')}: {reason}", status)

    def places(self, words: Iterable[Word]) -> Iterator[Place]:
        for word in words:
            yield from self.jail.expand(word, self.budget)

    def content(self, where: Place) -> Bytes:
        """Yield the bytes of a file; an `OSError` comes before the first."""
        if self.jail.kind(where) == "d":
            raise IsADirectoryError(21, "Is a directory")
        with self.jail.directory(where.parts[:-1]) as parent:
            yield from self.jail.read(where.parts[-1], parent, self.budget)

    def inputs(self, words: tuple[Word, ...], stdin: Bytes | None, status: int = 1):
        """Yield (shown path, bytes) of each file, or of the pipe, where no file is named."""
        if not words:
            if stdin is None:
                self.say("no file is named and nothing comes through a pipe", status)
                return
            yield "", stdin
            return
        for where in self.places(words):
            try:
                content = self.content(where)
                first = next(content, b"")
            except OSError as error:
                self.complain(where.shown, error, status)
                continue
            yield where.shown, self._guarded(where.shown, chain((first,), content), status)

    def _guarded(self, shown: str, content: Bytes, status: int) -> Bytes:
        try:
            yield from content
        except OSError as error:
            self.complain(shown, error, status)


def blocks(content: Bytes, budget: Budget) -> Bytes:
    """Yield bytes in blocks that end with a newline, as far as lines are shorter than a block."""
    held: list[bytes] = []
    size = 0
    for chunk in content:
        budget.check()
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join((*held, chunk[:end]))
            held, size = [], 0
        if end < len(chunk):
            held.append(chunk[end:])
            size += len(chunk) - end
            if size > BLOCK:
                yield b"".join(held)
                held, size = [], 0
    if held:
        yield b"".join(held)


def lines(content: Bytes, budget: Budget) -> Bytes:
    """Yield lines with their newline; the last may lack it, and one too long comes in pieces."""
    for block in blocks(content, budget):
        yield from _cut(block)


def _cut(block: bytes) -> Bytes:
    start = 0
    while (end := block.find(b"\n", start)) >= 0:
        yield block[start : end + 1]
        start = end + 1
    if start < len(block):
        yield block[start:]


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _text(line: bytes) -> str:
    return line.removesuffix(b"\n").decode("utf-8", "surrogateescape")


# cat, head, tail, sed


def cat(words: tuple[Word, ...]) -> Command:
    """cat [-n] [FILE]..."""
    options = read("cat", words, "n", {"number": "n"}, hints={"-A": "use cat"})

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        number, ended = 0, True
        for _, content in desk.inputs(options.operands, stdin):
            if "n" not in options:
                yield from content
                continue
            for line in lines(content, desk.budget):
                if ended:
                    number += 1
                    yield b"%6d\t" % number
                yield line
                ended = line.endswith(b"\n")

    return run


_AMOUNTS = {"lines": "n", "bytes": "c", "quiet": "q", "silent": "q", "verbose": "v"}


def _amount(command: str, options: Options) -> tuple[str, str, int]:
    """Return the unit ("n" or "c"), the sign before the number, and the number."""
    unit = options.last("nc") or "n"
    text = options.values.get(unit, "10")
    sign = text[:1] if text[:1] in "+-" else ""
    if sign == "+" and command == "head":
        sign, text = "", text[1:]
    return unit, sign, whole(command, unit, text.removeprefix(sign), COUNT)


def _titled(desk: Desk, options: Options, stdin: Bytes | None):
    """Yield (heading, bytes) of each input, as head and tail show several files."""
    several = len(options.operands) > 1 or any(
        word.glob and len(desk.jail.expand(word, desk.budget)) > 1 for word in options.operands
    )
    show = options.last("qv") == "v" or (several and options.last("qv") != "q")
    before = b""
    for shown, content in desk.inputs(options.operands, stdin):
        heading = b"%s==> %s <==\n" % (before, printable(shown) or b"standard input")
        yield heading if show else b"", content
        before = b"\n"


def head(words: tuple[Word, ...]) -> Command:
    """head [-n N] [-c N] [-qv] [FILE]...; N may be negative: all but the last N."""
    options = read("head", words, "n:c:qv", _AMOUNTS, digits="n")
    unit, sign, amount = _amount("head", options)

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        for heading, content in _titled(desk, options, stdin):
            yield heading
            if sign:
                yield from _all_but_last(content, unit, amount, desk.budget)
            elif unit == "c":
                yield from _first_bytes(content, amount)
            else:
                yield from _first_lines(content, amount, desk.budget)

    return run


def _first_bytes(content: Bytes, amount: int) -> Bytes:
    while amount > 0 and (chunk := next(content, b"")):
        yield chunk[:amount]
        amount -= len(chunk)


def _first_lines(content: Bytes, amount: int, budget: Budget) -> Bytes:
    if amount == 0:
        return
    for line in lines(content, budget):
        yield line
        amount -= line.endswith(b"\n")
        if amount == 0:
            return


def _all_but_last(content: Bytes, unit: str, amount: int, budget: Budget) -> Bytes:
    held: deque[bytes] = deque()
    if unit == "n":
        for line in lines(content, budget):
            budget.hold(len(line) + OBJECT)
            held.append(line)
            if len(held) > amount:
                budget.hold(-len(held[0]) - OBJECT)
                yield held.popleft()
        return
    size = 0
    for chunk in content:
        budget.hold(len(chunk) + OBJECT)
        held.append(chunk)
        size += len(chunk)
        while held and size - len(held[0]) >= amount:
            size -= len(held[0])
            budget.hold(-len(held[0]) - OBJECT)
            yield held.popleft()
    yield b"".join(held)[: max(size - amount, 0)]


def tail(words: tuple[Word, ...]) -> Command:
    """tail [-n N] [-c N] [-qv] [FILE]...; +N: from the N-th on."""
    options = read(
        "tail", words, "n:c:qv", _AMOUNTS, digits="n", hints={"-f": "files do not grow here"}
    )
    unit, sign, amount = _amount("tail", options)

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        if amount == 0 and sign != "+":
            return  # GNU's tail then does not even look
        for heading, content in _titled(desk, options, stdin):
            yield heading
            if sign == "+":
                yield from _from(content, unit, max(amount - 1, 0), desk.budget)
            else:
                yield from _last(content, unit, amount, desk.budget)

    return run


def _from(content: Bytes, unit: str, skip: int, budget: Budget) -> Bytes:
    pieces = lines(content, budget) if unit == "n" else content
    for piece in pieces:
        if skip <= 0:
            yield piece
        elif unit == "n":
            skip -= piece.endswith(b"\n")
        else:
            yield piece[skip:]
            skip -= len(piece)


def _last(content: Bytes, unit: str, amount: int, budget: Budget) -> Bytes:
    held: deque[bytes] = deque()
    size = 0
    for piece in lines(content, budget) if unit == "n" else content:
        budget.hold(len(piece) + OBJECT)
        held.append(piece)
        size += len(piece)
        while held and (
            len(held) > amount if unit == "n" else size - len(held[0]) >= amount or amount == 0
        ):
            budget.hold(-len(held[0]) - OBJECT)
            size -= len(held.popleft())
    if unit == "n":
        yield from held
    else:
        yield b"".join(held)[max(size - amount, 0) :]
    budget.hold(-size - OBJECT * len(held))


def sed(words: tuple[Word, ...]) -> Command:
    """sed -n 'A,Bp' [FILE]...: lines A to B, and nothing else of sed."""
    options = read("sed", words, "n", {"quiet": "n", "silent": "n"}, hints={"-i": "use sed -n"})
    script = options.operands[0].text if options.operands else ""
    found = re.fullmatch(r"([0-9]{1,15})(?:,([0-9]{1,15}|\$))?p", script)
    if "n" not in options or not found or found[1].strip("0") == "":
        raise Refused("sed only prints lines by number", "sed -n '5,20p' FILE")
    first = int(found[1])
    last = None if found[2] == "$" else max(int(found[2] or first), first)

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        number = 1
        for _, content in desk.inputs(options.operands[1:], stdin):
            for line in lines(content, desk.budget):
                if number >= first:
                    yield line
                number += line.endswith(b"\n")
                if last is not None and number > last:
                    return

    return run


# ls, tree, find


def ls(words: tuple[Word, ...]) -> Command:
    """ls [-1aAdFlpRr] [FILE]...; -l shows kind, a file's size and name, no owner, no time."""
    options = read(
        "ls",
        words,
        "1aAdFhlpRrS",
        {"all": "a", "almost-all": "A", "directory": "d", "recursive": "R", "reverse": "r"},
        hints={"-t": "the files have no times worth sorting by"},
    )
    if "h" in options and "l" not in options:
        raise Refused("ls -h goes with -l")

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        jail, files, folders = desk.jail, [], []
        for where in desk.places(options.operands or (_HERE,)):
            try:
                kind = jail.kind(where)
            except OSError as error:
                desk.say(
                    f"cannot access {printable(where.shown).decode('utf-8', 'replace')!r}: "
                    f"{error.strerror}",
                    2,
                )
                continue
            (folders if kind == "d" and "d" not in options else files).append((where, kind))

        rows = []
        for where, kind in files:
            size = 0
            if where.parts and options.last("lS"):
                with jail.directory(where.parts[:-1]) as parent:
                    size = jail.size(where.parts[-1], parent)
            rows.append((where.shown, kind, size))
        rows.sort(key=lambda row: printable(row[0]))
        yield from _listed(rows, options)
        if not folders:
            return
        folders.sort(key=lambda pair: printable(pair[0].shown), reverse="r" in options)
        titled = "R" in options or len(files) + len(folders) > 1 or desk.status
        before = b"\n" if files else b""
        for where, _ in folders:
            for shown, rows in _folders(desk, where, options):
                if titled:
                    yield b"%s%s:\n" % (before, printable(shown))
                before = b"\n"
                yield from _listed(rows, options)

    return run


def _folders(desk: Desk, where: Place, options: Options):
    """Yield (shown path, rows) of a directory and, with -R, of those below it."""
    jail, waiting = desk.jail, [where]
    while waiting:
        here = waiting.pop()
        rows = []
        try:
            with jail.directory(here.parts) as parent:
                for name, kind in jail.entries(parent, desk.budget):
                    if name.startswith(".") and not options.last("aA"):
                        continue
                    size = jail.size(name, parent) if options.last("lS") else 0
                    rows.append((name, kind, size))
        except OSError as error:
            desk.complain(here.shown, error)
            continue
        if "R" in options:
            inner = [
                Place(joined(here.shown, name), (*here.parts, name))
                for name, kind, _ in rows
                if kind == "d"
            ]
            waiting += inner if "r" in options else reversed(inner)
        if options.last("aA") == "a":
            rows[:0] = [(".", "d", 0), ("..", "d", 0)]
        yield here.shown, rows


def _listed(rows: list, options: Options) -> Bytes:
    if "S" in options:
        rows.sort(key=lambda row: -row[2])
    if "r" in options:
        rows.reverse()
    for name, kind, size in rows:
        mark = b"/" if kind == "d" and options.last("Fp") else b""
        line = printable(name) + mark + b"\n"
        if "l" in options:
            told = "-" if kind == "d" else _human(size) if "h" in options else str(size)
            line = b"%s %10s %s" % (b"d" if kind == "d" else b"-", told.encode(), line)
        yield line


def _human(size: int) -> str:
    unit, value = "", float(size)
    while value >= 1024:
        unit, value = "KMGTPE"["_KMGTPE".index(unit or "_")], value / 1024
    return f"{value:.1f}{unit}" if unit and value < 10 else f"{value:.0f}{unit}"


def tree(words: tuple[Word, ...]) -> Command:
    """tree [-d] [-a] [-L LEVELS] [DIR]...: two spaces a level, a slash after a directory."""
    options = read("tree", words, "adL:", {})
    levels = options.number("tree", "L", None, 1_000)

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        counts = {"d": 0, "f": 0}

        def descend(entry: Entry) -> bool:
            hidden = entry.name.startswith(".") and "a" not in options
            return not hidden and (levels is None or entry.depth < levels)

        for where in desk.places(options.operands or (_HERE,)):
            yield printable(where.shown) + b"\n"
            try:
                for entry in desk.jail.walk(where, desk.budget, desk.complain, descend=descend):
                    if entry.name.startswith(".") and "a" not in options:
                        continue
                    counts[entry.kind] += 1
                    if entry.kind == "d" or "d" not in options:
                        mark = b"/" if entry.kind == "d" else b""
                        yield b"%s%s%s\n" % (b"  " * entry.depth, printable(entry.name), mark)
            except OSError as error:
                desk.complain(where.shown, error)
        files = b"" if "d" in options else b", %d files" % counts["f"]
        yield b"\n%d directories%s\n" % (counts["d"], files)

    return run


_FIND_HINTS = {
    "-exec": "no command can be started; pipe the paths, or use grep -r",
    "-execdir": "no command can be started; pipe the paths, or use grep -r",
    "-delete": "nothing can be written",
    "-regex": "use -name or -path, or pipe into grep",
}
_FIND_TESTS = ("-name", "-iname", "-path", "-ipath", "-wholename", "-type", "-size", "-empty")


def find(words: tuple[Word, ...]) -> Command:
    """find [DIR]... [-maxdepth N] [-mindepth N] [TESTS], tests joined by -a, -o, ! and ( )."""
    starts = []
    left = list(words)
    while left and not left[0].text.startswith("-") and left[0].text not in ("!", "(", ")"):
        starts.append(left.pop(0))
    if left and left[0].text in ("-H", "-L", "-D", "-P") or any(w.text == "-follow" for w in left):
        raise Refused("find does not follow symbolic links", "leave the option out")
    depths = {"-maxdepth": DEEP, "-mindepth": 0}
    test = _Tests(left, depths).parse()
    most, least = depths["-maxdepth"], depths["-mindepth"]

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        for where in desk.places(starts or (_HERE,)):
            try:
                kind = desk.jail.kind(where)
                with desk.jail.directory(where.parts[:-1]) as parent:
                    name = where.parts[-1] if where.parts else "."
                    top = Entry(name, where.shown, kind, 0, parent)
                    if least == 0 and test(desk, top):
                        yield printable(top.shown) + b"\n"
                if kind == "d" and most > 0:
                    for entry in desk.jail.walk(
                        where, desk.budget, desk.complain, descend=lambda e: e.depth < most
                    ):
                        if entry.depth >= least and test(desk, entry):
                            yield printable(entry.shown) + b"\n"
            except OSError as error:
                desk.complain(where.shown, error)

    return run


DEEP = 10**6


class _Tests:
    """The expression of `find`, by its precedence: ! binds before -a, -a before -o."""

    def __init__(self, words: list[Word], depths: dict[str, int]):
        self.words, self.depths = [word.text for word in words], depths
        self.at = self.nested = 0

    def parse(self):
        if not self.words:
            return lambda desk, entry: True
        test = self._either()
        if self.at < len(self.words):
            raise Refused(f"find did not expect {self.words[self.at]!r}")
        return test

    def _next(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def _either(self):
        tests = [self._both()]
        while self._next() in ("-o", "-or"):
            self.at += 1
            tests.append(self._both())
        return lambda desk, entry: any(test(desk, entry) for test in tests)

    def _both(self):
        tests = [self._one()]
        while self.at < len(self.words) and self._next() not in ("-o", "-or", ")"):
            self.at += self._next() in ("-a", "-and")
            tests.append(self._one())
        return lambda desk, entry: all(test(desk, entry) for test in tests)

    def _one(self):
        word = self._next()
        self.at += 1
        if word in ("!", "-not", "("):
            self.nested += 1
            if self.nested > NESTED:
                raise Refused("the expression of find is nested too deep")
        if word in ("!", "-not"):
            inner = self._one()
            self.nested -= 1
            return lambda desk, entry: not inner(desk, entry)
        if word == "(":
            inner = self._either()
            self.nested -= 1
            if self._next() != ")":
                raise Refused("a ( of find is not closed")
            self.at += 1
            return inner
        if word in self.depths:
            self.depths[word] = whole("find", word[1:], self._value(word), DEEP)
            return lambda desk, entry: True
        if word == "-print":
            if self.at < len(self.words):
                raise Refused("-print comes last here", "find prints without it")
            return lambda desk, entry: True
        if word == "-empty":
            return _is_empty
        if word not in _FIND_TESTS:
            allowed = "allowed: -maxdepth, -mindepth, " + ", ".join(_FIND_TESTS) + ", -o, -a, !"
            raise Refused(f"find does not allow {word!r}", _FIND_HINTS.get(word, allowed))
        value = self._value(word)
        if word == "-type":
            if value not in ("f", "d"):
                raise Refused(f"find -type takes f or d, not {value!r}")
            return lambda desk, entry: entry.kind == value
        if word == "-size":
            return _size_test(value)
        wildcard = Wildcard(value, ignore_case=word in ("-iname", "-ipath"))
        if word in ("-name", "-iname"):
            return lambda desk, entry: wildcard.matches(entry.name, desk.budget.check)
        return lambda desk, entry: wildcard.matches(entry.shown, desk.budget.check)

    def _value(self, word: str) -> str:
        if self.at >= len(self.words):
            raise Refused(f"find {word} needs a value")
        self.at += 1
        return self.words[self.at - 1]


def _size_test(value: str):
    found = re.fullmatch(r"([+-]?)([0-9]{1,15})([ckMG])", value)
    if not found:
        raise Refused(f"find -size takes a number with c, k, M or G, not {value!r}")
    unit = {"c": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}[found[3]]
    amount = int(found[2])

    def test(desk: Desk, entry: Entry) -> bool:
        if entry.kind == "d":
            return False
        try:
            units = -(-desk.jail.size(entry.name, entry.parent) // unit)
        except OSError as error:
            desk.complain(entry.shown, error)
            return False
        return (
            units > amount
            if found[1] == "+"
            else (units < amount if found[1] == "-" else units == amount)
        )

    return test


def _is_empty(desk: Desk, entry: Entry) -> bool:
    try:
        if entry.kind == "f":
            return desk.jail.size(entry.name, entry.parent) == 0
        inner = desk.jail.step(entry.name, entry.parent)
        try:
            return not desk.jail.entries(inner, desk.budget)
        finally:
            os.close(inner)
    except OSError as error:
        desk.complain(entry.shown, error)
        return False


# grep

_GREP_LONG = {
    "after-context": "A",
    "before-context": "B",
    "context": "C",
    "extended-regexp": "E",
    "fixed-strings": "F",
    "basic-regexp": "G",
    "ignore-case": "i",
    "no-ignore-case": "no-ignore-case",
    "invert-match": "v",
    "word-regexp": "w",
    "line-regexp": "x",
    "count": "c",
    "files-with-matches": "l",
    "files-without-match": "L",
    "line-number": "n",
    "with-filename": "H",
    "no-filename": "h",
    "only-matching": "o",
    "quiet": "q",
    "silent": "q",
    "no-messages": "s",
    "max-count": "m",
    "regexp": "e",
    "recursive": "r",
    "dereference-recursive": "R",
    "include": "include:",
    "exclude": "exclude:",
    "exclude-dir": "exclude-dir:",
    "text": "a",
}
_GREP_HINTS = {
    "-P": "use -E: [0-9] for \\d, and no look-around",
    "--perl-regexp": "use -E: [0-9] for \\d, and no look-around",
    "-f": "give the patterns with -e",
    "--file": "give the patterns with -e",
}


def grep(words: tuple[Word, ...], syntax: str = "basic") -> Command:
    """grep [-EFGivwxclLnHhoqsrRIa] [-m N] [-A N] [-B N] [-C N] [-e PATTERN] PATTERN [FILE]...

    With --include, --exclude and --exclude-dir. -R is -r: there are no links to follow. Every
    file is taken as text, as with -a; -I passes over those with a null byte near their beginning.
    Unlike GNU's, -o shows no context, and a directory without -r gets its message alone.
    """
    options = read(
        "grep",
        words,
        "A:B:C:EFGivwxclLnHhoqsm:e:rRIa",
        _GREP_LONG,
        hints=_GREP_HINTS,
        digits="C",
    )
    operands = list(options.operands)
    patterns = options.all("e")
    if not patterns:
        if not operands:
            raise Refused("grep needs a pattern")
        patterns = [operands.pop(0).text]
    syntax = {"E": "extended", "F": "fixed", "G": "basic", "": syntax}[options.last("EFG")]
    pattern = _pattern(patterns, options, syntax)
    most = options.number("grep", "m", None, COUNT)
    around = options.number("grep", "C", 0, CONTEXT)
    before = options.number("grep", "B", around, CONTEXT)
    after = options.number("grep", "A", around, CONTEXT)
    if options.last("coqlL"):
        before = after = 0
    filters = {
        name: [_filter(value) for value in options.all(name)]
        for name in ("include", "exclude", "exclude-dir")
    }
    recursive = bool(options.last("rR"))
    named = options.last("Hh")
    only = "q" if "q" in options else options.last("lL")

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        pattern.watch(desk.budget.check)
        if "s" in options:
            desk.messages = None
        found = printed = False
        for shown, content, several in _grepped(desk, operands, stdin, recursive, filters):
            titled = named == "H" or (several and named != "h")
            job = _Search(desk, pattern, options, only, before, after, most, printed)
            try:
                yield from job.run(shown, titled, content)
            except OSError as error:
                desk.complain(shown, error, 2)
            printed = printed or job.printed
            found = found or job.selected
            if found and "q" in options:
                break
        if found and (desk.status != 2 or "q" in options):
            desk.status = 0
        elif desk.status != 2:
            desk.status = 1

    return run


def _pattern(patterns: list[str], options: Options, syntax: str) -> Pattern:
    try:
        return Pattern(
            patterns,
            syntax=syntax,
            ignore_case=options.last(("i", "no-ignore-case")) == "i",
            word="w" in options,
            line="x" in options,
        )
    except PatternError as error:
        raise Refused(f"grep: {error}") from None


def _filter(value: str) -> Wildcard:
    if "/" in value.rstrip("/"):
        raise Refused(
            "--include, --exclude and --exclude-dir take the pattern of a name, without /",
            "name the directory as a path instead",
        )
    return Wildcard(value.rstrip("/"))


def _grepped(desk: Desk, operands, stdin, recursive: bool, filters):
    """Yield (shown path, bytes, whether there may be several) of what grep looks into."""
    if not operands and not recursive:
        for _, content in desk.inputs((), stdin, 2):
            yield "(standard input)", content, False
        return
    jail, budget = desk.jail, desk.budget

    def fits(entry_name: str, option: str) -> bool:
        return any(wildcard.matches(entry_name) for wildcard in filters[option])

    def wanted(name: str) -> bool:
        return not fits(name, "exclude") and (not filters["include"] or fits(name, "include"))

    def complain(shown, error):
        desk.complain(shown, error, 2)

    places = list(desk.places(operands or (_HERE,)))
    for where in places:
        try:
            kind = jail.kind(where)
            if kind == "f":
                if wanted(where.parts[-1]):
                    yield where.shown, desk.content(where), len(places) > 1
            elif not recursive:
                complain(where.shown, "Is a directory")
            else:
                shown = where.shown if operands else ""
                for entry in jail.walk(
                    where,
                    budget,
                    complain,
                    shown=shown,
                    descend=lambda entry: not fits(entry.name, "exclude-dir"),
                ):
                    if entry.kind == "f" and wanted(entry.name):
                        yield entry.shown, jail.read(entry.name, entry.parent, budget), True
        except OSError as error:
            complain(where.shown, error)


class _Search:
    """One file searched: what it yields, whether a line was `selected` and any was `printed`."""

    def __init__(self, desk, pattern, options, only, before, after, most, printed):
        self.desk, self.pattern, self.options = desk, pattern, options
        self.before, self.after, self.most = before, after, most
        self.selected, self.printed = False, printed
        self.invert = "v" in options
        self.only = only

    def run(self, shown: str, titled: bool, content: Bytes) -> Bytes:
        self.title = printable(shown) if titled else None
        found = self._lines(content) if self.most != 0 else iter(())
        count = 0
        if self.only:
            count = int(next(found, None) is not None)
        elif "c" in self.options:
            count = sum(1 for _ in found)
        else:
            yield from found
        self.selected = self.selected or count > 0
        if self.only in ("l", "L"):
            if self.selected == (self.only == "l"):
                yield printable(shown) + b"\n"
        elif "c" in self.options and self.only != "q":
            prefix = b"" if self.title is None else self.title + b":"
            yield b"%s%d\n" % (prefix, count)

    def _lines(self, content: Bytes) -> Bytes:
        """Yield what is printed; a selected line as one item where lines are only counted."""
        options, pattern = self.options, self.pattern
        counts_only = bool(self.only) or "c" in options
        number, selected, left_after, last_shown = 0, 0, 0, 0
        earlier: deque[tuple[int, bytes]] = deque(maxlen=self.before)
        for first, block in enumerate(blocks(content, self.desk.budget)):
            if first == 0 and "I" in options and b"\0" in block[:32768]:
                return
            text = block.decode("utf-8", "surrogateescape")
            if not self.invert and not left_after and not pattern.possible(text):
                if self.before:
                    kept = list(_cut(block))
                    count = len(kept)
                    for place, line in enumerate(kept[-self.before :]):
                        earlier.append((number + max(count - self.before, 0) + place + 1, line))
                    number += count
                else:
                    number += block.count(b"\n") + (not block.endswith(b"\n"))
                continue
            for line in _cut(block):
                self.desk.budget.check()
                number += 1
                decoded = _text(line)
                hit = selected != self.most and (
                    (pattern.possible(decoded) and pattern.matches(decoded)) != self.invert
                )
                if hit:
                    selected += 1
                    self.selected = True
                    if counts_only:
                        yield line
                    elif "o" in options:
                        if not self.invert:
                            for start, end in pattern.spans(decoded):
                                part = decoded[start:end].encode("utf-8", "surrogateescape")
                                yield self._shown(number, b":", part)
                    else:
                        oldest = earlier[0][0] if earlier else number
                        apart = not last_shown or oldest > last_shown + 1
                        if self.options.last("ABC") and self.printed and apart:
                            yield b"--\n"
                        for place, other in earlier:
                            yield self._shown(place, b"-", other)
                        earlier.clear()
                        yield self._shown(number, b":", line)
                        self.printed, last_shown = True, number
                    left_after = self.after
                elif left_after:
                    left_after -= 1
                    yield self._shown(number, b"-", line)
                    last_shown = number
                else:
                    earlier.append((number, line))
                if selected == self.most and not left_after:
                    return

    def _shown(self, number: int, mark: bytes, line: bytes) -> bytes:
        prefix = b"" if self.title is None else self.title + mark
        if "n" in self.options:
            prefix += b"%d%s" % (number, mark)
        return prefix + _ended(line)


# wc, sort, uniq, cut


def wc(words: tuple[Word, ...]) -> Command:
    """wc [-lwcm] [FILE]..."""
    options = read("wc", words, "lwcm", {"lines": "l", "words": "w", "bytes": "c", "chars": "m"})
    columns = [column for column in "lwmc" if column in options] or list("lwc")

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        rows = []
        for shown, content in desk.inputs(options.operands, stdin):
            rows.append((shown, _counted(content, columns)))
        several = len(rows) > 1 or len(options.operands) > 1 or desk.status
        if several and rows:
            sums = {column: sum(counts[column] for _, counts in rows) for column in "lwmc"}
            if len(rows) > 1 or len(options.operands) > 1:
                rows.append(("total", sums))
        width = 1
        if not options.operands:
            width = 7 if len(columns) > 1 else 1
        elif len(rows) > 1 or len(columns) > 1:
            width = len(str(max((counts["c"] for _, counts in rows), default=0)))
        for shown, counts in rows:
            numbers = " ".join(f"{counts[column]:{width}d}" for column in columns)
            yield numbers.encode() + (b" " + printable(shown) if shown else b"") + b"\n"

    return run


def _counted(content: Bytes, columns: list[str]) -> dict[str, int]:
    counts = dict.fromkeys("lwmc", 0)
    inside = False
    for chunk in content:
        counts["l"] += chunk.count(b"\n")
        counts["c"] += len(chunk)
        if "m" in columns:  # bytes that begin a character
            counts["m"] += len(chunk) - len(re.findall(rb"[\x80-\xbf]", chunk))
        if "w" in columns:
            begins = len(chunk.split())
            counts["w"] += begins - (inside and not chunk[:1].isspace() and begins > 0)
            inside = not chunk[-1:].isspace() if chunk else inside
    return counts


def sort(words: tuple[Word, ...]) -> Command:
    """sort [-rnuf] [-t CHAR] [-k N[,M][rnf]]... [FILE]..., by bytes as in the C locale."""
    options = read(
        "sort",
        words,
        "rnuft:k:",
        {
            "reverse": "r",
            "numeric-sort": "n",
            "unique": "u",
            "ignore-case": "f",
            "field-separator": "t",
            "key": "k",
        },
        hints={"-o": "nothing can be written", "-T": "nothing can be written"},
    )
    separator = options.values.get("t")
    if separator is not None and len(separator) != 1:
        raise Refused(f"sort -t takes one character, not {separator!r}")
    separator = separator.encode() if separator else None
    usual = "".join(letter for letter in "rnf" if letter in options)
    keys = [_key(value, usual) for value in options.all("k")] or [(1, None, usual)]

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        held = []
        for _, content in desk.inputs(options.operands, stdin, 2):
            for line in lines(content, desk.budget):
                desk.budget.hold(len(line) + 2 * OBJECT * len(keys))
                held.append(_ended(line)[:-1])
        if "u" not in options:
            held.sort(reverse="r" in options)
        for first, last, how in reversed(keys):
            desk.budget.check()

            def value(line, first=first, last=last, how=how):
                desk.budget.check()
                return _value(_fields(line, first, last, separator), how)

            held.sort(key=value, reverse="r" in how)
        before = None
        for line in held:
            desk.budget.check()
            if "u" in options:
                now = tuple(_value(_fields(line, a, b, separator), how) for a, b, how in keys)
                if now == before:
                    continue
                before = now
            yield line + b"\n"

    return run


def _key(text: str, usual: str) -> tuple[int, int | None, str]:
    found = re.fullmatch(r"([1-9][0-9]{0,5})(?:,([1-9][0-9]{0,5}))?([rnf]*)", text)
    if not found:
        raise Refused(f"sort -k takes N or N,M with r, n or f, not {text!r}")
    return int(found[1]), int(found[2]) if found[2] else None, found[3] or usual


def _fields(line: bytes, first: int, last: int | None, separator: bytes | None) -> bytes:
    if first == 1 and last is None:
        return line
    if separator is None:  # a field is the blanks before it and what follows
        parts, glue = re.findall(rb"[ \t]*[^ \t]+|[ \t]+$", line), b""
    else:
        parts, glue = line.split(separator), separator
    return glue.join(parts[first - 1 : last])


def _value(field: bytes, how: str):
    if "n" in how:
        found = re.match(rb"[ \t]*(-?[0-9]{0,300}(?:\.[0-9]{0,20})?)", field)
        text = found[1].decode()
        return float(text) if re.search("[0-9]", text) else 0.0
    return field.upper() if "f" in how else field


def uniq(words: tuple[Word, ...]) -> Command:
    """uniq [-cdui] [FILE]"""
    long = {"count": "c", "repeated": "d", "unique": "u", "ignore-case": "i"}
    options = read("uniq", words, "cdui", long)
    if len(options.operands) > 1:
        raise Refused("uniq takes one file", "a second one would be written")

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        for _, content in desk.inputs(options.operands, stdin):
            yield from _runs(content, options, desk.budget)

    return run


def _runs(content: Bytes, options: Options, budget: Budget) -> Bytes:
    first, folded, count = b"", None, 0

    def shown() -> bytes:
        if ("d" in options and count < 2) or ("u" in options and count > 1):
            return b""
        return (b"%7d " % count if "c" in options else b"") + first

    for line in lines(content, budget):
        line = _ended(line)
        key = line.lower() if "i" in options else line
        if key == folded:
            count += 1
            continue
        if count:
            yield shown()
        first, folded, count = line, key, 1
    if count:
        yield shown()


def cut(words: tuple[Word, ...]) -> Command:
    """cut -f LIST [-d CHAR] [-s] [FILE]..., or cut -c LIST or -b LIST, both by bytes."""
    long = {"fields": "f", "delimiter": "d", "only-delimited": "s", "characters": "c", "bytes": "b"}
    options = read("cut", words, "f:d:sc:b:", long)
    if sum(letter in options for letter in "fcb") != 1:
        raise Refused("cut needs one of -f, -c and -b")
    unit = options.last("fcb")
    if unit != "f" and ("d" in options or "s" in options):
        raise Refused("cut takes -d and -s with -f only")
    ranges = _ranges(options.values[unit])
    delimiter = options.values.get("d", "\t").encode()
    if len(delimiter) != 1:
        raise Refused("cut -d takes one character")

    def run(desk: Desk, stdin: Bytes | None) -> Bytes:
        for _, content in desk.inputs(options.operands, stdin):
            for line in lines(content, desk.budget):
                line = _ended(line)[:-1]
                if unit != "f":
                    yield b"".join(line[a:b] for a, b in ranges) + b"\n"
                elif delimiter in line:
                    parts = line.split(delimiter)
                    chosen = [part for a, b in ranges for part in parts[a:b]]
                    yield delimiter.join(chosen) + b"\n"
                elif "s" not in options:
                    yield line + b"\n"

    return run


def _ranges(text: str) -> list[tuple[int, int | None]]:
    """Return slices, in order and apart, of a list like 1,3-5,7-."""
    found = []
    for part in text.split(","):
        bounds = re.fullmatch(r"([0-9]{0,9})(-?)([0-9]{0,9})", part)
        low, dash, high = bounds.groups() if bounds else ("", "", "")
        if not (low or high) or (low and int(low) == 0) or (high and int(high) == 0):
            raise Refused(f"cut takes a list like 1,3-5,7-, not {text!r}")
        last = int(high) if high else (None if dash else int(low))
        if last is not None and last < int(low or 1):
            raise Refused(f"cut takes ranges that rise, not {part!r}")
        found.append((int(low or 1) - 1, last))
    found.sort(key=lambda pair: pair[0])
    merged = [found[0]]
    for low, high in found[1:]:
        start, end = merged[-1]
        if end is None or low <= end:
            merged[-1] = (start, None if None in (end, high) else max(end, high))
        else:
            merged.append((low, high))
    return merged


COMMANDS: dict[str, Callable[[tuple[Word, ...]], Command]] = {
    "cat": cat,
    "cut": cut,
    "egrep": lambda words: grep(words, "extended"),
    "fgrep": lambda words: grep(words, "fixed"),
    "find": find,
    "grep": grep,
    "head": head,
    "ls": ls,
    "sed": sed,
    "sort": sort,
    "tail": tail,
    "tree": tree,
    "uniq": uniq,
    "wc": wc,
}
