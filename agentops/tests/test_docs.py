"""What the documentation says is there is there: links, paths, tests, settings, commands."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands
from hypothesis import given
from hypothesis import strategies as st

from agentops.env import STORE_SETTINGS
from agentops.runtime import secret_variable
from apps.releases.portable.native import native_parse
from apps.releases.portable.yaml_source import source_parse
from apps.tenants.roles import KEY_SCOPES, PERMISSIONS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
SETTINGS_PAGE = DOCS / "how-to" / "settings.md"
# Where a path written in a page begins.
FOLDERS = ("agentops/", "apps/", "docs/", "examples/", "scripts/", "static/", "templates/")

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MAKE = re.compile(r"\bmake ([a-z]+)\b(?=`)")
SCRIPT = re.compile(r"\bsh (scripts/[a-z.]+)")
IMPORT = re.compile(r"^ *from ((?:agentops|apps)[\w.]*) import ([\w, ]+)$", re.MULTILINE)
COMMAND = re.compile(r"manage\.py ([a-z_]+)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub writes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    }


def paths_in(page: Path) -> Iterator[str]:
    """Yield the paths of this repository that a page names, without those it leaves open."""
    text = page.read_text(encoding="utf-8")
    for words in [*CODE.findall(FENCE.sub("", text)), *FENCE.findall(text)]:
        for word in words.split():
            if word.startswith(FOLDERS) and not re.search(r"[<*…{]", word):
                yield word.partition("::")[0].rstrip(",;:.")


# -- pages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_page__every_link__leads_somewhere(path):
    dead = []
    for link in LINK.findall(prose(path)):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        target, _hash, anchor = link.partition("#")
        found = (path.parent / target).resolve() if target else path
        if not found.exists() or (anchor and anchor not in anchors(found)):
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_page__every_path_it_names__exists(path):
    assert [found for found in paths_in(path) if not (ROOT / found).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_page__every_command_it_names__exists(path):
    text = path.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert set(MAKE.findall(text)) <= targets
    assert {script for script in SCRIPT.findall(text) if not (ROOT / script).exists()} == set()
    assert set(COMMAND.findall(text)) <= set(get_commands())


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_page__every_import_of_its_examples__can_be_made(path):
    absent = []
    for module, names in IMPORT.findall(path.read_text(encoding="utf-8")):
        loaded = importlib.import_module(module)
        absent += [f"{module}.{n}" for n in names.split(", ") if not hasattr(loaded, n)]
    assert absent == []


def test_pages__that_exist__are_reached_from_the_readme():
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in LINK.findall(prose(page)):
            found = (page.parent / link.partition("#")[0]).resolve()
            waiting += sorted(found.glob("*.md")) if found.is_dir() else []
            waiting += [found] if found.suffix == ".md" and found.is_file() else []
    assert {name(page) for page in PAGES} - {name(page) for page in reached} == set()


def test_architecture__its_picture__has_the_steps_of_the_pipeline_in_order():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    tree = ast.parse((ROOT / "agentops/pipeline.py").read_text())
    files = {
        alias.name: node.module.replace(".", "/") + ".py"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and "step" in node.module
        for alias in node.names
    }
    # A step that a function makes stands where the function is handed on.
    makers = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    handed = {
        node.id: (node.lineno, node.col_offset)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name)
    }
    made = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in files:
            inside = [m.name for m in makers if node in ast.walk(m) and m.name in handed]
            place = handed[inside[-1]] if inside else (node.lineno, node.col_offset)
            made.append((*place, node.func.id))
    steps = [step for _line, _column, step in sorted(made)]
    assert sorted(steps) == sorted(files)
    places = [re.search(rf"\b{step}\s+{files[step]}\b", text) for step in steps]
    assert [step for step, place in zip(steps, places, strict=True) if place is None] == []
    starts = [place.start() for place in places if place is not None]
    assert starts == sorted(starts)


# -- decisions ---------------------------------------------------------------------------------


def test_decisions__files__are_numbered_from_one_without_gaps():
    names = sorted(path.name for path in (DOCS / "decisions").iterdir())
    assert all(re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", found) for found in names)
    assert [int(found[:4]) for found in names] == list(range(1, len(names) + 1))


@pytest.mark.parametrize("path", sorted((DOCS / "decisions").glob("*.md")), ids=name)
def test_decision__its_text__says_context_decision_and_consequence_on_one_page(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(f"# {path.name[:4]} ")
    parts = [line.split(".**")[0] for line in lines if line.startswith("**")]
    assert parts == ["**Context", "**Decision", "**Consequence"]
    assert len(lines) <= 25


# -- settings ----------------------------------------------------------------------------------


def constant(node: ast.expr) -> object:
    """Return the value of an expression of constants, ``None`` for any other."""
    if any(isinstance(part, ast.Name | ast.Call | ast.Attribute) for part in ast.walk(node)):
        return None
    return eval(compile(ast.Expression(node), "settings", "eval"), {"__builtins__": {}})


def settings_read() -> dict[str, tuple[object, object, object]]:
    """Return name → (default, lowest, highest) of every variable that the settings read."""
    found: dict[str, tuple[object, object, object]] = {}
    for node in ast.walk(ast.parse((ROOT / "agentops/settings.py").read_text())):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).split(".")[0] not in (
            "env",
            "number",
            "inside_addresses",
            "programs",
            "agent_classes",
        ):
            continue
        given = {word.arg: constant(word.value) for word in node.keywords}
        default = constant(node.args[1]) if len(node.args) > 1 else given.get("default")
        variable = constant(node.args[0])
        assert isinstance(variable, str)
        found[variable] = (default, given.get("low"), given.get("high"))
    return found


def settings_rows() -> dict[str, list[str]]:
    """Return name → cells of the rows of the settings page."""
    rows = {}
    for line in SETTINGS_PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            rows.update({found: cells for found in CODE.findall(cells[0])})
    return rows


def test_settings__page__lists_what_is_read_and_nothing_else():
    read = set(settings_read())
    assert len(read) > 30
    rows = settings_rows()
    assert read - set(rows) == set()
    # Four cells are a setting; three are what scripts read, which this does not know.
    assert {found for found, cells in rows.items() if len(cells) == 4} - read == set()
    text = SETTINGS_PAGE.read_text(encoding="utf-8")
    assert [found for found in STORE_SETTINGS if f"`{found}`" not in text] == []


def test_settings__page__gives_the_defaults_and_limits_of_the_code():
    rows, wrong = settings_rows(), []
    for variable, (default, low, high) in settings_read().items():
        cells = rows[variable]
        if isinstance(default, bool | int | float) and f"`{default}`" not in cells[2]:
            wrong.append(f"{variable}: default {default}")
        if isinstance(default, str) and default and f"`{default}`" not in cells[2]:
            wrong.append(f"{variable}: default {default}")
        if high is not None and f"{low} to {high}" not in cells[3]:
            wrong.append(f"{variable}: {low} to {high}")
    assert wrong == []


# -- what single pages promise -----------------------------------------------------------------


def test_secrets__page__writes_slugs_as_the_code_does():
    text = (DOCS / "how-to" / "secrets.md").read_text(encoding="utf-8")
    examples = re.findall(r"`([a-z_-]+)` → `([A-Z_]+)`", text)
    assert len(examples) == 2
    for slug, written in examples:
        assert secret_variable(slug, "X") == f"AGENTOPS_SECRET__{written}__X"
    assert secret_variable("acme", "OPENAI_KEY") in text


SLUGS = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,6}", fullmatch=True)
NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,6}", fullmatch=True)


@given(SLUGS, NAMES, SLUGS, NAMES)
def test_secret__of_two_tenants__is_never_one_variable(slug, variable, other, theirs):
    same = secret_variable(slug, variable) == secret_variable(other, theirs)
    assert same == ((slug, variable) == (other, theirs))


def test_roles__page__has_a_column_for_each_role_and_a_row_for_each_scope():
    text = (DOCS / "how-to" / "roles-and-keys.md").read_text(encoding="utf-8")
    header = next(line for line in text.splitlines() if line.startswith("| may |"))
    assert [cell.strip().replace(" ", "_") for cell in header.strip("|").split("|")[1:]] == [
        str(role) for role in PERMISSIONS
    ]
    assert [scope for scope in KEY_SCOPES if f"`{scope}`" not in text] == []


def test_tool_server__yaml_of_the_page__is_a_valid_configuration():
    text = (DOCS / "how-to" / "add-a-tool-server.md").read_text(encoding="utf-8")
    block = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    portable = native_parse([source_parse(block[1], "page.yaml")])
    assert sorted(item.slug for item in portable.items) == [
        "crm",
        "find_customer",
        "find_customer",
    ]
