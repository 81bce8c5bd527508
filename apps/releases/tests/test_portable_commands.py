"""``manage.py config_export`` and ``config_import``."""

import json
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.releases.change_models import ChangePatch, ChangeRequest
from apps.releases.changes.core import candidate_whole
from apps.releases.models import ConfigItem, Release
from apps.releases.selectors import item_heads
from apps.releases.services import release_publish
from apps.releases.tests.conftest import ALICE
from apps.runtime.canonical import sha256_text
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction

SEED = Path(__file__).parent / "seed_files"


def run(name: str, *args: str, **options: Any) -> str:
    out = StringIO()
    call_command(name, *args, stdout=out, stderr=StringIO(), **options)
    return out.getvalue()


def test_config_export_import__another_tenant__gets_the_same_release(
    billing: Tenant, tmp_path: Path
) -> None:
    sha256 = release_publish(actor=ALICE).sha256
    copy = Tenant.objects.create(slug="copy", name="Copy")
    for number, name in enumerate(("one.yaml", "folder/", "packed.zip"), start=1):
        run("config_export", billing.slug, f"{tmp_path}/{name}")
        told = run("config_import", f"{tmp_path}/{name}", "--tenant", "copy")
        assert f"Drafted as request #{number}" in told
    with tenant_transaction(copy):
        for request in ChangeRequest.objects.all():
            assert sha256_text(candidate_whole(request).manifest) == sha256
        assert not item_heads().exists()
    assert run("config_export", billing.slug) == (tmp_path / "one.yaml").read_text()


def test_config_import__seed_folder__prints_the_report_as_a_table(acme: Tenant) -> None:
    told = run("config_import", str(SEED), "--tenant", acme.slug)
    assert "config/mcp_parameter_mapping.yaml:3" in told
    assert "There are no mock answers here." in told
    assert "Drafted as request #1: submit it for review." in told
    assert ChangePatch.objects.filter(kind="tool").count() == 8
    assert not ConfigItem.objects.exists()


def test_config_import__json__is_machine_readable(acme: Tenant) -> None:
    told = json.loads(run("config_import", str(SEED), "--tenant", acme.slug, "--json", "--dry-run"))
    assert told["dry_run"] is True
    assert told["counts"]["created"] == len(told["items"]) > 30
    assert {line["action"] for line in told["report"]} == {"dropped", "later", "derived", "warning"}
    assert set(told["report"][0]) == {"action", "file", "line", "path", "value", "reason"}
    assert {"environment": "production", "what": "address", "name": "telecom_mcp"} in told[
        "bindings"
    ]
    assert not ConfigItem.objects.exists()


def test_config_import__bad_file__names_the_line_and_saves_nothing(
    acme: Tenant, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("format: agentops-config-v1\nitems:\n  prompt:\n    a: {sistema: x}\n")

    with pytest.raises(CommandError, match=r"bad\.yaml:4 items\.prompt\.a\.sistema"):
        run("config_import", str(bad), "--tenant", acme.slug)
    assert not ConfigItem.objects.exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "bad.yaml:1: The file is empty."),
        (b"- a\n", "bad.yaml:1: The file must be a mapping with 'format: agentops-config-v1'."),
        (b"format: 9\n", "bad.yaml:1 format: The file must be a mapping with"),
        (b"a: [1,\n", "(column 1)"),
        (b"\xff\xfe", "bad.yaml:1: This is not UTF-8 text."),
    ],
)
def test_config_import__one_bad_file__is_named_without_its_folder(
    acme: Tenant, tmp_path: Path, data: bytes, message: str
) -> None:
    (tmp_path / "bad.yaml").write_bytes(data)
    with pytest.raises(CommandError) as refused:
        run("config_import", str(tmp_path / "bad.yaml"), "--tenant", acme.slug)
    assert message in str(refused.value)
    assert "\nbad.yaml:" in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


def test_config_import__zip_without_yaml__is_refused_and_archives_nothing(
    billing: Tenant, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(CommandError, match=r"x\.zip: No YAML files in this zip\."):
        run("config_import", str(tmp_path / "x.zip"), "--tenant", billing.slug, replace=True)
    assert not ConfigItem.objects.exclude(archived_at=None).exists()


def test_config_import__absent_path_or_tenant__is_an_error(acme: Tenant, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        run("config_import", str(tmp_path / "no.yaml"), "--tenant", acme.slug)
    with pytest.raises(CommandError, match="There is no tenant 'ghost'"):
        run("config_import", str(SEED), "--tenant", "ghost")
    with pytest.raises(CommandError, match="There is no tenant 'ghost'"):
        run("config_export", "ghost")
    assert not Release.objects.exists()
