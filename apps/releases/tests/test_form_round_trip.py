"""Opening a form and saving it untouched changes nothing, whatever the content."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from django.template.loader import render_to_string
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.releases.pages.choices import ReferenceChoices
from apps.releases.pages.forms import ConfigForm, config_form_class, default_content
from apps.releases.tests.browser import submission
from apps.releases.tests.contents import contents
from apps.runtime.canonical import canonical_json
from apps.runtime.config import KINDS, KindConfig


class FewItems(ReferenceChoices):
    """Every kind has two items, none of which the content names."""

    def options(self, kind: str) -> list[tuple[str, str]] | None:
        return [("aaa", "aaa"), ("zzz", "zzz — Last")]

    def labels(self, kind: str, slugs: Sequence[str]) -> list[tuple[str, str]]:
        return [(slug, slug) for slug in slugs if slug in ("aaa", "zzz")]

    def binding_names(self, what: str) -> list[str]:
        return ["main", "<other>"]


class ManyItems(FewItems):
    """Too many items to list: the field searches."""

    def options(self, kind: str) -> list[tuple[str, str]] | None:
        return None

    def search_url(self, kind: str) -> str:
        return f"/options/{kind}/"


def shown(form: ConfigForm) -> str:
    return render_to_string("releases/_config_form.html", {"form": form})


def form_of(kind: str, choices: ReferenceChoices, data: Any = None, **kwargs: Any) -> ConfigForm:
    return config_form_class(KINDS[kind])(data, prefix="content", choices=choices, **kwargs)


def round_trip(config: KindConfig, choices: ReferenceChoices) -> dict[str, Any]:
    """Show ``config`` in its form, let a browser send it back untouched, return what was typed."""
    content = json.loads(canonical_json(config.model_dump(mode="json")))
    data = submission(shown(form_of(config.kind, choices, initial=content)))
    form = form_of(config.kind, choices, data, initial=content)
    assert form.is_valid(), form.error_list()
    assert not form.has_changed()
    return form.content()


@pytest.mark.parametrize("kind", sorted(KINDS))
@given(data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_form__saved_untouched__gives_the_same_canonical_content(kind: str, data: Any) -> None:
    config = data.draw(contents(KINDS[kind]))
    choices = data.draw(st.sampled_from([FewItems(), ManyItems()]))
    typed = round_trip(config, choices)
    assert canonical_json(KINDS[kind].model_validate(typed).model_dump(mode="json")) == (
        canonical_json(type(config).model_validate(config.model_dump()).model_dump(mode="json"))
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_form__of_a_new_item__shows_the_defaults_of_the_class(kind: str) -> None:
    form = form_of(kind, FewItems(), initial=default_content(KINDS[kind]))
    data = submission(shown(form))
    sent = form_of(kind, FewItems(), data, initial=default_content(KINDS[kind]))
    sent.is_valid()
    required = {name for name, info in KINDS[kind].model_fields.items() if info.is_required()}
    assert set(sent.errors) == required
    for name, value in default_content(KINDS[kind]).items():
        typed = sent.nested[name].content() if name in sent.nested else sent.cleaned_data[name]
        assert typed == value, name
