"""The rules of the tree, as tests: arrows, purity, types, style, migrations, deploy checks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
# What a turn runs through: none of it may know Django, even indirectly.
PURE_PATTERNS = (
    "apps/runtime/*.py",
    "apps/*/config.py",
    "apps/*/step.py",
    "apps/*/steps/*.py",
    "apps/*/rails/*.py",
    "apps/*/judges/*.py",
    "apps/*/strategies/*.py",
    "agentops/pipeline.py",
    "agentops/policies.py",
)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command at the root and return it with its output."""
    return subprocess.run(
        command, cwd=ROOT, text=True, capture_output=True, env={**os.environ, **environment}
    )


def pure_modules() -> list[str]:
    files = {path for pattern in PURE_PATTERNS for path in ROOT.glob(pattern)}
    return sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in files
        if path.name != "__init__.py"
    )


def test_import_contracts__every_layer__kept():
    done = run(str(BIN / "lint-imports"))
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Contracts: 2 kept, 0 broken." in done.stdout


def test_pure_modules__every_pattern__matches_something():
    for pattern in PURE_PATTERNS:
        assert list(ROOT.glob(pattern)), pattern
    assert len(pure_modules()) >= 40


def test_pure_modules__imported_in_a_fresh_process__bring_no_django():
    modules = pure_modules()
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    found = sorted(m for m in sys.modules if m.split('.')[0] in ('django', 'rest_framework'))\n"
        "    assert not found, (name, found[:3])\n"
        "print(len(sys.argv) - 1)\n"
    )
    done = run(sys.executable, "-c", code, *modules, DJANGO_SETTINGS_MODULE="")
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == len(modules)


def test_packages__every_init__is_empty():
    for folder in ("apps", "agentops", "examples"):
        for path in (ROOT / folder).rglob("__init__.py"):
            assert path.read_text() == "", f"{path.relative_to(ROOT)} is not empty"


def test_names__files_of_the_tree__say_what_they_hold():
    empty_words = {
        "utils",
        "helpers",
        "common",
        "manager",
        "handler",
        "processor",
        "legacy",
        "misc",
    }
    for folder in ("apps", "agentops"):
        for path in (ROOT / folder).rglob("*.py"):
            assert path.stem not in empty_words, path


@pytest.mark.once
def test_style__ruff__is_clean():
    for command in (("check", "."), ("format", "--check", ".")):
        done = run(str(BIN / "ruff"), *command)
        assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.once
def test_types__mypy_strict__is_clean():
    done = run(str(BIN / "mypy"), "agentops", "apps", "examples", "conftest.py")
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.once
def test_migrations__models__are_all_migrated(tmp_path):
    done = run(
        sys.executable,
        "manage.py",
        "makemigrations",
        "--check",
        "--dry-run",
        DATA_DIR=str(tmp_path),
    )
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.once
def test_deploy_check__production_settings__is_clean(tmp_path):
    done = run(
        sys.executable,
        "manage.py",
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
        DATA_DIR=str(tmp_path),
        SECRET_KEY="k" * 30 + "0123456789-abcdefghijklmnop",
        SECURE_SSL_REDIRECT="1",
        DEMO="0",
        DATABASE_URL=f"sqlite:///{tmp_path}/db.sqlite3",
        REDIS_URL="",
    )
    assert done.returncode == 0, done.stderr[-2000:]
