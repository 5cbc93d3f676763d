"""Compares docs/reference.md with the program: contract.py ROOT, with `stepsim` in PATH.

It prints what differs, and how much was looked at. Commands, options with their commands, and exit codes come from
`--help`; JSON keys and CSV columns from results of small runs. docs/frameworks.md names the frameworks that are read
and written. The keys of a config are written by scripts/keys.py.
"""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
PAGE = (ROOT / "docs/reference.md").read_text()
MAIN = "run"  # the page's word for the command that is a config alone
wrong = []


def stepsim(*words):
    wide = os.environ | {"COLUMNS": "9999"}  # a description stands on one line
    run = subprocess.run(["stepsim", *map(str, words)], capture_output=True, text=True, env=wide)
    return run.stdout, run.stderr


def rows(heading, page=PAGE):
    """The cells of the tables below a heading of a page, up to the next one."""
    part = re.split(rf"^#+ {re.escape(heading)}$", page, flags=re.MULTILINE)[1]
    part = re.split(r"^#+ ", part, flags=re.MULTILINE)[0]
    table = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")
    ]
    return [cells for cells in table if not set("".join(cells)) <= set("-: ") and cells[0] not in HEADS]


def items(heading):
    """(head, text) of each item "- head: text" of the lists below a heading, up to the next one."""
    part = re.split(rf"^#+ {re.escape(heading)}$", PAGE, flags=re.MULTILINE)[1]
    part = re.split(r"^#+ ", part, flags=re.MULTILINE)[0]
    return re.findall(r"^- (.*?): ((?:.|\n  )*)", part, flags=re.MULTILINE)


HEADS = {"command", "option", "code", "variable", "table", "kind", "framework"}


def words(text):
    return re.findall(r"`([^`]+)`", text)


def same(what, page, program):
    page, program = set(page), set(program)
    wrong.extend(f"{what}: {x} is not on the page" for x in sorted(program - page))
    wrong.extend(f"{what}: {x} is on the page alone" for x in sorted(page - program))


def check_commands(help_text):
    program = {
        m[1] or MAIN for m in re.finditer(r"^(?:usage:|      ) stepsim(?: ([a-z-]+))? \S*", help_text, re.MULTILINE)
    }
    same("commands", {(words(cells[0]) or [MAIN])[0] for cells in rows("Commands")}, program)
    return program


def options_of(help_text):
    return {
        (m[1] or "", m[2], m[3].strip())
        for m in re.finditer(r"^(?:(-\w), |    )(--[\w-]+)((?: [^ ]+)*?)(?:  |$)", help_text, re.MULTILINE)
    }


def check_options(commands):
    program = {}
    for command in commands:
        text = stepsim(*([] if command == MAIN else [command]), *(["x.yaml"] if command == MAIN else []), "--help")[0]
        for option in options_of(text):
            program.setdefault(option, set()).add(command)
    page = {}
    for option, argument, taken_by, *_ in rows("Options"):
        *letter, name = words(option)
        named = set(taken_by.removeprefix("all but ").split(", ")) - {"all"}
        page["".join(letter), name, "".join(words(argument))] = (
            set(commands) - named if taken_by.startswith("all") else named
        )
    same("options", {" ".join(option).strip() for option in page}, {" ".join(option).strip() for option in program})
    for option in page.keys() & program.keys():
        same(f"commands of {option[1]}", page[option], program[option])
    return program


def check_exit_codes(help_text):
    program = re.findall(r"(?:: |; )(\d) ", help_text.strip().splitlines()[-1])
    same("exit codes", [cells[0] for cells in rows("Exit codes")], program)
    return program


def check_types():
    """Types of Hugging Face models; parts of larger models have rows by the model's name."""
    table = (ROOT / "step/import/hf_reader.h").read_text()
    program = set(re.findall(r'^\tX\("([^"]+)", \w+\)', table, re.MULTILINE))
    page = {t for _, types in rows("Models of Hugging Face") for t in re.findall(r"[\w-]+", re.sub(r"`.*", "", types))}
    page -= {"others", "by", "their", "where", "its", "type", "is", "known"}
    parts = {t for t in program if re.search(r"_(text|text_model|vision_model)$", t)}
    same("types of Hugging Face models", page, program - (parts - page))


def known(*words):
    return set(re.search(r"known: (.*)\)", stepsim(*words)[1])[1].split(", "))


def check_frameworks():
    table = rows("What is read", (ROOT / "docs/frameworks.md").read_text())
    page = {name: written for _, names, _, written in table for name in words(names)}
    former = {"torchtitan-0.2"}  # another form of one that has a row
    same("frameworks that are read", page, known("import", ROOT / "README.md", "--from", "-") - former)
    written = known("export", "--model", "gpt2-124m", "--to", "-") - former
    same("frameworks that are written", {name for name in page if page[name]}, written)


def keys_of(value, hidden=("config", "system", "set", "model", "inventory")):
    """All names in a JSON value, but those below keys that hold a config or a machine."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield name
            if name not in hidden:
                yield from keys_of(below)
    elif isinstance(value, list):
        for below in value:
            yield from keys_of(below)


def write_tables():
    for name, kept in (("steps", 1), ("collectives", 1)):
        lines = (ROOT / f"tests/validation/{name}.csv").read_text().splitlines()
        Path(f"{name}.csv").write_text("\n".join(lines[: 1 + kept]) + "\n")


def check_results():
    fsdp, pipeline = ROOT / "configs/llama3-8b-fsdp-64xh100.yaml", ROOT / "configs/pp-llama3-70b-64xh100.yaml"
    write_tables()
    runs = {
        "run, `predict`": ["predict", fsdp, "--target", "1T tokens"],
        "": ["predict", pipeline],
        "`sweep`": ["sweep", fsdp, "--vary", "train.micro_batch=1"],
        "`plan`": ["plan", fsdp, "--set", "parallel.strategy=fsdp", "--set", "parallel.tensor=1"],
        "`compare`": ["compare", fsdp, "--systems", "dgx-h100", "--fixed-plan"],
        "`validate`, steps": ["validate", "steps.csv"],
        "`validate`, collectives": ["validate", "collectives.csv"],
    }
    columns = {row: words(names) for row, names in items("CSV")}
    on_page, names = set(words(PAGE)), set()
    for row, command in runs.items():
        stepsim(*command, "--json", "out.json", "--csv", "out.csv")
        names |= set(keys_of(json.loads(Path("out.json").read_text())))
        with open("out.csv") as file:
            printed = [name for name in next(csv.reader(file)) if "." not in name]
        if row and columns[row] != printed:
            wrong.append(f"CSV of {row}: {printed}")
    stepsim("topo", "--nccl-xml", ROOT / "tests/golden/topo/switch.xml", "--json", "out.json")
    names |= set(json.loads(Path("out.json").read_text()))
    wrong.extend(f"JSON: {name} is not on the page" for name in sorted(names - on_page))
    return names


overall = stepsim("--help")[0]
commands = check_commands(overall)
options = check_options(commands)
codes = check_exit_codes(overall)
check_types()
check_frameworks()
names = check_results()
print("".join(line + "\n" for line in wrong), end="")
print(
    f"{len(commands)} commands, {len(options)} options, {len(codes)} exit codes, {len(names)} keys of JSON"
)
