"""An agent that goes past its runtime: it is refused for what it imports."""

from django.db import connection

from apps.agents.code.base import CodeAgent
from apps.conversations.models import Session


class ReadsRows(CodeAgent):
    """Would read what is not its own."""

    rows = (connection, Session)
