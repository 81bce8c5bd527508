"""The points of a turn at which a test kills the worker; ``stalling`` puts them in."""

# point -> the step of the turn it is in. ``action`` is a tool that changes something.
POINTS = {
    "claim.uncommitted": "claim",
    "claim.committed": "claim",
    "model.in_flight": "model",
    "model.unrecorded": "model",
    "tool.in_flight": "tool in flight",
    "action.in_flight": "tool in flight",
    "tool.unrecorded": "tool done but unrecorded",
    "action.unrecorded": "tool done but unrecorded",
    "action.uncommitted": "tool done but unrecorded",
    "settle.uncommitted": "settle",
    "settle.committed": "settle",
    "deliver.uncommitted": "deliver",
    "deliver.committed": "deliver",
}
