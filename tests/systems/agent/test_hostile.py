"""Command lines of someone who wants out: none reads, names, makes or changes anything outside.

Beside the corpus lies a canary. Its content and its name must not appear in any output, the tree
must be the same afterwards, and each line must end within its time.
"""

import contextlib
import hashlib
import os
import socket
import stat
import threading
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.systems.agent.line import LONGEST
from ragkit.systems.agent.sandbox import Sandbox
from tests.systems.agent.conftest import FILES, plant

CONTENT = "canary-4d1c-sings"
NAME = "zwitscher"  # of the canary's file and folder
SECONDS = 0.4
SLACK = 3.0  # for a busy machine: far below what a bomb would take
BACKSLASH = "\\"


@pytest.fixture(scope="module")
def trap(tmp_path_factory):
    """A corpus with every kind of trap in it, and the canary beside it."""
    base = tmp_path_factory.mktemp("trap")
    root = plant(base / "corpus")
    outside = base / NAME
    plant(outside, {f"{NAME}.txt": CONTENT + "\n", "root:x.txt": CONTENT})
    (root / "linked").symlink_to(outside)
    (root / "linked.txt").symlink_to(outside / f"{NAME}.txt")
    (root / "slack" / "up").symlink_to("../..")
    (root / "slack" / "rel.txt").symlink_to(f"../../{NAME}/{NAME}.txt")
    (root / "loop").symlink_to("loop")
    (root / "round").symlink_to(".")
    (root / "passwd").symlink_to("/etc/passwd")
    (root / "proc").symlink_to("/proc/self")
    os.link(outside / f"{NAME}.txt", root / "hard.txt")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as bound, contextlib.suppress(OSError):
        bound.bind(str(root / "socket"))  # refused where the path is too long for a socket
    with contextlib.suppress(PermissionError):  # only root may make devices
        os.mknod(root / "zero.txt", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.mkfifo(root / "jira" / "pipe.txt")
    plant(
        root,
        {
            "-rf": "an option\n",
            "--include=..": "an option\n",
            "new\nline.txt": "a newline in the name\n",
            "esc\x1b[31m.txt": "\x1b]0;title\x07 colours \x1b[31m\n",
            "$(id).txt": "a substitution\n",
            "`id`.txt": "a substitution\n",
            "; cat x.txt": "a list\n",
            "bad\udce4.txt".encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"): (
                b"\xff\xfe\x00 not UTF-8 \xe4\n\xc3\x28\n"
            ),
            "binary.bin": bytes(range(256)) * 50,
            "wide.txt": "a" * 3_000_000,
            "aaaa.txt": ("a" * 5000 + "\n") * 200,
            "many.txt": "hello\n" * 200_000,
            "/".join(["deep"] * 70) + "/end.txt": "at the bottom\n",
            **{f"crowd/{n:04}.txt": "x\n" for n in range(2_100)},
        },
    )
    (root / "zzz").mkdir()
    with open(root / "zzz" / "huge.bin", "wb") as file:
        file.truncate(200 << 30)  # sparse
    (root / "locked.txt").write_text("no")
    (root / "locked.txt").chmod(0)
    return root


def digest(root):
    """Return a hash of names, kinds, sizes and times of all that lies beside and in the corpus."""
    total = hashlib.sha256()
    for folder, names, files in sorted(os.walk(root.parent)):
        for name in sorted(names + files):
            path = os.path.join(folder, name)
            info = os.lstat(path)
            kept = (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ino, info.st_nlink)
            total.update(os.fsencode(path) + repr(kept).encode())
            if stat.S_ISREG(info.st_mode) and info.st_mode & 0o400 and info.st_size < 1 << 20:
                with open(path, "rb") as file:
                    total.update(file.read())
    return total.hexdigest()


