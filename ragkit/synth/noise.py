"""Documents in wrong places: walks over the directories of a source.

EnterpriseRAG-Bench, section 4.2, Table 4 and appendix B.4.
"""

from __future__ import annotations

from ragkit.synth.streams import Stream

SHARES = {"random": 0.05, "plausible": 0.03}  # of a source: moved anywhere, and nearby


class Tree:
    """The directories of one source, for walks; `members` has documents (numbers) by folder."""

    def __init__(self, members: dict[str, list[int]]):
        self.members = members
        self.children: dict[str, list[str]] = {}
        for path in sorted(members):
            parts = path.split("/")
            for i in range(1, len(parts)):
                parent, child = "/".join(parts[:i]), "/".join(parts[: i + 1])
                known = self.children.setdefault(parent, [])
                if child not in known:
                    known.append(child)
        self.root = next(iter(members)).split("/")[0] if members else ""

    def folder(self, stream: Stream) -> str:
        """Return a folder with documents, reached from the root by choosing a child at a time."""
        at = self.root
        while True:
            options = self.children.get(at, [])
            stays = at in self.members
            choice = stream.below(len(options) + stays)
            if choice == len(options):
                return at
            at = options[choice]

    def near(self, path: str, stream: Stream) -> str:
        """Return a folder beside, above or next door, where somebody might well put it."""
        parent = path.rpartition("/")[0]
        options = [f for f in self.children.get(parent, []) if f != path and f in self.members]
        if parent in self.members:
            options.append(parent)
        up = parent.rpartition("/")[0]
        if up and (not options or stream.chance(0.3)):
            for cousin in self.children.get(up, []):
                if cousin in self.members and cousin != path:
                    options.append(cousin)
                options += [
                    f for f in self.children.get(cousin, []) if f in self.members and f != path
                ][:4]
        return stream.pick(options) if options else ""


def moves(stream: Stream, tree: Tree, total: int) -> dict[int, tuple[str, str]]:
    """Return what is misfiled in a source: document number to (kind, new folder).

    Documents are found by a walk over the tree of those that may be moved, so that full folders are
    not preferred; at most a third of a folder is moved. The shares are those of `total` documents.
    """
    found: dict[int, tuple[str, str]] = {}
    left = {path: list(numbers) for path, numbers in tree.members.items()}
    for kind, share in SHARES.items() if len(left) > 1 else ():
        wanted = round(share * total)
        for _ in range(400 * (wanted + 10)):
            if not wanted:
                break
            path = tree.folder(stream)
            pool = left[path]
            if len(pool) * 3 <= len(tree.members[path]) * 2 or not pool:
                continue
            target = tree.folder(stream) if kind == "random" else tree.near(path, stream)
            if target and target != path:
                i = stream.below(len(pool))
                pool[i], pool[-1] = pool[-1], pool[i]
                found[pool.pop()] = (kind, target)
                wanted -= 1
    return found
