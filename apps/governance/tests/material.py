"""Public test data beside the project; tests that measure on it are skipped where it is absent."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

MATERIAL = Path(settings.BASE_DIR).parent / "shared" / "material"


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of one JSONL file, or skip the calling test."""
    path = MATERIAL / name
    if not path.exists():
        pytest.skip(f"public test data is not here: {name}")
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]
