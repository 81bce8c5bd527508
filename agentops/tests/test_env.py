"""Settings that are more than a word: a wrong one stops the process with its name in it."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentops.env import inside_addresses, programs
from apps.tools.transports.programs import Program


def test_inside_addresses__as_documented__are_read(monkeypatch):
    monkeypatch.setenv("TOOL_ALLOW_PRIVATE", "crm.internal,10.0.0.0/8,[::1]:80")

    found = inside_addresses("TOOL_ALLOW_PRIVATE", [])

    assert found == ["crm.internal", "10.0.0.0/8", "[::1]:80"]


@pytest.mark.parametrize("value", ["http://crm.internal", "10.0.0.0/99", "crm:port"])
def test_inside_addresses__that_are_none__stop_the_process(monkeypatch, value):
    monkeypatch.setenv("TOOL_ALLOW_PRIVATE", value)

    with pytest.raises(ImproperlyConfigured, match="TOOL_ALLOW_PRIVATE"):
        inside_addresses("TOOL_ALLOW_PRIVATE", [])


def test_programs__as_documented__are_read(monkeypatch):
    text = '{"time": {"command": "/opt/time", "args": ["-u"], "env": ["HOME"], "cwd": "/srv"}}'
    monkeypatch.setenv("STDIO_PROGRAMS", text)

    assert programs("STDIO_PROGRAMS") == {"time": Program("/opt/time", ("-u",), ("HOME",), "/srv")}


@pytest.mark.parametrize("value", ["{", "[]", '{"a": {}}', '{"a": {"command": "x", "sh": 1}}'])
def test_programs__that_are_wrong__stop_the_process(monkeypatch, value):
    monkeypatch.setenv("STDIO_PROGRAMS", value)

    with pytest.raises(ImproperlyConfigured, match="STDIO_PROGRAMS"):
        programs("STDIO_PROGRAMS")


@pytest.mark.parametrize("value", ["", "{}"])
def test_programs__unset_or_empty__are_none(monkeypatch, value):
    monkeypatch.setenv("STDIO_PROGRAMS", value)

    assert programs("STDIO_PROGRAMS") == {}
