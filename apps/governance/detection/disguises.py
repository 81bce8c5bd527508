"""Sees through the ways an instruction is hidden from a filter but not from a model.

``plain_text`` undoes spelling tricks (full-width and look-alike letters, invisible characters,
accents). ``hidden_texts`` yields what encodings hide: base64, base32, hex, binary, Morse, ASCII85,
URL and Unicode escapes, HTML entities, the tag block, rot13, reversal, leet, s p a c i n g.
"""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from apps.runtime.text import fold, strip_invisible

# Letters that look Latin and are not (a part of Unicode UTS #39), after case folding.
_LOOKALIKES = str.maketrans(
    "авекмнорстухѕіјԛԝһԁɡոսօӏɩıαβεικνορτυχηγωϲᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "abekmhopctyxsijqwhdgnuoliiabeikvoptuxnywcabcdefghijklmnoprstuvwyz",
)
_BEYOND_LATIN = re.compile(r"[^\x00-\xac\xae-\u02af]")
_BLANKS = re.compile(r"[^\S\n]+")
_TAGS = re.compile("[\U000e0020-\U000e007e]{4,}")

_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,8192}={0,6}(?![A-Za-z0-9+/_=-])")
_BYTES = re.compile(
    r"(?<![0-9A-Fa-f])(?:(?:[01]{8}|[0-9A-Fa-f]{2})[ :]){5,4096}(?:[01]{8}|[0-9A-Fa-f]{2})"
)
_MORSE = re.compile(r"(?<![.\-])[.\-]{1,6}(?:[ /|]{1,3}[.\-]{1,6}){9,2048}")
_ASCII85 = re.compile(r"<~[!-uz\s]{8,8192}~>")
_ESCAPES = re.compile(r"(?:\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}){3}")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[^%\s]{0,24}){3}")
_ENTITY = re.compile(r"(?:&#x?[0-9A-Fa-f]{2,6};){3}")
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W\d_][ .\-_*]){3,40}[^\W\d_](?![^\W_])")
_LEET = re.compile(r"[013457](?:(?<=[a-z@$].)|(?=[a-z@$]))")
_LEET_LETTERS = (
    str.maketrans("0134578@$", "oieastbas"),
    str.maketrans("0134578@$", "oleastbas"),
)
_SEPARATORS = re.compile(r"[ .\-_*]")
_BITS = re.compile(r"[01]{32,}")
_HEXADECIMAL = re.compile(r"(?:[0-9A-Fa-f]{2})+")
_BASE32 = re.compile(r"[A-Z2-7]{24,}")
_MORSE_LETTERS = dict(
    zip(
        [
            ".-",
            "-...",
            "-.-.",
            "-..",
            ".",
            "..-.",
            "--.",
            "....",
            "..",
            ".---",
            "-.-",
            ".-..",
            "--",
            "-.",
            "---",
            ".--.",
            "--.-",
            ".-.",
            "...",
            "-",
            "..-",
            "...-",
            ".--",
            "-..-",
            "-.--",
            "--..",
        ],
        "abcdefghijklmnopqrstuvwxyz",
        strict=True,
    )
)
# Words of the rules as rot13 and reversal write them: the cheap sign that either was used.
_GIVEAWAYS = (
    "ignore",
    "disregard",
    "instructions",
    "system",
    "prompt",
    "previous",
    "rules",
    "reveal",
)
_ROT13 = frozenset(codecs.encode(word, "rot13") for word in _GIVEAWAYS)
_REVERSED = frozenset(word[::-1] for word in _GIVEAWAYS)


def plain_text(text: str) -> str:
    """Return ``text`` folded to lower-case Latin letters, blanks collapsed, line ends kept."""
    if not text.isascii():
        if _BEYOND_LATIN.search(text) or "\u00ad" in text:
            text = strip_invisible(unicodedata.normalize("NFKC", text))
        text = fold(text).translate(_LOOKALIKES)
    else:
        text = text.lower()
    return _BLANKS.sub(" ", text)


def hidden_texts(text: str, plain: str, words: frozenset[str]) -> Iterator[str]:
    """Yield plain forms of what ``text`` hides; ``plain`` and its ``words`` are already at hand."""
    for decoded in _decoded(text):
        yield plain_text(decoded)
    if len(words & _ROT13) > 1:
        yield codecs.encode(plain, "rot13")
    if len(words & _REVERSED) > 1:
        yield plain[::-1]
    if _SPACED.search(plain):
        yield _SPACED.sub(lambda m: _SEPARATORS.sub("", m.group()), plain)
    if len(_LEET.findall(plain)) > 3:
        yield from (plain.translate(letters) for letters in _LEET_LETTERS)


def _decoded(text: str) -> Iterator[str]:
    for found in _TAGS.finditer(text):
        yield "".join(chr(ord(char) - 0xE0000) for char in found.group())
    for pattern, decode in _DECODERS:
        for found in pattern.finditer(text):
            if readable := _readable(decode, found.group()):
                yield readable
    if "%" in text and _PERCENT.search(text):
        yield unquote(text)
    if "\\" in text and _ESCAPES.search(text):
        yield _unescaped(text)
    if "&#" in text and _ENTITY.search(text):
        yield html.unescape(text)


def _readable(decode: Callable[[str], str], found: str) -> str:
    """Return the decoded text when it reads like one, else ""."""
    try:
        decoded = decode(found)
    except (ValueError, binascii.Error, UnicodeError):
        return ""
    letters = sum(char.isalpha() or char == " " for char in decoded)
    return decoded if decoded and letters > 0.8 * len(decoded) else ""


def _from_run(found: str) -> str:
    """Decode an unbroken run by its alphabet: bits, hexadecimal, base32, else base64."""
    body = found.rstrip("=")
    if _BITS.fullmatch(body):
        return _from_bytes(" ".join(body[i : i + 8] for i in range(0, len(body), 8)))
    if _HEXADECIMAL.fullmatch(body):
        return bytes.fromhex(body).decode()
    if _BASE32.fullmatch(body):
        return base64.b32decode(body + "=" * (-len(body) % 8)).decode()
    body = body.replace("-", "+").replace("_", "/")
    return base64.b64decode(body + "=" * (-len(body) % 4)).decode()


def _from_bytes(found: str) -> str:
    """Decode bytes written one by one, in binary or hexadecimal."""
    parts = found.replace(":", " ").split()
    base = 2 if len(parts[0]) == 8 else 16
    return bytes(int(part, base) for part in parts).decode()


def _from_morse(found: str) -> str:
    words = re.split(r"\s*[/|]\s*", found)
    return " ".join("".join(_MORSE_LETTERS.get(s, " ") for s in word.split()) for word in words)


def _from_ascii85(found: str) -> str:
    return base64.a85decode(found, adobe=True).decode()


def _unescaped(text: str) -> str:
    return re.sub(
        r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))",
        lambda m: chr(int(m.group(1) or m.group(2), 16)),
        text,
    )


_DECODERS = (
    (_RUN, _from_run),
    (_BYTES, _from_bytes),
    (_MORSE, _from_morse),
    (_ASCII85, _from_ascii85),
)
