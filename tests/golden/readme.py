r"""Runs the commands that README shows with their output, and compares: readme.py [--update].

A fenced block whose first line begins with "$ " is a case: commands, each behind "$ " (a "\" at the end goes on in the
next line), and below each what it prints, both streams together. A line "..." stands for any number of lines,
blank lines do not count. In README commands are run at the repository's root, here top to bottom in one scratch folder,
in which the repository's own stand as links (docs/ as a copy).
Commands that are shown alone, indented, and predictions of the configs in ```yaml must end with exit code 0; a picture
under docs/ that a command writes must be the one that lies there.
--update writes what is printed now into README, of blocks with "..." the lines most like those that stand there, and
the pictures; read the difference before keeping it.
The last line is "N passed, N failed"; exit code 1 where a command prints something else, fails, or takes more than 20 s
of CPU time (10 s on two cores).
"""

import difflib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 20  # of CPU time: 10 s on two cores; what others do on the machine fails nothing


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
    """What is printed, without trailing blanks; the exit code as a last line where it is not 0; the CPU time that was
    used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"LC_ALL": "C", "HOME": folder, "XDG_CACHE_HOME": folder + "/.cache"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
    return printed + ([f"[{done.returncode}]"] if done.returncode else []), after.ru_utime - before.ru_utime


def same(expected, printed):
    """Whether the lines are those, with "..." for any number of them."""
    pattern = "".join(r"(?:[^\n]*\n)*?" if line == "..." else re.escape(line) + "\n" for line in expected if line)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed if line)) is not None


def nearest(expected, printed):
    """The lines printed that are most like those expected, part by part between the "...": each from where its first
    lines fit best to where its last ones do."""
    shape = lambda line: re.sub(r"[\d.]+", "#", re.sub(r"\s+", " ", line))
    alike = (
        lambda a, b: difflib.SequenceMatcher(None, shape(a), shape(b)).ratio()
        + 0.01 * difflib.SequenceMatcher(None, a, b).ratio()
    )

    def find(lines, at):
        return max(
            range(at, max(at + 1, len(printed) - len(lines) + 1)), key=lambda i: sum(map(alike, lines, printed[i:]))
        )

    fresh, at = [], 0
    parts = [
        part.strip("\n").split("\n") if part.strip() else []
        for part in re.split(r"^\.\.\.$", "\n".join(expected), flags=re.MULTILINE)
    ]
    for number, part in enumerate(parts):
        if number > 0:
            fresh.append("...")
        if part:
            begin = find(part[:3], at) if number > 0 else 0
            end = find(part[-3:], begin) + len(part[-3:]) if number < len(parts) - 1 else len(printed)
            fresh += printed[begin:end]
            at = end
    return fresh


def same_file(a, b):
    return b.exists() and a.read_bytes() == b.read_bytes()


def run_shown(text, folder):
    """Runs the cases; returns how many passed and failed, what differs, and the text as it should be."""
    passed, failed, wrong, fresh, copied = 0, 0, [], [], 0
    for begin, end in blocks(text):
        fresh += text[copied:begin]
        copied = end
        for command, expected in cases(text[begin:end]):
            printed, cpu_s = run("\n".join(command)[2:], folder)
            equal = same(expected, printed)
            fresh += command + (expected if equal else nearest(expected, printed) if "..." in expected else printed)
            if equal and cpu_s < LIMIT_S:
                passed += 1
                continue
            failed += 1
            wrong.append(f"README.md:{begin + 1}: {command[0]} ({cpu_s:.1f} s of CPU time, limit {LIMIT_S})")
            wrong += [
                "    " + line
                for line in difflib.unified_diff(expected, printed, "README.md", "printed", lineterm="", n=1)
            ]
    return passed, failed, wrong, fresh + text[copied:]


def run_alone(text, folder):
    """The commands that are shown without their output, and configs: how many, and those that fail."""
    commands = [line.strip() for line in text if re.match(r"    build/release/stepsim (predict|list) ", line)]
    for i, example in enumerate(re.findall(r"^```yaml\n(.*?)^```", "\n".join(text), re.MULTILINE | re.DOTALL)):
        Path(folder, f"example{i}.yaml").write_text(example)
        commands.append(f"build/release/stepsim predict example{i}.yaml")
    return len(commands), [command for command in commands if re.fullmatch(r"\[\d+\]", run(command, folder)[0][-1])]


def main():
    update = sys.argv[1:] == ["--update"]
    if sys.argv[1:] and not update:
        sys.exit(__doc__)
    readme = ROOT / "README.md"
    text = readme.read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("build", "configs", "scripts", "tests"):
            os.symlink(ROOT / name, Path(folder) / name)
        shutil.copytree(ROOT / "docs", Path(folder) / "docs")
        passed, failed, wrong, fresh = run_shown(text, folder)
        alone, bad = run_alone(text, folder)
        pictures = [
            path
            for path in sorted(Path(folder, "docs").glob("*.svg"))
            if not same_file(path, ROOT / "docs" / path.name)
        ]
        for path in pictures if update else ():
            shutil.copy(path, ROOT / "docs")
    if update:
        readme.write_text("\n".join(fresh) + "\n")
    else:
        print("".join(line + "\n" for line in wrong), end="")
    print(
        "".join(
            [f"docs/{path.name} is not what its command draws\n" for path in pictures]
            + [f"README.md: {command}: it fails\n" for command in bad]
        ),
        end="",
    )
    failed += len(pictures) + len(bad)
    print(f"{passed + alone - len(bad)} passed, {failed} failed")
    return failed > 0


sys.exit(main())
