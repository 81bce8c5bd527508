"""What comes in: every field is checked, and one that is not known is refused by name."""

from typing import Any, ClassVar

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework import serializers


class Given(serializers.Serializer[Any]):
    """Base of inputs. ``tenant_id`` may always be said; the credential's own is meant anyway."""

    _spectacular_annotation: ClassVar[dict[str, str]]

    def __init_subclass__(cls) -> None:
        cls._spectacular_annotation = {"component_name": cls.__qualname__.replace(".", "")}

    def to_internal_value(self, data: Any) -> Any:
        if hasattr(data, "keys"):
            unknown = sorted(str(key) for key in set(data.keys()) - {*self.fields, "tenant_id"})
            if unknown:
                message = _("This field is not known here.")
                raise serializers.ValidationError({name[:100]: [message] for name in unknown})
        return super().to_internal_value(data)


class Nothing(Given):
    """An act that needs no more than its address; the body may be empty."""


class Paging(Given):
    """Which part of a list."""

    limit = serializers.IntegerField(min_value=1, max_value=200, default=50)
    offset = serializers.IntegerField(min_value=0, max_value=1_000_000, default=0)


class Moment(Given):
    """As it stood at a moment; now when it is left out."""

    at = serializers.DateTimeField(required=False)


class JsonObject(serializers.JSONField):
    """An object; its members are checked by the kind it is content of."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError(_("An object is expected."))
        return data


class EnvironmentField(serializers.ChoiceField):
    """The name of an environment of the settings."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=list(settings.RELEASE_ENVIRONMENTS), **options)
