"""Files that a browser sends for an import: read within limits, laid out as a folder, parsed.

Between the dry run and the import the browser keeps them, as the text of one zip, so that no server
has to; what comes back is read with the same suspicion as the first time.
"""

import base64
import binascii
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext as _

from apps.releases.portable.files import SUFFIXES, sources_read
from apps.releases.portable.native import FORMAT, Portable, native_parse
from apps.releases.portable.report import Report
from apps.releases.portable.seed.importer import NothingKnown, seed_read
from apps.releases.portable.yaml_source import Problem, SourceRefused, source_parse

MAX_FILES = 1000
# Unpacked and packed: a tenant of 10,000 items packs to about 1 MB; larger ones go by command line.
MAX_BYTES = 24 * 1024 * 1024
MAX_PACKED = 5 * 1024 * 1024
KNOWN_FOLDERS = {"config", "agents"}

Files = Mapping[str, bytes]


class UploadRefused(ValueError):
    """The files are too many, too large, not a zip, or have names that leave the folder."""


def files_of_uploads(uploads: Iterable["UploadedFile[Any]"]) -> dict[str, bytes]:
    """Return name → bytes of what was uploaded; a zip stands for its contents."""
    files: dict[str, bytes] = {}
    for upload in uploads:
        name = upload.name or ""
        if (upload.size or 0) > MAX_BYTES:
            raise UploadRefused(_too_large())
        data = upload.read()
        files |= files_of_zip(data) if name.lower().endswith(".zip") else {_safe(name): data}
    _check_size(files.values())
    return files


def files_of_zip(data: bytes) -> dict[str, bytes]:
    """Return name → bytes of a zip, without the one folder that everything may lie in."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            # Sizes are what the zip claims; reading stops there.
            if len(entries) > MAX_FILES or sum(entry.file_size for entry in entries) > MAX_BYTES:
                raise UploadRefused(_too_large())
            files = {_safe(entry.filename): archive.read(entry) for entry in entries}
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError):
        raise UploadRefused(_("This is not a readable zip.")) from None
    tops = {PurePosixPath(name).parts[0] for name in files}
    if len(tops) == 1 and not tops & KNOWN_FOLDERS and all("/" in name for name in files):
        files = {name.split("/", 1)[1]: content for name, content in files.items()}
    return files


def zip_of_files(files: Files) -> bytes:
    """Return ``files`` as a zip; the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def files_pack(files: Files) -> str:
    """Return ``files`` as text for a hidden field. Raises ``UploadRefused`` when it is too long."""
    packed = zip_of_files(files)
    if len(packed) > MAX_PACKED:
        raise UploadRefused(_too_large())
    return base64.b64encode(packed).decode()


def files_unpack(text: str) -> dict[str, bytes]:
    """Return what ``files_pack`` packed. Raises ``UploadRefused``."""
    try:
        return files_of_zip(base64.b64decode(text, validate=True))
    except binascii.Error:
        raise UploadRefused(_("The files did not come back whole; send them again.")) from None


def files_parse(
    files: Files, *, environment: str, docker_environment: str
) -> tuple[Portable, Report]:
    """Return what ``files`` configure: this product's format, or files of another platform.

    A file that comes alone and is not named like one of another platform is taken for this
    product's, so that the refusal says what is wrong with it. Raises ``SourceRefused`` with every
    problem.
    """
    alone = next(iter(files.items())) if len(files) == 1 else None
    if alone and not alone[1].strip():
        raise SourceRefused([Problem(alone[0], 0, "", _("The file is empty."))])
    with _folder(files) as root:
        if any(_is_native(name, content) for name, content in files.items()):
            return native_parse(sources_read(root)), Report()
        try:
            return seed_read(root, environment=environment, docker_environment=docker_environment)
        except NothingKnown:
            if alone is None:
                raise
            name, content = alone
            return native_parse([source_parse(content, name)]), Report()


@contextmanager
def _folder(files: Files) -> Iterator[Path]:
    with TemporaryDirectory(prefix="import-") as place:
        root = Path(place)
        for name, content in files.items():
            path = root / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError:
                raise UploadRefused(
                    _("The name %(name)s cannot be used.") % {"name": name}
                ) from None
        yield root


def _is_native(name: str, content: bytes) -> bool:
    return name.endswith(SUFFIXES) and FORMAT.encode() in content


def _safe(name: str) -> str:
    """Return ``name`` as a path below the folder, or raise ``UploadRefused``."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or not path.parts or ".." in path.parts or "\x00" in name:
        raise UploadRefused(_("The name %(name)s cannot be used.") % {"name": name})
    return path.as_posix()


def _check_size(contents: Iterable[bytes]) -> None:
    sizes = [len(content) for content in contents]
    if len(sizes) > MAX_FILES or sum(sizes) > MAX_BYTES:
        raise UploadRefused(_too_large())


def _too_large() -> str:
    return _("These files are too large for this page; use the command config_import.")
