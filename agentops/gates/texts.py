"""Gates: prompts name known variables, and customers read their own language."""

from collections import defaultdict
from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from jinja2 import Environment, TemplateError, meta
from pydantic import BaseModel

from apps.agents.config import AgentConfig, PromptConfig
from apps.agents.template import VARIABLES
from apps.governance.config import RailPolicyConfig
from apps.releases.gates import GateContext, Problem, release_gate
from apps.routing.config import RoutingPolicyConfig
from apps.runtime.release import Release
from apps.tools.config import ToolConfig

DEFAULT = "default"
# Parses only; nothing of a template is run here.
_PARSER = Environment(autoescape=True)
PROMPT_TEXTS = ("no_evidence_text",)
ROUTING_TEXTS = ("fallback_text", "clarify_text", "failure_text")
RAIL_TEXTS = ("block_text", "handover_text")
Text = tuple[str, str, str, str]
"""kind, slug and path of a text that customers read, and the text."""


@release_gate(
    title=gettext_lazy("Variables of prompts"),
    description=gettext_lazy(
        "A prompt names only variables there are; a text that is sent as it is holds none."
    ),
)
def prompt_variables(context: GateContext) -> list[Problem]:
    """Gate: an unknown variable would be missing in every answer, a mark in a fixed text be read."""
    problems: list[Problem] = []
    for slug, prompt in context.release.all(PromptConfig).items():
        problems += _unknown_variables(slug, prompt)
    text = _("%(kind)s %(slug)s: %(path)s is sent as it is, and holds a variable.")
    problems += [
        Problem(
            kind=kind,
            slug=slug,
            path=path,
            message=text % {"kind": kind, "slug": slug, "path": path},
        )
        for kind, slug, path, said in texts_read(context.release)
        if "{{" in said or "{%" in said
    ]
    return problems


def _unknown_variables(slug: str, prompt: PromptConfig) -> list[Problem]:
    try:
        named = meta.find_undeclared_variables(_PARSER.parse(prompt.system))
    except TemplateError as error:
        text = _("prompt %(slug)s is not a valid template: %(error)s")
        return [_of_prompt(slug, text % {"slug": slug, "error": error})]
    text = _("prompt %(slug)s names the unknown variable %(name)s. Known: %(known)s.")
    return [
        _of_prompt(slug, text % {"slug": slug, "name": name, "known": ", ".join(VARIABLES)})
        for name in sorted(named - set(VARIABLES))
    ]


def _of_prompt(slug: str, message: str) -> Problem:
    return Problem(kind="prompt", slug=slug, path="system", message=message)


def texts_read(release: Release) -> Iterator[Text]:
    """Yield every text of ``release`` that a customer reads as it is written."""
    for slug, prompt in release.all(PromptConfig).items():
        for path in PROMPT_TEXTS:
            yield "prompt", slug, path, getattr(prompt, path)
    for slug, routing in release.all(RoutingPolicyConfig).items():
        for path in ROUTING_TEXTS:
            yield "routing_policy", slug, path, getattr(routing, path)
    for slug, rails in release.all(RailPolicyConfig).items():
        for path in RAIL_TEXTS:
            yield "rail_policy", slug, path, getattr(rails, path)
        for code, said in rails.block_texts.items():
            yield "rail_policy", slug, f"block_texts.{code}", said
    for slug, tool in release.all(ToolConfig).items():
        for name, argument in tool.args_schema.items():
            yield "tool", slug, f"args_schema.{name}.user_prompt", argument.user_prompt


@release_gate(
    title=gettext_lazy("Translations"),
    description=gettext_lazy(
        "Texts that customers read are in the language their agents answer in."
    ),
    level="warn",
)
def translations(context: GateContext) -> list[Problem]:
    """Gate: no text is left at its English default where agents answer in another language, and no
    rail policy, whose texts are in one language, serves agents of several."""
    release = context.release
    languages = _languages_by_rail_policy(release)
    spoken = {_language(prompt) for prompt in release.all(PromptConfig).values()}
    problems: list[Problem] = []
    for slug, prompt in release.all(PromptConfig).items():
        problems += _left_in_english("prompt", slug, prompt, PROMPT_TEXTS, {_language(prompt)})
    for slug, routing in release.all(RoutingPolicyConfig).items():
        problems += _left_in_english("routing_policy", slug, routing, ROUTING_TEXTS, spoken)
    for slug, rails in release.all(RailPolicyConfig).items():
        used_in = languages.get(slug, set())
        problems += _left_in_english("rail_policy", slug, rails, RAIL_TEXTS, used_in)
        if len(used_in) > 1:
            problems.append(_several(slug, used_in))
    return problems


def _language(prompt: PromptConfig) -> str:
    return prompt.language.partition("-")[0].partition("_")[0].lower()


def _languages_by_rail_policy(release: Release) -> dict[str, set[str]]:
    prompts = release.all(PromptConfig)
    languages: dict[str, set[str]] = defaultdict(set)
    for agent in release.all(AgentConfig).values():
        if agent.may_answer and agent.prompt in prompts:
            languages[agent.rails].add(_language(prompts[agent.prompt]))
    return languages


def _left_in_english(
    kind: str, slug: str, config: BaseModel, paths: tuple[str, ...], languages: set[str]
) -> Iterator[Problem]:
    others = sorted(languages - {"en"})
    text = _(
        "%(kind)s %(slug)s: %(path)s is still the English default; customers read %(languages)s."
    )
    for path in paths if others else ():
        if getattr(config, path) == type(config).model_fields[path].default:
            words = {"kind": kind, "slug": slug, "path": path, "languages": ", ".join(others)}
            yield Problem(kind=kind, slug=slug, path=path, message=text % words)


def _several(slug: str, languages: set[str]) -> Problem:
    text = _(
        "rail_policy %(slug)s serves agents that answer in %(languages)s, and its texts are in one"
        " language: make a policy for each."
    )
    words = {"slug": slug, "languages": ", ".join(sorted(languages))}
    return Problem(kind="rail_policy", slug=slug, path="block_text", message=text % words)