UP = f"../{NAME}/{NAME}.txt"
TRAVERSAL = [
    f"cat {UP}",
    f"cat ./{UP}",
    f"cat slack/../{UP}",
    f"cat slack/general/../../{UP}",
    f"cat slack/..//{UP}",
    f"cat 'slack/../{UP}'",
    f'cat "{UP}"',
    f"cat ..{BACKSLASH}/{NAME}/{NAME}.txt",
    f"cat {BACKSLASH}.{BACKSLASH}./{NAME}/{NAME}.txt",
    f"cat '.'./{NAME}/{NAME}.txt",
    f"cat .''./{NAME}/{NAME}.txt",
    f'cat ".""."/{NAME}/{NAME}.txt',
    f"cat .[.]/{NAME}/{NAME}.txt",
    f"cat [.][.]/{NAME}/{NAME}.txt",
    f"cat .?/{NAME}/{NAME}.txt",
    f"cat ??/{NAME}/{NAME}.txt",
    f"cat .*/{NAME}/{NAME}.txt",
    f"cat .*/*/{NAME}.txt",
    "cat ../*/*",
    "cat */../../*/*",
    "cat slack/*/../../../*/*",
    "ls ..",
    "ls ../",
    "ls slack/../..",
    "ls -a ..",
    "ls -R ..",
    "ls -d ../*",
    "ls .*",
    "ls -la .*",
    "ls -d .*/",
    "ls -d .*/*",
    "ls -d */..",
    "tree ..",
    "tree slack/..",
    "find ..",
    "find .. -name '*.txt'",
    "find slack/../..",
    "find . .. -maxdepth 3",
    "find ./.. -type f",
    "find . -path '../*'",
    "find . -name '..'",
    "grep -r canary ..",
    "grep -r canary ../",
    "grep -r canary . ..",
    "grep -r canary slack/../..",
    "grep -rh canary --include='*' ..",
    "grep canary ../*/*",
    f"head {UP}",
    f"head -c 100 {UP}",
    f"tail {UP}",
    f"tail -c 100 {UP}",
    f"wc {UP}",
    f"sort {UP}",
    f"uniq {UP}",
    f"cut -c 1- {UP}",
    f"sed -n '1,9p' {UP}",
    f"cat numbers.txt {UP}",
    f"cat -- {UP}",
    f"cat numbers.txt | cat - {UP}",
    f"cat %2e%2e/{NAME}/{NAME}.txt",
    f"cat \u2025/{NAME}/{NAME}.txt",
    f"cat \uff0e\uff0e/{NAME}/{NAME}.txt",
    f"cat ..\u2215{NAME}\u2215{NAME}.txt",
    f"cat ..{BACKSLASH}{BACKSLASH}{NAME}{BACKSLASH}{BACKSLASH}{NAME}.txt",
]
ABSOLUTE = [
    "cat /etc/passwd",
    "cat //etc/passwd",
    "cat '/etc/passwd'",
    'cat "/"etc/passwd',
    f"cat {BACKSLASH}/etc/passwd",
    "cat /proc/self/environ",
    "cat /proc/self/cmdline",
    "cat /dev/zero",
    "head -c 10 /dev/urandom",
    "cat /dev/stdin",
    "cat /dev/tty",
    "cat /dev/fd/0",
    "cat /???/passwd",
    "cat /*/passwd",
    "cat /[e]tc/passwd",
    "ls /",
    "ls -d /*",
    "tree /",
    "find / -maxdepth 1",
    "grep -r root /etc",
    "grep root /etc/passwd",
    "sort /etc/passwd",
    "wc -l /etc/passwd",
    "cat ~/.ssh/id_rsa",
    "cat ~root/.bashrc",
    "ls ~",
    "cat file:///etc/passwd",
    "cat https://example.org/x",
]
LINKS = [
    f"cat linked/{NAME}.txt",
    "cat linked/*",
    "cat linked*/*",
    "cat linked.txt",
    "cat *.txt",
    "cat */*.txt",
    "cat slack/rel.txt",
    f"cat slack/up/{NAME}/{NAME}.txt",
    "cat slack/up/*/*",
    "cat loop",
    "cat round/round/round/linked.txt",
    "cat passwd",
    "cat proc/environ",
    "cat hard.txt",
    "head hard.txt linked.txt",
    "tail -n 5 linked.txt",
    "wc linked.txt hard.txt",
    "sort linked.txt",
    "uniq hard.txt",
    "cut -c1-9 linked.txt",
    "sed -n 1p linked.txt",
    "grep canary linked.txt",
    "grep -r canary",
    "grep -R canary .",
    "grep -r canary linked",
    "grep -r canary linked/",
    "grep -r canary slack/up",
    "grep -rc canary . | grep -v ':0$'",
    "grep -rl '' .",
    "ls linked",
    "ls linked/",
    "ls -l",
    "ls -la linked linked.txt slack/up",
    "ls -R",
    "tree",
    "tree linked",
    "find linked",
    "find linked/",
    "find -L .",
    "find -H linked",
    "find . -follow",
    "find . -type l",
    "find . -lname '*'",
    "find . -samefile hard.txt",
    "find . -printf '%l'",
    "find . -ls",
    "grep --dereference-recursive canary",
    "cat pipe",
    "cat zero.txt",
    "head -c 9 zero.txt",
    "grep -c a zero.txt",
    "cat socket",
    "head -n 1 jira/pipe.txt",
    "grep -r a jira",
    "wc pipe",
    "cat locked.txt",
]
INJECTION = [
    "cat *",
    "ls *",
    "cat -- *",
    "cat -rf",
    "cat -- -rf",
    "grep an *",
    "grep -f ../canary .",
    f"grep -f {UP} numbers.txt",
    f"grep --file={UP} numbers.txt",
    f"grep -f{UP} numbers.txt",
    f"grep -rf {UP}",
    "grep --include=../ -r canary",
    "grep --include=../* -r canary",
    f"grep --include=../{NAME}/* -r canary .",
    "grep --include '../*' -r canary .",
    "grep --exclude=../x -r canary",
    f"grep --exclude-from={UP} -r x",
    "grep --exclude-dir=../ -r canary ..",
    "grep -d recurse canary ..",
    "grep -D read canary pipe",
    "grep --devices=read a pipe",
    "grep --directories=recurse canary ..",
    "grep -P '(?{system(1)})' numbers.txt",
    "grep --perl-regexp a numbers.txt",
    "grep -z canary numbers.txt",
    "grep --color=always a numbers.txt",
    "grep --null -r a",
    "find . -exec cat {} +",
    "find . -exec cat '{}' ';'",
    f"find . -exec cat '{{}}' {BACKSLASH};",
    "find . -execdir id ';'",
    "find . -ok id ';'",
    "find . -okdir id ';'",
    "find . -delete",
    "find . -name '*.txt' -delete",
    f"find . -fprint ../{NAME}/x",
    "find . -fprintf out %p",
    "find . -fls out",
    f"find . -newer {UP}",
    f"find . -anewer {UP}",
    f"find -files0-from {UP}",
    "find . -regex '.*'",
    "find . -print0",
    "sort -o numbers.txt numbers.txt",
    "sort --output=numbers.txt numbers.txt",
    "sort -T .. numbers.txt",
    "sort --compress-program=id numbers.txt",
    f"sort --files0-from={UP}",
    "sort -m numbers.txt",
    f"sort --random-source={UP} -R numbers.txt",
    f"wc --files0-from={UP}",
    "uniq numbers.txt numbers.txt",
    "uniq numbers.txt new.txt",
    "tail -f numbers.txt",
    "tail -F numbers.txt",
    "tail --follow=name --retry numbers.txt",
    "head --zero-terminated numbers.txt",
    "ls --hyperlink",
    "ls -i",
    "ls -L linked.txt",
    "ls --dereference linked",
    f"ls --ignore={NAME} ..",
    "cut --output-delimiter=x -c1 numbers.txt",
    "cat -v numbers.txt",
    "cat --help",
    "ls --version",
    "sed 1p numbers.txt",
    "sed -n '1e id' numbers.txt",
    "sed -n '1w out' numbers.txt",
    f"sed -n '1r {UP}' numbers.txt",
    "sed -n 's/a/id/e' numbers.txt",
    "sed -i s/a/b/ numbers.txt",
    f"sed -f {UP} numbers.txt",
    "sed -n '1p;w out' numbers.txt",
    "sed -ne 1p numbers.txt",
    "sed -n '1,2p\\' numbers.txt",
    "tree -o out",
    f"tree --fromfile {UP}",
    "tree -l",
]
SHELL = [
    f"ls; cat {UP}",
    f"ls && cat {UP}",
    f"ls || cat {UP}",
    f"ls & cat {UP}",
    "ls &",
    f"ls |& cat {UP}",
    f"ls\ncat {UP}",
    f"ls\r\ncat {UP}",
    f"ls\x0bcat {UP}",
    f"ls\u2028cat {UP}",
    f"ls\x85cat {UP}",
    f"cat numbers.txt\x00{UP}",
    "cat numbers.txt\x00.png",
    f"cat $(echo {UP})",
    f"cat `echo {UP}`",
    f'cat "$(echo {UP})"',
    f'cat "`echo {UP}`"',
    f"cat <({UP})",
    f"cat < {UP}",
    f"cat<{UP}",
    f"cat 0<{UP}",
    "cat << EOF",
    f"cat <<< {UP}",
    "ls > out",
    "ls >> out",
    "ls>out",
    "ls 2> out",
    "ls 2>&1",
    "ls &> out",
    "ls >| out",
    "ls 2>/dev/null/../../out",
    "ls 2>/dev/nullx",
    "ls 1>/dev/null",
    "2>/dev/null",
    "2>/dev/null ls ..",
    "echo $HOME",
    "cat $HOME/x",
    'cat "$HOME/x"',
    "cat ${HOME}/x",
    "cat ${IFS}x",
    "cat$IFS../x",
    "cat $'\\x2e\\x2e/x'",
    'cat $"x"',
    "cat $0",
    "cat $$",
    "ls $((1+1))",
    "ls {a,b}",
    f"cat {{..,.}}/{NAME}",
    "cat {1..100000000}",
    "(ls)",
    "{ ls; }",
    "! ls",
    "X=1 ls",
    "PATH=. ls",
    "LD_PRELOAD=x ls",
    "ls # comment",
    "ls 'unclosed",
    'ls "unclosed',
    "ls \\",
    "|",
    "ls |",
    "| ls",
    "ls | | ls",
    "!!",
    "!cat",
    "",
    "   ",
    "\x00",
    "\ud800",
    "ls \x1b[2J",
    "if true; then ls; fi",
    "while :; do ls; done",
    ":(){ :|:& };:",
    "function f { ls; }",
    "[[ -f x ]]",
    "[ -f x ]",
    "ls\u00a0..",
    "\uff4c\uff53 ..",
    "l\\s ..",
    "''",
    "'' ls",
]
PROGRAMS = [
    "bash -c ls",
    "sh",
    "/bin/ls",
    "./ls",
    "../bin/ls",
    "python3 -c 'print(1)'",
    "perl -e 1",
    "awk 'BEGIN{system(\"id\")}'",
    "xargs cat",
    f"find . | xargs -I@ cat {UP}",
    "env",
    "eval ls",
    "exec ls",
    "source x",
    ". x",
    "cd ..",
    "pwd",
    "echo *",
    "printf %s x",
    "tee out",
    "cat numbers.txt | tee out",
    "rm numbers.txt",
    "mv numbers.txt x",
    "cp numbers.txt x",
    "ln -s / x",
    "mkdir x",
    "touch x",
    "chmod 777 numbers.txt",
    "dd if=/dev/zero",
    "curl http://localhost",
    "wget http://localhost",
    "nc -l 1",
    "less numbers.txt",
    "vi numbers.txt",
    "readlink linked",
    "realpath linked",
    "stat linked",
    "file linked",
    "strings zzz/huge.bin",
    "diff numbers.txt ../x",
    "comm numbers.txt ../x",
    "split numbers.txt",
    "sleep 100",
    "kill 1",
    "rg canary ..",
    "time ls",
    "nohup ls",
    "sudo cat x",
    "cat.exe x",
    "CAT numbers.txt",
    "__import__('os')",
    "COMMANDS",
]
BOMBS = [
    "cat zzz/huge.bin",
    "cat zzz/huge.bin zzz/huge.bin",
    "grep -c a zzz/huge.bin",
    "grep -r zzz",
    "grep -rv zzz",
    "grep -ro .",
    "wc zzz/huge.bin",
    "wc -w zzz/huge.bin many.txt",
    "sort zzz/huge.bin",
    "sort many.txt many.txt many.txt many.txt many.txt many.txt many.txt many.txt many.txt",
    "uniq zzz/huge.bin",
    "tail -n 3 zzz/huge.bin",
    "tail -c 5000000000 zzz/huge.bin",
    "tail -n 999999999999 many.txt",
    "head -n -999999999999 many.txt",
    "head -c -1 zzz/huge.bin",
    "head -n 99999999999999999999999999 many.txt",
    "head -c 999999999999999 zzz/huge.bin",
    "sed -n '999999999p' zzz/huge.bin",
    "cut -c 1-999999999 zzz/huge.bin",
    "cut -f 99999999999 many.txt",
    "cat many.txt",
    "cat -n many.txt many.txt many.txt",
    "cat wide.txt",
    "cat binary.bin",
    "grep -a . binary.bin",
    "ls crowd",
    "cat crowd/*",
    "ls -d crowd/* crowd/* crowd/*",
    "cat */*/*/*/*/*/*/*/*/*/*/*",
    "cat " + "*/" * 300,
    "ls " + "*" * 3000,
    "ls " + "*a" * 1000 + "b",
    "ls " + "[a-z]*" * 300 + "!",
    "ls " + "?" * 3000,
    "find . -name '" + "*a" * 1500 + "b'",
    "find . -path '" + "*/*" * 500 + "zz'",
    "find . " + "! " * 240 + "-type f",
    "find . " + "\\( " * 240,
    "find . " + "\\( " * 110 + "-type f" + " \\)" * 110,
    "find . -type f " + "-o -type f " * 80,
    "grep -E '(a+)+$' aaaa.txt",
    "grep -E '(a*)*b' aaaa.txt",
    "grep -E '(a|a)*b' aaaa.txt",
    "grep -E '(a|aa)+$' aaaa.txt",
    "grep -E '(.*)*(.*)*(.*)*x' aaaa.txt wide.txt",
    "grep -oE 'a*b' aaaa.txt",
    "grep -oE '(a?){50}(b|$)' wide.txt",
    "grep -E '^(([a-z])+.)+[A-Z]([a-z])+$' aaaa.txt",
    "grep -E '(a?){500}a{500}' aaaa.txt",
    "grep -E '[ab]*a[ab]{400}c' aaaa.txt",
    "grep -E '((((a{100}){100}){100}){100})' aaaa.txt",
    "grep -E 'a{99999}' aaaa.txt",
    "grep -E 'a{1,999999999999999999}' aaaa.txt",
    "grep -E '" + "(" * 2000 + "' aaaa.txt",
    "grep -E '" + "(" * 1000 + "a" + ")" * 1000 + "' aaaa.txt",
    "grep -E '" + "a|" * 1900 + "' numbers.txt",
    "grep -E '" + "(a*)" * 400 + "b' aaaa.txt",
    "grep '\\(a*\\)*\\1b' aaaa.txt",
    "grep -E '(a*)\\1' aaaa.txt",
    "grep -E '(((){2000}){2000}){2000}' aaaa.txt",
    "grep -E '" + "(" * 30 + ")" + "{1000})" * 29 + "' aaaa.txt",
    "grep 'a" + "*" * 3500 + "' aaaa.txt",
    "grep -E 'a" + "+*?" * 1100 + "' aaaa.txt",
    "grep -E '" + "(" * 35 + "a" + ")***" * 35 + "' aaaa.txt",
    "ls " + "crowd/* " * 250,
    "grep -iE '(\u0130|\u00df|k)*x' wide.txt",
    "grep -w 'a*' wide.txt",
    "grep -C 999999999 a many.txt",
    "grep -A 100 -B 100 hello many.txt",
    "grep -m 999999999999999999999 a many.txt",
    "grep " + "-e a " * 100 + "many.txt",
    "cat many.txt" + " | cat" * 7,
    "cat many.txt" + " | cat" * 50,
    "cat " + "numbers.txt " * 300,
    "ls " + "a" * 5000,
    "cat " + "deep/" * 70 + "end.txt",
    "find deep -name end.txt",
    "grep -r bottom deep",
    "ls -R deep",
    "tree deep",
    "find . -type f | sort | uniq -c | sort -nr | head -n 5",
    "sort -k 999999 many.txt",
    "sort -t a -k2,1 -k1n aaaa.txt",
    "sort -n binary.bin",
    "cut -d a -f 2- wide.txt",
    "wc -m binary.bin",
]
HOSTILE = [*TRAVERSAL, *ABSOLUTE, *LINKS, *INJECTION, *SHELL, *PROGRAMS, *BOMBS]


