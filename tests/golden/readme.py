"""Runs the commands that README shows with their output, and compares: readme.py [--update].

A fenced block whose first line begins with "$ " is a case: commands, each behind "$ " (a "\\" at the end goes on in the next line), and below each what it prints, both streams together. A line "..." stands for any number of lines,
blank lines do not count. Commands run in one empty folder after the other, top to bottom, with what the repository holds beside them; in README they are run at the repository's root. --update writes what is printed now into README,
of blocks with "..." the lines most like those that stand there; read the difference before keeping it. The last line is "N passed, N failed"; exit code 1 where a command prints something else, fails, or takes more than 10 s of CPU a core.
"""
import difflib
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 10  # of one core, and so a loaded machine fails nothing


def blocks(lines):
    """Half-open line ranges between fences, of the blocks that begin with a command."""
    begin = None
    for i, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if begin is None:
            begin = i + 1
            continue
        if lines[begin].startswith("$ "):
            yield begin, i
        begin = None


def cases(lines):
    """[the command's lines, the lines below it] of one block."""
    found = []
    continued = False
    for line in lines:
        if line.startswith("$ "):
            found.append([[line], []])
        elif continued:
            found[-1][0].append(line)
        else:
            found[-1][1].append(line)
        continued = (continued or line.startswith("$ ")) and line.endswith("\\")
    return found


def run(command, folder):
    """What is printed, without trailing blanks; the exit code as a last line where it is not 0; the CPU time that was used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=os.environ | {"LC_ALL": "C", "HOME": folder, "XDG_CACHE_HOME": folder + "/.cache"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    return printed + ([f"[{done.returncode}]"] if done.returncode else []), after.ru_utime - before.ru_utime


def same(expected, printed):
    """Whether the lines are those, with "..." for any number of them."""
    pattern = "".join(r"(?:[^\n]*\n)*?" if line == "..." else re.escape(line) + "\n" for line in expected if line)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed if line)) is not None


def nearest(expected, printed):
    """The lines printed that are most like those expected, part by part between the "..."."""
    fresh, at, part = [], 0, []
    shape = lambda line: re.sub(r"[\d.]+", "#", re.sub(r"\s+", " ", line))
    for line in [*expected, "..."]:
        if line != "...":
            part.append(line)
            continue
        if part:
            likeness = lambda i: sum(difflib.SequenceMatcher(None, shape(a), shape(b)).ratio() for a, b in zip(part, printed[i:]))
            at = max(range(at, max(at + 1, len(printed) - len(part) + 1)), key=likeness)
            fresh += printed[at : at + len(part)]
            at += len(part)
        fresh.append("...")
        part = []
    return fresh[:-1]


def main():
    update = sys.argv[1:] == ["--update"]
    if sys.argv[1:] and not update:
        sys.exit(__doc__)
    readme = ROOT / "README.md"
    text = readme.read_text().splitlines()
    passed = failed = 0
    fresh, copied = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("build", "configs", "docs", "scripts", "tests"):
            os.symlink(ROOT / name, Path(folder) / name)
        for begin, end in blocks(text):
            fresh += text[copied:begin]
            copied = end
            for command, expected in cases(text[begin:end]):
                printed, cpu_s = run("\n".join(command)[2:], folder)
                good = same(expected, printed) and cpu_s < LIMIT_S * 2
                passed, failed = passed + good, failed + (not good)
                if not good and not update:
                    print(f"README.md:{begin + 1}: {command[0]} ({cpu_s:.1f} s of CPU time)")
                    print("\n".join("    " + line for line in difflib.unified_diff(expected, printed, "README.md", "printed", lineterm="", n=1)))
                fresh += command
                fresh += expected if same(expected, printed) else nearest(expected, printed) if "..." in expected else printed
                if fresh[-1] == "" and expected and expected[-1] != "":
                    fresh.pop()
    if update:
        readme.write_text("\n".join(fresh + text[copied:]) + "\n")
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or passed == 0


sys.exit(main())
