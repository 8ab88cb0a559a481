"""Patterns of the corpus tools, matched in time linear in the text: nothing here backtracks.

A POSIX regular expression (basic or extended, with GNU's additions) is parsed into an automaton
whose deterministic states are made when a text first needs them. Python's `re` is never given a
pattern from outside: it can take exponential time and cannot be interrupted. Back-references are
not regular and are refused.

Source: Thompson 1968, Regular expression search algorithm; POSIX.1-2017, Base Definitions, ch. 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

LARGEST = 2_000  # nodes of one automaton
DEEPEST = 40  # brackets within brackets
REPEATED = 5  # repetitions of one repetition, as in a***
WORK = 50 * LARGEST  # parts visited while the automaton is built: some add no node
HELD = 300_000  # what the deterministic states may hold together before they are made anew

EDGE, OTHER, WORD = 0, 1, 2  # what stands beside a position: nothing, a character, a word's
_FOUND = object()
_CLASSES: dict[str, Callable[[str], bool]] = {
    "alpha": str.isalpha,
    "digit": lambda c: "0" <= c <= "9",
    "alnum": lambda c: c.isalpha() or c.isdecimal(),
    "upper": str.isupper,
    "lower": str.islower,
    "space": lambda c: c in " \t\n\r\f\v",
    "blank": lambda c: c in " \t",
    "punct": lambda c: c.isprintable() and not c.isspace() and not c.isalnum(),
    "print": str.isprintable,
    "graph": lambda c: c.isprintable() and not c.isspace(),
    "cntrl": lambda c: c < " " or c == "\x7f",
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
}


class PatternError(ValueError):
    """A pattern that is not one, is too large, or is not regular."""


def is_word(char: str) -> bool:
    return char == "_" or char.isalnum()


def _kind(char: str) -> int:
    return WORD if is_word(char) else OTHER


@lru_cache(maxsize=4096)
def variants(char: str) -> frozenset[str]:
    """Return the characters that equal `char` when case is ignored."""
    found = {char}
    for _ in range(2):
        for one in list(found):
            found.update(
                other for other in (one.lower(), one.upper(), one.casefold()) if len(other) == 1
            )
    folded = char.casefold()
    found.update({"k": "\u212a", "s": "\u017f", "\u00e5": "\u212b"}.get(folded, ""))
    return frozenset(found)


class _Set:
    """A set of characters: ranges and named classes, perhaps negated."""

    def __init__(self, ranges=(), names=(), negated=False, ignore_case=False):
        self.ranges, self.names = tuple(ranges), tuple(names)
        self.negated, self.ignore_case = negated, ignore_case

    def __call__(self, char: str) -> bool:
        if "\ud800" <= char <= "\udfff":  # a byte that is not UTF-8 is no character
            return False
        chars = variants(char) if self.ignore_case else (char,)
        return any(self._has(one) for one in chars) != self.negated

    def _has(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) or any(
            _CLASSES[name](char) if name != "word" else is_word(char) for name in self.names
        )


# Syntax trees: ("chars", test, literal or None), ("cat", [...]), ("alt", [...]),
# ("rep", tree, least, most or None), ("assert", name)
_EMPTY = ("cat", [])


class _Parser:
    def __init__(self, pattern: str, extended: bool, ignore_case: bool):
        self.text, self.extended, self.ignore_case = pattern, extended, ignore_case
        self.at = self.depth = 0

    def parse(self):
        tree = self._alternatives()
        if self.at < len(self.text):  # only a closing bracket stops it early
            raise PatternError("Unmatched ) or \\)")
        return tree

    def literal(self, char: str):
        if self.ignore_case:
            return ("chars", variants(char).__contains__, char)
        return ("chars", char.__eq__, char)

    def _next_is(self, operator: str) -> bool:
        """Whether an operator stands here; a basic expression writes most with a backslash."""
        return self.text.startswith(operator if self.extended else "\\" + operator, self.at)

    def _take(self, operator: str) -> bool:
        found = self._next_is(operator)
        if found:
            self.at += 1 if self.extended else 2
        return found

    def _alternatives(self):
        branches = [self._branch()]
        while self._take("|"):
            branches.append(self._branch())
        return branches[0] if len(branches) == 1 else ("alt", branches)

    def _closes(self) -> bool:
        # An extended ) without its ( is an ordinary character in GNU's syntax.
        return self._next_is(")") and (self.depth > 0 or not self.extended)

    def _branch(self):
        parts: list = []
        first = True
        while self.at < len(self.text) and not self._next_is("|") and not self._closes():
            anchored = len(parts) == 1 and parts[0] == ("assert", "^")
            piece = self._atom(first or (anchored and not self.extended))
            first = False
            parts.append(self._repeated(piece))
        return ("cat", parts)

    def _repeated(self, tree):
        for _ in range(REPEATED):
            bounds = self._bounds(tree)
            if bounds is None:
                return tree
            tree = ("rep", tree, *bounds)
        if self._bounds(tree) is not None:
            raise PatternError("Regular expression too big")
        return tree

    def _bounds(self, tree):
        """Return the least and most times that what stands here asks for, if it is a repetition."""
        if self.text.startswith("*", self.at) and (self.extended or tree != ("assert", "^")):
            self.at += 1
            return 0, None
        if self._take("+"):
            return 1, None
        if self._take("?"):
            return 0, 1
        return self._interval() if self._next_is("{") else None

    def _interval(self):
        start, closing = self.at, "}" if self.extended else "\\}"
        end = self.text.find(closing, start)
        inside = self.text[start + (1 if self.extended else 2) : max(end, 0)]
        low, comma, high = inside.partition(",")
        numbers = [n for n in (low, high) if n]
        valid = end >= 0 and (low or comma) and all(n.isascii() and n.isdigit() for n in numbers)
        if not valid:
            if self.extended:
                return None
            raise PatternError("Invalid content of \\{\\}")
        if any(len(n) > 5 or int(n) > LARGEST for n in numbers):
            raise PatternError("Regular expression too big")
        least = int(low or 0)
        most = int(high) if high else (None if comma else least)
        if most is not None and most < least:
            raise PatternError("Invalid content of \\{\\}")
        self.at = end + len(closing)
        return least, most

    def _atom(self, first: bool):
        char = self.text[self.at]
        if self._take("("):
            self.depth += 1
            if self.depth > DEEPEST:
                raise PatternError("Regular expression too big")
            tree = self._alternatives()
            if not self._take(")"):
                raise PatternError("Unmatched ( or \\(")
            self.depth -= 1
            return tree
        if self.extended and first and (char in "*+?"):
            return _EMPTY  # GNU repeats the empty expression
        if char == "[":
            return ("chars", self._bracket(), None)
        self.at += 1
        if char == ".":
            return ("chars", _Set([("\0", "\0")], negated=True), None)
        if char == "^" and (self.extended or first):
            return ("assert", "^")
        if char == "$" and (
            self.extended or self.at == len(self.text) or self._next_is(")") or self._next_is("|")
        ):
            return ("assert", "$")
        if char == "\\":
            return self._escape()
        return self.literal(char)

    def _escape(self):
        if self.at == len(self.text):
            raise PatternError("Trailing backslash")
        char = self.text[self.at]
        self.at += 1
        if char in "wWsS":
            name = "word" if char in "wW" else "space"
            return ("chars", _Set(names=[name], negated=char.isupper()), None)
        if char in "bB<>`'":
            return ("assert", {"`": "^", "'": "$"}.get(char, char))
        if char in "123456789":
            raise PatternError("back-references are not supported here")
        if char.isalnum():
            known = {"d": "[0-9]", "D": "[^0-9]", "t": "a tab", "n": "two patterns with -e"}
            hint = f"; write {known[char]}" if char in known else ""
            raise PatternError(f"\\{char} is not part of a POSIX expression{hint}")
        return self.literal(char)

    def _bracket(self) -> _Set:
        text, at = self.text, self.at + 1
        negated = text.startswith("^", at)
        at += negated
        ranges, names, first = [], [], True
        while True:
            if at >= len(text):
                raise PatternError("Unmatched [, [^, [:, [., or [=")
            if text[at] == "]" and not first:
                break
            first = False
            if text.startswith("[:", at):
                end = text.find(":]", at + 2)
                name = text[at + 2 : max(end, 0)]
                if end < 0 or name not in _CLASSES:
                    raise PatternError("Invalid character class name")
                # A case without a case is any letter, as in GNU's tools.
                folded = name in ("upper", "lower") and self.ignore_case
                names.append("alpha" if folded else name)
                at = end + 2
                continue
            low, at = self._element(at)
            high = low
            if text.startswith("-", at) and at + 1 < len(text) and text[at + 1] != "]":
                high, at = self._element(at + 1)
                if high < low:
                    raise PatternError("Invalid range end")
            ranges.append((low, high))
        self.at = at + 1
        return _Set(ranges, names, negated, self.ignore_case)

    def _element(self, at: int) -> tuple[str, int]:
        for mark in (".", "="):
            if self.text.startswith("[" + mark, at):
                if self.text[at + 3 : at + 5] != mark + "]":
                    raise PatternError("Invalid collation character")
                return self.text[at + 2], at + 5
        if self.text.startswith("[:", at):
            raise PatternError("Invalid range end")
        return self.text[at], at + 1


class _State(dict):
    """A deterministic state: character -> the next one, filled when needed."""

    __slots__ = ("accepting", "nodes", "prev")

    def __init__(self, nodes: frozenset[int], prev: int):
        super().__init__()
        self.nodes, self.prev = nodes, prev
        self.accepting: dict[int, bool] = {}


class _Machine:
    """The automaton, run from every position at once or, `anchored`, from one alone."""

    def __init__(self, nodes: list, start: int, *, anchored: bool):
        self.nodes, self.anchored = nodes, anchored
        self.start = frozenset([start])
        self.clear()

    def clear(self) -> None:
        self.states: dict[tuple, _State] = {}
        self.held = 0

    def state(self, nodes: frozenset[int], prev: int) -> _State:
        state = self.states.get((nodes, prev))
        if state is None:
            if self.held > HELD:
                self.clear()
            self.held += len(nodes) + 10
            state = self.states[nodes, prev] = _State(nodes, prev)
        return state

    def closure(self, nodes: frozenset[int], prev: int, following: int) -> set[int]:
        seen, waiting = set(), list(nodes)
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            what, value, then = self.nodes[number]
            if what == "split":
                waiting += value
            elif what == "assert" and _holds(value, prev, following):
                waiting.append(then)
        return seen

    def accepts(self, state: _State, following: int) -> bool:
        found = state.accepting.get(following)
        if found is None:
            found = 0 in self.closure(state.nodes, state.prev, following)
            state.accepting[following] = found
        return found

    def step(self, state: _State, char: str):
        self.check()
        kind = _kind(char)
        closed = self.closure(state.nodes, state.prev, kind)
        if 0 in closed and not self.anchored:
            reached = _FOUND
        else:
            found = {
                then
                for what, test, then in map(self.nodes.__getitem__, closed)
                if what == "chars" and test(char)
            }
            if not self.anchored:
                found |= self.start
            reached = self.state(frozenset(found), kind)
        self.held += 1
        state[char] = reached
        return reached


class Pattern:
    """One or several regular expressions, any of which may match a line.

    Parameters
    ----------
    patterns : sequence of str
    syntax : {"basic", "extended", "fixed"}
    ignore_case, word, line : bool
        As `grep -i`, `-w` and `-x`.

    Raises
    ------
    PatternError
        If a pattern is no regular expression, has back-references, or is too large.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        syntax: str = "basic",
        ignore_case: bool = False,
        word: bool = False,
        line: bool = False,
    ):
        self.ignore_case = ignore_case
        trees = []
        for pattern in patterns:
            parser = _Parser(pattern, syntax == "extended", ignore_case)
            if syntax == "fixed":
                trees.append(("cat", [parser.literal(char) for char in pattern]))
            else:
                trees.append(parser.parse())
        tree = ("alt", trees)
        if line:
            tree = ("cat", [("assert", "^"), tree, ("assert", "$")])
        elif word:
            tree = ("cat", [("assert", "not after"), tree, ("assert", "not before")])
        needed = _needed(tree) or ()
        fold = str.casefold if ignore_case else str
        self.needed = tuple(sorted({fold(text) for text in needed}))
        self.nodes: list = [("accept", None, None)]
        self.work = 0
        start = self._build(tree, 0)
        self.search = _Machine(self.nodes, start, anchored=False)
        self.single = _Machine(self.nodes, start, anchored=True)
        self.watch(lambda: None)

    def watch(self, check: Callable[[], None]) -> None:
        """Call `check` from now on while a line is searched."""
        self.check = self.search.check = self.single.check = check

    def possible(self, text: str) -> bool:
        """Whether a line of `text` may match: False is certain, True is not."""
        if not self.needed:
            return True
        if self.ignore_case:
            text = text.casefold()
        return any(literal in text for literal in self.needed)

    def matches(self, line: str) -> bool:
        """Whether the pattern matches somewhere in `line` (without its newline)."""
        machine = self.search
        state = machine.state(machine.start, EDGE)
        for char in line:
            reached = state.get(char)
            if reached is None:
                reached = machine.step(state, char)
            if reached is _FOUND:
                return True
            state = reached
        return machine.accepts(state, EDGE)

    def spans(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of the matches, leftmost and longest, those of no length left out."""
        at = 0
        while at < len(line):
            self.check()
            end = self._longest(line, at)
            if end is not None and end > at:
                yield at, end
                at = end
            else:
                at += 1

    def _longest(self, line: str, at: int) -> int | None:
        machine, longest = self.single, None
        state = machine.state(machine.start, _kind(line[at - 1]) if at else EDGE)
        for place in range(at, len(line)):
            char = line[place]
            if place % 4096 == 0:
                self.check()
            if machine.accepts(state, _kind(char)):
                longest = place
            reached = state.get(char)  # an empty state is false: ask whether it is None
            state = machine.step(state, char) if reached is None else reached
            if not state.nodes:
                return longest
        return len(line) if machine.accepts(state, EDGE) else longest

    def _node(self, *node) -> int:
        if len(self.nodes) >= LARGEST:
            raise PatternError("Regular expression too big")
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _build(self, tree, then: int) -> int:
        """Add the nodes of `tree`, after which comes the node `then`; return the first."""
        self.work += 1
        if self.work > WORK:
            raise PatternError("Regular expression too big")
        match tree:
            case ("chars", test, _):
                return self._node("chars", test, then)
            case ("assert", name):
                return self._node("assert", name, then)
            case ("cat", parts):
                for part in reversed(parts):
                    then = self._build(part, then)
                return then
            case ("alt", parts):
                return self._node("split", [self._build(part, then) for part in parts], None)
            case ("rep", part, least, most):
                if most is None:
                    exits = [then]
                    loop = self._node("split", exits, None)
                    exits.append(self._build(part, loop))
                    then = loop
                else:
                    last = then
                    for _ in range(most - least):
                        then = self._node("split", [last, self._build(part, then)], None)
                for _ in range(least):
                    then = self._build(part, then)
                return then
        raise AssertionError(tree)


def _holds(name: str, prev: int, following: int) -> bool:
    match name:
        case "^":
            return prev == EDGE
        case "$":
            return following == EDGE
        case "<":
            return prev != WORD and following == WORD
        case ">":
            return prev == WORD and following != WORD
        case "b":
            return (prev == WORD) != (following == WORD)
        case "B":
            return (prev == WORD) == (following == WORD)
        case "not after":
            return prev != WORD
    return following != WORD


def _needed(tree) -> set[str] | None:
    """Return texts of which every match holds at least one; None if there are no such texts."""
    match tree:
        case ("chars", _, literal):
            return {literal} if literal is not None else None
        case ("alt", parts):
            found = [_needed(part) for part in parts]
            if None in found:
                return None
            together = set().union(*found)
            return together if len(together) <= 32 else None
        case ("rep", part, least, _):
            return _needed(part) if least else None
        case ("cat", parts):
            runs, run = [], ""
            for part in parts:
                if part[0] == "chars" and part[2] is not None:
                    run += part[2]
                elif part[0] != "assert":
                    runs += [{run}] if run else []
                    run = ""
                    inner = _needed(part)
                    runs += [inner] if inner else []
            runs += [{run}] if run else []
            return max(runs, key=lambda texts: min(map(len, texts)), default=None)
    return None


class Wildcard:
    """A pattern of file names: `*`, `?`, `[...]`, a backslash before what stands for itself."""

    def __init__(self, pattern: str, *, ignore_case: bool = False):
        self.ignore_case = ignore_case
        self.parts: list[Callable[[str], bool] | None] = []
        self.dotted = pattern.startswith((".", "\\."))
        at = 0
        while at < len(pattern):
            char = pattern[at]
            at += 1
            if char == "*":
                if not self.parts or self.parts[-1] is not None:
                    self.parts.append(None)
                continue
            if char == "?":
                self.parts.append(lambda _: True)
                continue
            if char == "[":
                found = self._bracket(pattern, at)
                if found:
                    test, at = found
                    self.parts.append(test)
                    continue
            if char == "\\":
                char = pattern[at : at + 1]  # nothing equals "": a backslash alone fits no name
                at += 1
            self.parts.append(variants(char).__contains__ if ignore_case else char.__eq__)

    def _bracket(self, text: str, at: int):
        """Return the set that begins at `at` and where it ends, or None if it does not end."""
        negated = text[at : at + 1] in ("!", "^") and at < len(text)
        at += negated
        ranges, names, first = [], [], True
        while at < len(text) and (text[at] != "]" or first):
            first = False
            end = text.find(":]", at + 2) if text.startswith("[:", at) else -1
            if end >= 0 and text[at + 2 : end] in _CLASSES:
                names.append(text[at + 2 : end])
                at = end + 2
                continue
            at += text[at] == "\\"
            low = high = text[at : at + 1]
            at += 1
            if text.startswith("-", at) and text[at + 1 : at + 2] not in ("", "]"):
                at += 2 if text[at + 1] == "\\" else 1
                high = text[at : at + 1]
                at += 1
            if low and high:
                ranges.append((low, high))
        if at >= len(text):
            return None
        return _Set(ranges, names, negated, self.ignore_case), at + 1

    def matches(self, name: str, check: Callable[[], None] = lambda: None) -> bool:
        """Whether the whole of `name` fits; at most len(pattern) x len(name) steps.

        `check` is called now and then; what it raises ends the search.
        """
        parts = self.parts
        at = place = 0
        star = restart = -1
        while place < len(name):
            if at < len(parts) and parts[at] is None:
                star, restart = at, place
                at += 1
            elif at < len(parts) and parts[at](name[place]):
                at += 1
                place += 1
            elif star >= 0:
                check()
                restart += 1
                at, place = star + 1, restart
            else:
                return False
        return all(part is None for part in parts[at:])