@pytest.fixture(scope="module")
def guarded(trap):
    before = digest(trap)
    with Sandbox(trap, seconds=SECONDS) as one:
        yield one
    assert digest(trap) == before, "a command line changed something"


def clean(line, output):
    """Whether nothing from outside is in the output."""
    text = output.text + (output.refused or "")
    named = line.count(NAME) > 0  # what a line asks for may come back in "No such file"
    return CONTENT not in text and "root:x:" not in text and (named or NAME not in text)


def test_there_are_at_least_200_lines_and_no_two_alike():
    assert len(set(HOSTILE)) == len(HOSTILE) >= 200


@pytest.mark.parametrize("line", HOSTILE, ids=lambda line: repr(line[:50]))
def test_hostile_line(line, guarded):
    began = time.monotonic()
    output = guarded.run(line)
    assert time.monotonic() - began < SECONDS + SLACK
    assert clean(line, output)
    assert len(output.text) < guarded.output_bytes + 4_000
    assert not any(ord(char) < 32 and char not in "\n\t" for char in output.text)
    assert (output.refused is not None) == (output.status == 126)


@pytest.mark.parametrize(
    "line", [*ABSOLUTE, *PROGRAMS, *(line for line in TRAVERSAL if "/../" in line)]
)
def test_what_can_only_be_meant_badly_is_refused(line, guarded):
    output = guarded.run(line)
    if line not in ("cat file:///etc/passwd", "cat https://example.org/x"):  # names, if odd ones
        assert output.refused


