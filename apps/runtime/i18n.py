"""Marks text for translation in files that do not know Django; forms translate it when shown."""


def gettext_noop(text: str) -> str:
    """Return ``text`` unchanged; the message extractor finds the call."""
    return text
