"""Files in and out: one file, a folder, or a zip of files."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

from django.utils.translation import gettext as _

from apps.releases.portable.yaml_source import (
    MAX_BYTES,
    Problem,
    Source,
    SourceRefused,
    source_parse,
    source_read,
)

SUFFIXES = (".yaml", ".yml")
# The oldest date a zip can hold: the same configuration gives the same bytes.
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_MAX_FILES = 1000


def sources_read(path: Path) -> list[Source]:
    """Return the YAML files at ``path`` (a file, a folder, a .zip), by name. Raises ``SourceRefused``."""
    if path.suffix == ".zip":
        return _zip_read(path)
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
        if not found or len(found) > _MAX_FILES:
            raise SourceRefused([Problem("", 0, "", _("No YAML files in this folder."))])
        return [source_read(p, p.relative_to(path).as_posix()) for p in found]
    return [source_read(path, path.name)]


def _zip_read(path: Path) -> list[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted(
                (e for e in archive.infolist() if Path(e.filename).suffix in SUFFIXES),
                key=lambda entry: entry.filename,
            )
            if not entries:
                raise SourceRefused([Problem(path.name, 0, "", _("No YAML files in this zip."))])
            # Sizes are what the zip claims; zipfile stops reading there.
            if len(entries) > _MAX_FILES or sum(e.file_size for e in entries) > 4 * MAX_BYTES:
                raise SourceRefused([Problem(path.name, 0, "", _("The archive is too large."))])
            return [source_parse(archive.read(e), e.filename) for e in entries]
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError):
        raise SourceRefused([Problem(path.name, 0, "", _("This is not a readable zip."))]) from None


def files_write(path: Path, files: Mapping[str, str]) -> None:
    """Write ``files`` (name → text) into the folder ``path``, or into ``path`` when it is a .zip."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in sorted(files.items()):
                archive.writestr(zipfile.ZipInfo(name, _ZIP_DATE), text.encode())
        return
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name).write_text(text, encoding="utf-8")