@pytest.mark.parametrize("line", [line for line in SHELL if line not in ("ls 2>/dev/null",)])
def test_what_a_shell_would_interpret_is_refused(line, guarded):
    assert guarded.run(line).refused


def test_the_canary_would_be_seen(trap):
    """The check above can fail: a sandbox one folder further up shows the canary."""
    with Sandbox(trap.parent) as wide:
        line = "grep -rh canary . --include=root*"
        assert not clean(line, wide.run(line))
        assert not clean("ls", wide.run("ls"))


def test_links_pipes_and_second_links_are_not_there(guarded):
    shown = guarded.run("ls -A").text.splitlines()
    assert "numbers.txt" in shown
    assert not {
        "linked",
        "linked.txt",
        "loop",
        "round",
        "passwd",
        "proc",
        "pipe",
        "zero.txt",
        "socket",
    } & set(shown)
    assert guarded.run("cat linked.txt").text.startswith("cat: linked.txt: No such file")
    assert guarded.run("cat zero.txt").text.startswith("cat: zero.txt: No such file")
    assert guarded.run("cat hard.txt").text == "cat: hard.txt: Permission denied\n"
    assert guarded.run("cat linked/x.txt").status == 1


def test_a_search_of_everything_passes_by_what_is_outside(trap):
    with Sandbox(trap, seconds=20) as patient:
        output = patient.run("grep -rIl --exclude=huge.bin -e canary -e hello .")
        assert output.status == 2  # hard.txt may not be read
        assert "./many.txt" in output.text
        assert "Permission denied" in output.text
        assert clean("", output)


