"""A folder of foreign files: where each lies, which were read, which nobody asked for."""

from pathlib import Path

from django.utils.translation import gettext as _

from apps.releases.portable.files import SUFFIXES
from apps.releases.portable.yaml_source import Problem, Source, SourceRefused, source_read


class Folder:
    """The configuration folder itself, or the one above it."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.used: set[Path] = set()
        if not self.root.is_dir():
            raise SourceRefused([Problem(str(root), 0, "", _("This is not a folder."))])

    def find(self, name: str) -> Path | None:
        """Return where ``name`` lies: in the folder, or in ``config/`` below it."""
        for place in (self.root / "config", self.root):
            path = place / name
            if path.is_file() and self._inside(path):
                return path
        return None

    def read(self, name: str) -> Source | None:
        """Parse the file ``name``; ``None`` when there is none. Raises ``SourceRefused``."""
        path = self.find(name)
        return None if path is None else self.read_path(path)

    def read_path(self, path: Path) -> Source:
        self.used.add(path.resolve())
        return source_read(path, self.name(path))

    def follow(self, reference: str, near: Path | None = None) -> Path | None:
        """Return the file that ``reference`` (as written in a file) means, never outside the folder."""
        places = [self.root, self.root / "config", self.root.parent]
        for place in [near.parent, *places] if near else places:
            path = place / reference
            if path.is_file() and self._inside(path):
                return path
        return None

    def text(self, path: Path) -> str:
        """Return a text file. Raises ``SourceRefused`` when it is not UTF-8."""
        self.used.add(path.resolve())
        try:
            return path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise SourceRefused(
                [Problem(self.name(path), 0, "", _("This is not UTF-8 text."))]
            ) from None

    def agent_ids(self) -> list[str]:
        """Return the agents that have a folder of their own."""
        return sorted(
            {
                path.name
                for place in (self.root / "config" / "agents", self.root / "agents")
                if place.is_dir()
                for path in place.iterdir()
                if path.is_dir()
            }
        )

    def unread(self) -> list[str]:
        """Return the configuration files that nobody asked for, by name."""
        return sorted(
            self.name(path)
            for path in self.root.rglob("*")
            if path.is_file()
            and path.resolve() not in self.used
            and (path.suffix in SUFFIXES or ".env" in path.name or self._prompt(path))
        )

    def name(self, path: Path) -> str:
        return path.resolve().relative_to(self.root).as_posix()

    def _prompt(self, path: Path) -> bool:
        return "agents" in path.relative_to(self.root).parts and path.suffix in (".txt", ".md")

    def _inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.root)
