"""Gate: what the nodes of a workflow call can be called, as often as it says and no more."""

from collections.abc import Iterator, Mapping

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.releases.gates import GateContext, Level, Problem, release_gate
from apps.runtime.release import Release
from apps.tools.config import ToolConfig, WorkflowConfig, WorkflowNode
from apps.tools.mapping import sources_of
from apps.tools.workflows.paths import path_parse


@release_gate(
    title=gettext_lazy("Workflows"),
    description=gettext_lazy(
        "The tools of a workflow are there, take what they are given, are never repeated by accident,"
        " and are confirmed where they must be."
    ),
)
def workflows_ready(context: GateContext) -> list[Problem]:
    """Gate: a workflow stops half-way where one of its nodes cannot be called."""
    problems: list[Problem] = []
    for slug, workflow in context.release.all(WorkflowConfig).items():
        if workflow.enabled:
            problems += _of_workflow(context.release, slug, workflow)
    for slug, tool in context.release.all(ToolConfig).items():
        flow = context.release.find(WorkflowConfig, tool.execution.workflow)
        if tool.enabled and tool.execution.mode == "workflow" and flow and not flow.enabled:
            text = _("tool %(slug)s is carried out by the workflow %(name)s, which is off.")
            message = text % {"slug": slug, "name": tool.execution.workflow}
            problems.append(
                Problem(kind="tool", slug=slug, path="execution.workflow", message=message)
            )
    return problems


def _of_workflow(release: Release, slug: str, workflow: WorkflowConfig) -> Iterator[Problem]:
    carried = [
        tool
        for tool in release.all(ToolConfig).values()
        if tool.enabled and tool.execution.mode == "workflow" and tool.execution.workflow == slug
    ]
    if not carried:
        text = _("workflow %(slug)s: no tool is carried out by it, so it is never started.")
        yield _problem(slug, "", text % {"slug": slug}, "warn")
    confirmed = bool(carried) and all(tool.confirmation_required for tool in carried)
    given = {node.pause.key for node in workflow.nodes if node.pause.key}
    given |= {name for tool in carried for name in tool.args_schema}
    for index, node in enumerate(workflow.nodes):
        path = f"nodes[{index}]"
        yield from _of_node(release, slug, node, path, confirmed=confirmed)
        yield from _unknown_inputs(slug, node, path, given if carried else None)


def _of_node(
    release: Release, slug: str, node: WorkflowNode, path: str, *, confirmed: bool
) -> Iterator[Problem]:
    called = (("tool", node.tool, node.params), ("compensate_tool", node.compensate_tool, node.compensate_params))  # fmt: skip
    for field, name, params in called:
        tool = release.find(ToolConfig, name)
        if tool is None:
            continue
        words = {"slug": slug, "node": node.id, "tool": name}
        if not tool.enabled:
            text = _("workflow %(slug)s: node %(node)s calls the tool %(tool)s, which is off.")
            yield _problem(slug, f"{path}.{field}", text % words)
        unknown = [p for p in params if p not in tool.args_schema]
        if unknown:
            text = _(
                "workflow %(slug)s: node %(node)s gives %(tool)s what it does not take: %(names)s."
            )
            yield _problem(slug, f"{path}.{field}", text % {**words, "names": ", ".join(unknown)})
        if missing := _missing(release, name, tool, params):
            text = _(
                "workflow %(slug)s: node %(node)s does not give %(tool)s what it requires: %(names)s."
            )
            yield _problem(slug, f"{path}.{field}", text % {**words, "names": ", ".join(missing)})
        if tool.confirmation_required and not confirmed:
            text = _(
                "workflow %(slug)s: node %(node)s calls %(tool)s, which needs the customer's yes, but"
                " what the workflow carries out asks for none."
            )
            yield _problem(slug, f"{path}.{field}", text % words)
    yield from _repeatable(release, slug, node, path)


def _missing(release: Release, name: str, tool: ToolConfig, params: Mapping[str, str]) -> list[str]:
    """Return required arguments that neither the node nor the conversation's context fills."""
    context = sources_of(release, name, tool).context
    return [
        argument
        for argument in tool.requires
        if argument not in params
        and argument not in context
        and tool.args_schema[argument].source not in ("constant", "secret")
    ]


def _repeatable(release: Release, slug: str, node: WorkflowNode, path: str) -> Iterator[Problem]:
    tool = release.find(ToolConfig, node.tool)
    if tool is None or not tool.transactional or tool.idempotent:
        return
    words = {"slug": slug, "node": node.id, "tool": node.tool}
    if not node.at_most_once:
        text = _(
            "workflow %(slug)s: node %(node)s calls the action %(tool)s, which is not idempotent. Mark the"
            " node at most once: it then stops when nobody knows how a call ended."
        )
        yield _problem(slug, f"{path}.at_most_once", text % words)
    if node.retries:
        text = _(
            "workflow %(slug)s: node %(node)s is never retried: the action %(tool)s is not idempotent."
        )
        yield _problem(slug, f"{path}.retries", text % words, "warn")


def _unknown_inputs(
    slug: str, node: WorkflowNode, path: str, given: set[str] | None
) -> Iterator[Problem]:
    """Yield inputs that nothing gives, when it is known what does."""
    given_to = [
        (f"{field}.{name}", text)
        for field in ("params", "compensate_params")
        for name, text in getattr(node, field).items()
    ]
    for place, text in given_to:
        found = path_parse(text)
        if given is None or found is None or found.root != "input" or found.names[0] in given:
            continue
        said = _("workflow %(slug)s: node %(node)s reads the input %(name)s, which nothing gives.")
        words = {"slug": slug, "node": node.id, "name": found.names[0]}
        yield _problem(slug, f"{path}.{place}", said % words, "warn")


def _problem(slug: str, path: str, message: str, level: Level = "block") -> Problem:
    return Problem(kind="workflow", slug=slug, path=path, level=level, message=message)
