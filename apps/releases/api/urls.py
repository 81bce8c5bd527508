"""Paths of the configuration API."""

from apps.releases.api import (
    bindings,
    change_acts,
    changes,
    environments,
    items,
    releases,
)
from apps.releases.api.operations import route

ITEM = "v1/items/<str:kind>/<str:slug>"
CHANGE = "v1/changes/<int:number>"
CHANGE_ITEM = f"{CHANGE}/items/<str:kind>/<str:slug>"
COMMENT = f"{CHANGE}/comments/<int:comment>"
RELEASE = "v1/releases/<int:number>"
ENVIRONMENT = "v1/environments/<str:environment>"
FREEZE = f"{ENVIRONMENT}/freezes/<int:window>"
PROPOSAL = f"{ENVIRONMENT}/binding-proposals/<int:proposal>"

urlpatterns = [
    route("v1/items", get=items.ItemList),
    route(ITEM, get=items.ItemGet, put=items.ItemDraft),
    route(f"{ITEM}/revisions", get=items.ItemRevisions),
    route(f"{ITEM}/uses", get=items.ItemUses),
    route(f"{ITEM}/reach", get=items.ItemReach),
    route("v1/configuration", get=items.ConfigurationThen),
    route("v1/changes", get=changes.ChangeList, post=changes.ChangeOpen),
    route(CHANGE, get=changes.ChangeGet, patch=changes.ChangeDescribe),
    route(CHANGE_ITEM, put=changes.ChangeItemPut, delete=changes.ChangeItemDrop),
    route(f"{CHANGE_ITEM}/archive", post=changes.ChangeItemArchive),
    route(f"{CHANGE_ITEM}/restore", post=changes.ChangeItemRestore),
    route(f"{CHANGE}/comments", post=changes.ChangeCommentAdd),
    route(f"{COMMENT}/resolve", post=changes.ChangeCommentResolve),
    route(f"{CHANGE}/submit", post=change_acts.ChangeSubmit),
    route(f"{CHANGE}/decide", post=change_acts.ChangeDecide),
    route(f"{CHANGE}/withdraw", post=change_acts.ChangeWithdraw),
    route(f"{CHANGE}/supersede", post=change_acts.ChangeSupersede),
    route(f"{CHANGE}/rebase", post=change_acts.ChangeRebase),
    route(f"{CHANGE}/publish", post=change_acts.ChangePublish),
    route(
        f"{CHANGE}/schedule",
        put=change_acts.ChangeSchedule,
        delete=change_acts.ChangeUnschedule,
    ),
    route(f"{CHANGE}/break-glass", post=change_acts.ChangeBreakGlass),
    route(f"{CHANGE}/ratify", post=change_acts.ChangeRatify),
    route(f"{CHANGE}/revert", post=change_acts.ChangeRevert),
    route("v1/releases", get=releases.ReleaseList),
    route(RELEASE, get=releases.ReleaseGet),
    route(f"{RELEASE}/manifest", get=releases.ReleaseManifest),
    route(f"{RELEASE}/record", get=releases.ReleaseRecord),
    route(f"{RELEASE}/diff", get=releases.ReleaseDiff),
    route("v1/environments", get=environments.EnvironmentList),
    route(ENVIRONMENT, get=environments.EnvironmentGet),
    route(f"{ENVIRONMENT}/then", get=environments.EnvironmentThen),
    route(f"{ENVIRONMENT}/history", get=environments.EnvironmentHistory),
    route(f"{ENVIRONMENT}/deploy", post=environments.EnvironmentDeploy),
    route(f"{ENVIRONMENT}/promote", post=environments.EnvironmentPromote),
    route(f"{ENVIRONMENT}/roll-back", post=environments.EnvironmentRollBack),
    route(
        f"{ENVIRONMENT}/canary",
        post=environments.CanaryStart,
        patch=environments.CanaryChange,
    ),
    route(f"{ENVIRONMENT}/canary/finish", post=environments.CanaryFinish),
    route(f"{ENVIRONMENT}/canary/stop", post=environments.CanaryStop),
    route(f"{ENVIRONMENT}/freezes", get=environments.FreezeList, post=environments.FreezeAdd),
    route(f"{FREEZE}/end", post=environments.FreezeEnd),
    route(f"{ENVIRONMENT}/bindings", get=bindings.BindingList),
    route(f"{ENVIRONMENT}/bindings/<str:what>/<str:name>", put=bindings.BindingPut),
    route(
        f"{ENVIRONMENT}/binding-proposals",
        get=bindings.ProposalList,
        post=bindings.ProposalAdd,
    ),
    route(f"{PROPOSAL}/decide", post=bindings.ProposalDecide),
    route(f"{PROPOSAL}/withdraw", post=bindings.ProposalWithdraw),
]
