"""Fixtures of the whole product's tests."""

from agentops.tests.governed_world import governed as governed