def test_an_option_in_a_file_name_stays_a_name(guarded):
    assert guarded.run("grep -c an -- -rf").text == "1\n"
    output = guarded.run("cat -- *include*")
    assert (output.text, output.status) == ("an option\n", 0)
    assert guarded.run("grep -s option -- -* [a]*.txt").text.splitlines() == [
        "--include=..:an option",
        "-rf:an option",
    ]


def test_the_time_is_a_limit_in_fact(trap):
    with Sandbox(trap, seconds=0.3) as quick:
        for line in (
            "grep -c a zzz/huge.bin",
            "wc zzz/huge.bin",
            "find zzz/huge.bin . | grep -c x | cat",
        ):
            began = time.monotonic()
            output = quick.run(line)
            assert time.monotonic() - began < 0.3 + SLACK
            if "zzz/huge.bin ." not in line:
                assert (output.status, output.truncated) == (124, True)
                assert "stopped after 0.3 s" in output.text


def test_a_command_gets_no_more_seconds_than_the_sandbox_has(guarded):
    assert guarded.run("wc zzz/huge.bin", seconds=0.05).status == 124
    assert guarded.run("ls", seconds=-1).status == 124
    began = time.monotonic()
    guarded.run("wc zzz/huge.bin", seconds=float("nan"))
    assert time.monotonic() - began < SECONDS + SLACK


