"""Prompt templates: what may be written, and what is refused with a reason."""

import pytest
from pydantic import ValidationError

from apps.agents.config import PromptConfig
from apps.agents.prompting import template_check
from apps.agents.template import MAX_TEMPLATE_CHARS, template_compile, template_render

VARIABLES = {
    "agent": "billing",
    "intent": "invoice",
    "domain": "telecom",
    "language": "pt-BR",
    "business_context": {"contract_key": "3000131180", "customer_key": ""},
}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Você é {{ agent }}.", "Você é billing."),
        ("{{ business_context.contract_key }}", "3000131180"),
        ("{{ business_context['contract_key'] }}", "3000131180"),
        ("{% if domain == 'telecom' %}T{% else %}O{% endif %}", "T"),
        ("{{ domain | upper }}{{ business_context.customer_key | default('-', true) }}", "TELECOM-"),
        ("{% for k, v in business_context.items() %}{{ k }}={{ v }};{% endfor %}",
         "contract_key=3000131180;customer_key=;"),
        ("JSON: {\"a\": {\"b\": 1}}", "JSON: {\"a\": {\"b\": 1}}"),
        ("<b>não escapa</b> & \n", "<b>não escapa</b> & \n"),
    ],
)  # fmt: skip
def test_template__allowed_source__renders(source, text):
    assert template_render(template_compile(source), VARIABLES) == text


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ customer }}", "unknown variable customer"),
        ("{{ agent", "not valid"),
        ("a\nb {% if %}", r"line 2"),
        ("{{ business_context.cpf }}", "unknown field 'cpf'"),
        ("{{ business_context[agent] }}", "unknown field"),
        ("{{ agent.__class__ }}", "only business_context has fields"),
        ("{{ ''.__class__.__mro__ }}", "only business_context has fields"),
        ("{{ agent.format(1) }}", "calls are not allowed"),
        ("{{ business_context.items(1) }}", "calls are not allowed"),
        ("{{ range(10) }}", "calls are not allowed"),
        ("{{ 'a' * 1000000000 }}", "Mul is not allowed"),
        ("{{ 9 ** 999999999 }}", "Pow is not allowed"),
        ("{{ '%1000000000d' % 1 }}", "Mod is not allowed"),
        ("{% set a = 'x' %}", "Assign is not allowed"),
        ("{% macro m() %}{% endmacro %}", "Macro is not allowed"),
        ("{% include 'x' %}", "Include is not allowed"),
        ("{% import 'x' as y %}", "Import is not allowed"),
        ("{% extends 'x' %}", "Extends is not allowed"),
        ("{{ agent | center(1000000000) }}", "unknown filter 'center'"),
        ("{{ agent | nosuch }}", "unknown filter 'nosuch'"),
        ("{% if agent is callable %}{% endif %}", "unknown test 'callable'"),
        ("{% for a in 'xxxx' %}a{% endfor %}", "a loop may only walk business_context"),
        ("{% for a in business_context %}{% for b in business_context %}{% endfor %}{% endfor %}",
         "a loop may only walk business_context"),
        ("x" * (MAX_TEMPLATE_CHARS + 1), "longer than 20000 characters"),
        ("a\0b", "not text"),
        ("a\ud800b", "not text"),
    ],
)  # fmt: skip
def test_template__source_that_is_not_allowed__is_refused_with_the_reason(source, reason):
    with pytest.raises(ValueError, match=reason):
        template_check(source)


def test_template__deep_nesting__is_refused_not_a_crash():
    with pytest.raises(ValueError, match=r"nested too deeply|not valid"):
        template_check("{{ " + "(" * 5000 + "agent" + ")" * 5000 + " }}")


def test_prompt_config__bad_template__names_the_field_and_reason():
    with pytest.raises(ValidationError, match="unknown variable user"):
        PromptConfig(system="{{ user }}")
