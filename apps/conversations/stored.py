"""Values as the database keeps them, for the few statements that are not the ORM's."""

import uuid
from datetime import datetime
from typing import Any

from django.db import connection


def stored_id(value: uuid.UUID | None) -> Any:
    """Return ``value`` as the database keeps it."""
    if value is None or connection.features.has_native_uuid_field:
        return value
    return value.hex


def stored_time(value: datetime) -> Any:
    """Return ``value`` as the database keeps it."""
    return connection.ops.adapt_datetimefield_value(value)