def test_the_memory_is_a_limit_in_fact(trap):
    with Sandbox(trap, memory_bytes=100_000) as small:
        for line in ("sort many.txt", "tail -n 900000 many.txt", "head -n -900000 many.txt"):
            output = small.run(line)
            assert (output.status, output.truncated) == (125, True)
            assert "too much to hold" in output.text
        assert small.run("tail -n 2 many.txt").text == "hello\nhello\n"


def test_the_output_is_cut_at_a_line_and_says_how_much_is_left_out(trap):
    with Sandbox(trap, output_bytes=1_000) as short:
        output = short.run("cat many.txt")
    assert output.truncated
    assert output.text.startswith("hello\n" * 166 + "[cut: 199,834 more lines, 1,199,004 bytes; ")
    assert "head" in output.text
    assert output.lines_left_out == 199_834


def test_an_output_of_one_line_is_cut_too(trap):
    with Sandbox(trap, output_bytes=1_000) as short:
        output = short.run("cat wide.txt")
    assert output.text.startswith("a" * 1_000 + "\n[cut: 0 more lines, 2,999,000 bytes; ")


def test_bytes_that_are_no_text_and_controls_are_replaced(guarded):
    text = guarded.run("cat *bad*").text
    assert text == "\ufffd\ufffd\ufffd not UTF-8 \ufffd\n\ufffd(\n"
    assert guarded.run("cat esc*").text == "\ufffd]0;title\ufffd colours \ufffd[31m\n"
    assert "esc?[31m.txt" in guarded.run("ls").text
    assert "new?line.txt" in guarded.run("find . -name 'new*'").text


