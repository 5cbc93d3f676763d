r"""Runs the commands that the pages show, and compares their output: readme.py [--update] [PAGE ...].

The pages are README.md and docs/*.md. Each has a scratch folder of its own, in which the repository's folders stand as
links (docs/ as a copy). Commands run there from top to bottom, as a reader runs them at the repository's root.

Commands with output: a fenced block whose first line begins with "$ ". It holds one or more commands, each behind "$ "
(a "\" at the end continues it on the next line), and below each what it prints, both streams together. A line "..."
stands for any number of lines; blank lines do not count. An exit code other than 0 is the last line: "[2]".
Commands without output: lines indented by four blanks that run `stepsim predict` or `stepsim list` must exit with 0.
Configs: a ```yaml block must be predicted with exit code 0. One whose first line is "# NAME.yaml" is written under that
name for the commands below it instead.
Pictures: an SVG that a command writes into docs/ must equal the one in docs/.
Text: no line outside of fenced blocks has more than 100 columns. Relative links lead to a file, and to a heading of it
where they have a #anchor.

A command must take less than 20 s of CPU time, which is 10 s on two cores.
--update writes what is printed now into the pages and the pictures into docs/. In blocks with "..." it keeps the lines
most like those shown. Read the difference before keeping it.
The last line is "N passed, N failed". The exit code is 1 where anything failed.
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
LIMIT_S = 20  # of CPU time, so that other load on the machine fails no test
COLUMNS = 100
NAME = r"# ([\w.-]+\.yaml)"  # the first line of a config that has a name


def blocks(lines):
    """Yields (language, begin, end) of each fenced block; the half-open range leaves out the fences."""
    begin = None
    for i, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if begin is None:
            begin = i + 1
            continue
        yield lines[begin - 1][3:].strip(), begin, i
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
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"}
        | {"LC_ALL": "C", "HOME": folder, "XDG_CACHE_HOME": folder + "/.cache"},
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


def run_shown(page, text, folder):
    """Runs the commands with output. Returns how many passed, what failed, and the page as it should be."""
    passed, failed, fresh, copied = 0, [], [], 0
    for language, begin, end in blocks(text):
        name = re.fullmatch(NAME, text[begin])
        if language == "yaml" and name:
            Path(folder, name[1]).write_text("\n".join(text[begin:end]) + "\n")
        if not text[begin].startswith("$ "):
            continue
        fresh += text[copied:begin]
        copied = end
        for command, expected in cases(text[begin:end]):
            printed, cpu_s = run("\n".join(command)[2:], folder)
            equal = same(expected, printed)
            fresh += command + (
                expected if equal else nearest(expected, printed) if "..." in expected else printed
            )
            if equal and cpu_s < LIMIT_S:
                passed += 1
                continue
            difference = difflib.unified_diff(expected, printed, page, "printed", lineterm="", n=1)
            failed.append(
                "\n    ".join(
                    [f"{page}:{begin + 1}: {command[0]} ({cpu_s:.1f} s of CPU time, limit {LIMIT_S})"]
                    + list(difference)
                )
            )
    return passed, failed, fresh + text[copied:]


def run_alone(page, text, folder):
    """Runs the commands without output, and predicts the configs without a name. Returns as run_shown does."""
    commands = [line.strip() for line in text if re.match(r"    build/release/stepsim (predict|list) ", line)]
    for language, begin, end in blocks(text):
        if language == "yaml" and not re.fullmatch(NAME, text[begin]):
            Path(folder, f"line{begin + 1}.yaml").write_text("\n".join(text[begin:end]) + "\n")
            commands.append(f"build/release/stepsim predict line{begin + 1}.yaml")
    failed = [
        f"{page}: {command}: {printed[-2:]}"
        for command in commands
        for printed in [run(command, folder)[0]]
        if printed and re.fullmatch(r"\[\d+\]", printed[-1])
    ]
    return len(commands) - len(failed), failed


def outside_of_blocks(text):
    """The page's lines; those of fenced blocks are empty."""
    kept = list(text)
    for _, begin, end in blocks(text):
        kept[begin - 1 : end + 1] = [""] * (end + 2 - begin)
    return kept


def anchors(page):
    """The anchors that GitHub gives the headings of a page."""
    found = {}
    for line in outside_of_blocks(page.read_text().splitlines()):
        if not (heading := re.match(r"#{1,6} +(.*?) *#*$", line)):
            continue
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[anchor] = found.get(anchor, -1) + 1
    return {f"{name}-{i}" if i else name for name, count in found.items() for i in range(count + 1)}


def faults(page, text):
    """What is wrong with the page's text: lines that are too wide, links that lead nowhere."""
    kept = outside_of_blocks(text)
    wrong = [
        f"{page}:{number}: {len(line)} columns, at most {COLUMNS}"
        for number, line in enumerate(kept, 1)
        if len(line) > COLUMNS
    ]
    plain = re.sub(r"`[^`]*`", "`", "\n".join(kept))
    for target in re.findall(r"\]\(\s*([^)\s]+)[^)]*\)", plain):
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        if re.match(r"[a-z]+:", target):
            continue
        if not file.exists():
            wrong.append(f"{page}: {target}: there is no such file")
        elif anchor and (file.suffix != ".md" or anchor not in anchors(file)):
            wrong.append(f"{page}: {target}: there is no such heading")
    return wrong


def try_page(page, update):
    """Returns how many checks of a page passed, and the text of each that failed."""
    text = (ROOT / page).read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("build", "configs", "scripts", "tests"):
            os.symlink(ROOT / name, Path(folder) / name)
        shutil.copytree(ROOT / "docs", Path(folder) / "docs")
        shown, differ, fresh = run_shown(page, text, folder)
        alone, fail = run_alone(page, text, folder)
        pictures = [
            path
            for path in sorted(Path(folder, "docs").glob("*.svg"))
            if not same_file(path, ROOT / "docs" / path.name)
        ]
        for path in pictures if update else ():
            shutil.copy(path, ROOT / "docs")
    if update and fresh != text:
        (ROOT / page).write_text("\n".join(fresh) + "\n")
    look = faults(page, fresh)
    pictured = [f"{page}: docs/{path.name} is not what its command draws" for path in pictures]
    return shown + alone + (not look), differ + fail + pictured + look


def main():
    update = "--update" in sys.argv[1:]
    everything = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
    pages = [word for word in sys.argv[1:] if word != "--update"] or everything
    if not set(pages) <= set(everything):
        sys.exit(__doc__)
    passed, failed = 0, 0
    for page in pages:
        good, bad = try_page(page, update)
        passed += good
        failed += len(bad)
        print("".join(line + "\n" for line in bad), end="", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
