"""Brazilian Portuguese is complete, and what is compiled is what is written."""

import gettext
import re
from pathlib import Path

from django.conf import settings

PLACE = Path(settings.BASE_DIR) / "locale" / "pt_BR" / "LC_MESSAGES"
PLACEHOLDER = re.compile(r"%(?:\(\w+\))?[sd]")


def entries() -> list[tuple[str, list[str], bool]]:
    """Return (source, translations, marked as a guess) of every message in django.po."""
    found = []
    for block in (PLACE / "django.po").read_text(encoding="utf-8").split("\n\n")[1:]:
        texts: dict[str, str] = {}
        key = ""
        for line in block.splitlines():
            if match := re.match(r'(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?) "(.*)"$', line):
                key = match[1]
                texts[key] = match[2]
            elif line.startswith('"'):
                texts[key] += line[1:-1]
        translated = [text for name, text in texts.items() if name.startswith("msgstr")]
        guessed = any(line.startswith("#,") and "fuzzy" in line for line in block.splitlines())
        found.append((texts["msgid"], translated, guessed))
    return found


def test_portuguese__every_message__is_translated() -> None:
    messages = entries()
    assert len(messages) > 900
    assert [source for source, texts, guessed in messages if guessed or not all(texts)] == []


def test_portuguese__every_translation__keeps_the_placeholders() -> None:
    for source, texts, _guessed in entries():
        for text in texts:
            assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(source)), source


def test_portuguese__compiled__is_what_is_written() -> None:
    with (PLACE / "django.mo").open("rb") as compiled:
        catalog = gettext.GNUTranslations(compiled)
    for source, texts, _guessed in entries():
        plain = source.encode().decode("unicode_escape").encode("latin-1").decode()
        wanted = texts[0].encode().decode("unicode_escape").encode("latin-1").decode()
        many = len(texts) > 1
        assert (catalog.ngettext(plain, plain, 1) if many else catalog.gettext(plain)) == wanted