def test_links_made_while_a_command_runs_lead_nowhere(tmp_path):
    """A folder that turns into a link to the canary, again and again, while it is read."""
    root = plant(tmp_path / "corpus", {f"a{n}/b/{NAME}.txt": "hello\n" for n in range(20)})
    outside = plant(tmp_path / "outside", {f"b/{NAME}.txt": CONTENT})
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            for n in range(20):
                folder, aside = root / f"a{n}", root / f"x{n}"
                folder.rename(aside)
                folder.symlink_to(outside)
                folder.unlink()
                aside.rename(folder)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        with Sandbox(root, output_bytes=1 << 20) as one:
            seen = "".join(
                one.run(line).text
                for line in ["grep -r .", f"cat a*/b/{NAME}.txt", "find . -type f"] * 30
            )
    finally:
        stop.set()
        swapper.join()
    assert "hello" in seen
    assert CONTENT not in seen


def test_a_folder_that_is_replaced_does_not_move_the_root(tmp_path):
    root = plant(tmp_path / "corpus", {"x.txt": "inside\n"})
    outside = plant(tmp_path / "outside", {"x.txt": CONTENT})
    with Sandbox(root) as one:
        root.rename(tmp_path / "moved")
        root.symlink_to(outside)
        assert one.run("cat x.txt").text == "inside\n"


