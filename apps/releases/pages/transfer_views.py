"""Pages that move a whole tenant's configuration out and in as YAML."""

from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.releases.pages import widgets
from apps.releases.pages.config_admin import ConfigAdmin
from apps.releases.pages.links import kind_label, request_link, slug_link
from apps.releases.pages.uploading import (
    UploadRefused,
    files_of_uploads,
    files_pack,
    files_parse,
    files_unpack,
    zip_of_files,
)
from apps.releases.pages.views import require
from apps.releases.portable.native import Portable, native_files, native_text
from apps.releases.portable.proposing import Proposed, request_of_files, terms_of_import
from apps.releases.portable.report import Report
from apps.releases.portable.transfer import tenant_export
from apps.releases.portable.yaml_source import SourceRefused
from apps.tenants.tenant_admin import actor_of

CHANGES = {
    "created": gettext_lazy("created"),
    "changed": gettext_lazy("changed"),
    "archived": gettext_lazy("archived"),
    "unchanged": gettext_lazy("unchanged"),
}
ACTIONS = {
    "dropped": gettext_lazy("dropped"),
    "later": gettext_lazy("not yet supported"),
    "derived": gettext_lazy("added"),
    "warning": gettext_lazy("warning"),
}


class Files(forms.FileInput):
    """Several files at once."""

    template_name = "releases/widgets/files.html"
    allow_multiple_selected = True


class ImportForm(forms.Form):
    """What is imported and how. ``packed`` carries the files from the dry run to the import."""

    uploads = forms.Field(
        label=gettext_lazy("Files"),
        required=False,
        widget=Files(attrs={"accept": ".yaml,.yml,.zip,.txt,.md", "multiple": True}),
        help_text=gettext_lazy("One or more YAML files, or a zip of a whole folder."),
    )
    packed = forms.CharField(required=False, widget=forms.HiddenInput)
    replace = forms.BooleanField(
        label=gettext_lazy("Archive the rest"),
        required=False,
        widget=widgets.Switch(),
        help_text=gettext_lazy("Items that the files do not name are archived."),
    )
    environment = forms.ChoiceField(
        label=gettext_lazy("Bind addresses in"),
        initial="dev",
        widget=widgets.Choice(),
        help_text=gettext_lazy("For addresses of mcp_servers.yaml and llm_profiles.yaml."),
    )
    docker_environment = forms.ChoiceField(
        label=gettext_lazy("Bind container addresses in"),
        initial="production",
        widget=widgets.Choice(),
        help_text=gettext_lazy("For addresses of mcp_servers.docker.yaml."),
    )
    note = forms.CharField(
        label=gettext_lazy("Note"), max_length=500, required=False, widget=widgets.Line()
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("environment", "docker_environment"):
            field: Any = self.fields[name]
            field.choices = [(known, known) for known in settings.RELEASE_ENVIRONMENTS]


def export_view(admin: ConfigAdmin, request: HttpRequest) -> HttpResponse:
    """Offer the export, or send it: ``?format=yaml`` or ``zip``, ``&values=1`` with bindings."""
    require(request, "config.view")
    wanted = request.GET.get("format")
    if wanted not in ("yaml", "zip"):
        return admin.page(request, "releases/export.html", _("Export configuration"), {})
    values = request.GET.get("values") == "1"
    if values:
        require(request, "bindings.view")
    portable = tenant_export(binding_values=values)
    slug = request.tenant.slug  # type: ignore[attr-defined]
    if wanted == "yaml":
        return _download(f"{slug}.yaml", "application/yaml", native_text(portable).encode())
    files = {name: text.encode() for name, text in native_files(portable).items()}
    return _download(f"{slug}.zip", "application/zip", zip_of_files(files))


def import_view(admin: ConfigAdmin, request: HttpRequest) -> HttpResponse:
    """Take files, say what importing them would change, and draft a request when asked again."""
    require(request, "config.change")
    post = request.method == "POST"
    form = ImportForm(request.POST if post else None, request.FILES if post else None)
    context: dict[str, Any] = {"form": form}
    if post and form.is_valid():
        try:
            files = _files(request, form)
            report, done = _import(request, form, files, dry_run="apply" not in request.POST)
        except UploadRefused as refused:
            form.add_error("uploads", str(refused))
        except SourceRefused as refused:
            context["problems"] = refused.problems
        else:
            if "apply" in request.POST:
                return _imported(request, done)
            context |= _shown(report, done) | {"packed": files_pack(files)}
    return admin.page(request, "releases/import.html", _("Import configuration"), context)


def _files(request: HttpRequest, form: ImportForm) -> dict[str, bytes]:
    uploads = request.FILES.getlist("uploads")
    if uploads:
        files = files_of_uploads(uploads)
    elif form.cleaned_data["packed"]:
        files = files_unpack(form.cleaned_data["packed"])
    else:
        raise UploadRefused(_("Choose at least one file."))
    files_pack(files)
    return files


def _import(
    request: HttpRequest, form: ImportForm, files: dict[str, bytes], *, dry_run: bool
) -> tuple[Report, Proposed]:
    portable, report = files_parse(
        files,
        environment=form.cleaned_data["environment"],
        docker_environment=form.cleaned_data["docker_environment"],
    )
    note = form.cleaned_data["note"]
    done = request_of_files(
        portable=_allowed(request, portable, report),
        actor=actor_of(request),
        terms=terms_of_import(", ".join(sorted(files))[:150], note),
        note=note,
        replace=form.cleaned_data["replace"],
        dry_run=dry_run,
    )
    return report, done


def _allowed(request: HttpRequest, portable: Portable, report: Report) -> Portable:
    """Leave addresses out for whoever may not bind them, and say so."""
    if not portable.bindings or request.user.has_perm("bindings.change"):
        return portable
    report.add_file("dropped", "", _("Addresses are not bound: your role may not change bindings."))
    return replace(portable, bindings=())


def _imported(request: HttpRequest, done: Proposed) -> HttpResponseRedirect:
    if done.request is None:
        messages.info(request, _("Nothing to change: the files say what is accepted."))
        return HttpResponseRedirect(reverse("admin:releases_import"))
    text = _(
        "Drafted: %(created)s created, %(changed)s changed, %(archived)s archived, "
        "%(unchanged)s unchanged. Submit the request for review."
    )
    messages.success(request, text % done.counts())
    return HttpResponseRedirect(request_link(done.request))


def _shown(report: Report, done: Proposed) -> dict[str, Any]:
    return {
        "done": {"dangling": done.dangling(), "bindings": done.bound},
        "counts": [(CHANGES[name], count) for name, count in done.counts().items()],
        "changes": [
            {
                "kind": kind_label(kind),
                "slug": slug,
                "change": CHANGES[change],
                "url": "" if change == "created" else slug_link(kind, slug),
            }
            for (kind, slug), change in sorted(done.changes.items())
            if change != "unchanged"
        ],
        "lines": [(ACTIONS[line.action], line) for line in report.sorted()],
    }


def _download(name: str, content_type: str, content: bytes) -> HttpResponse:
    return HttpResponse(
        content,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
