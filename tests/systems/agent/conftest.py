import pytest

FILES = {
    "slack/general/one.txt": "Hello world\nthe queue is full\nhello again, World\n",
    "slack/general/two.txt": "no greeting here\n\nqueue_length 12\nqueue-length 13\n",
    "slack/incidents/inc-212.md": "Queue\nqueue\nQUEUE length: 900\nlast line without end",
    "jira/SUP/SUP-1.json": '{"title": "Port (map)",\n "price": "$5.00",\n "size": 5}\n',
    "jira/SUP/empty.txt": "",
    "jira/readme.txt": "a\tb\tc\nd\te\n\nx y z\nplain\n",
    "numbers.txt": "10\n9\n-3\n9\n100\n2.5\n\nb 2\nB 1\nb 2\n",
    "table.csv": "name:score:x\nann:10:z\nbob:9:y\ncid:10:a\nbob:9:y\n",
    "caf\u00e9 menu.txt": "Caf\u00e9 CAF\u00c9 cafe\nna\u00efve \u0130stanbul stra\u00dfe\n",
    "long.txt": "".join(f"line {n}\n" for n in range(1, 41)),
    ".hidden": "hello from a hidden file\n",
    "a+b [1].txt": "special name hello\n",
}


def plant(root, files=None):
    for name, text in (FILES if files is None else files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return root


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("corpus"))