def test_a_file_that_grows_is_read_as_long_as_it_was(tmp_path):
    root = plant(tmp_path, {"log.txt": "x" * (1 << 19)})
    with Sandbox(root, output_bytes=1 << 24) as one, open(root / "log.txt", "a") as log:
        jail, budget = one._jail, _Growing(log)
        size = sum(map(len, jail.read("log.txt", jail.root, budget)))
    assert size == 1 << 19


class _Growing:
    """A budget whose every check makes the file longer."""

    def __init__(self, file):
        self.file = file

    def check(self):
        self.file.write("y" * 100_000)
        self.file.flush()


def test_descriptors_are_given_back(trap):
    with Sandbox(trap, seconds=0.5) as one:
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
        if before is None:
            pytest.skip("the open descriptors are counted in /proc")
        for line in (
            "grep -rm1 a | head -n 1",
            "cat zzz/huge.bin | head -c 5",
            "wc zzz/huge.bin",
            "tree",
        ):
            one.run(line)
        one.run("find . | head -n 1")
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_closed_sandbox_says_so(trap):
    one = Sandbox(trap)
    one.close()
    with pytest.raises(UsageError, match="closed"):
        one.run("ls")
    with pytest.raises(UsageError, match="a command line is a string, not bytes"):
        Sandbox(trap).run(b"ls")


@pytest.mark.parametrize(
    "options", [{"seconds": 0}, {"seconds": float("inf")}, {"output_bytes": 5}, {"seconds": "1"}]
)
def test_options_out_of_range(options, trap):
    with pytest.raises(UsageError, match="should be a number above"):
        Sandbox(trap, **options)


@pytest.mark.parametrize(("name", "hint"), [("xargs", "grep -r"), ("cd", "path"), ("vi", "wc")])
def test_a_refusal_says_what_to_write_instead(name, hint, guarded):
    output = guarded.run(f"{name} x")
    assert output.refused == f"there is no command '{name}'"
    assert hint in output.text


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(DataError, match="not a folder to look into"):
        Sandbox(tmp_path / "nothing")


WORDS = st.sampled_from(
    ["cat", "ls", "grep", "find", "head", "sort", "-r", "-rn", "-e", "--", "|", "..", "/", "*", "'"]
    + ['"', "\\", "$", "(", "-name", "-exec", "linked", "hard.txt", "[", "slack/*", "-1", "a{9}"]
    + ["-E", "\n", "--include=*", "2>/dev/null", "-k2", ".*", "a**", "-o", "!", "-maxdepth", "1"]
)


@settings(max_examples=300, deadline=None)
@given(line=st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=8).map(" ".join)))
@example(line="x" * (LONGEST + 1))
def test_no_line_raises_or_gets_out(line, guarded):
    output = guarded.run(line, seconds=0.5)
    assert clean(line, output)
    assert output.status in (0, 1, 2, 124, 125, 126)


def test_the_names_of_the_traps_are_those_of_the_corpus(trap):
    assert all((trap / name).exists() for name in FILES)
