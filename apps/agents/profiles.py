"""Model profiles: what a named one inherits from ``default``, and what a call costs."""

from decimal import Decimal
from typing import TypeVar

from apps.agents.config import ModelProfileConfig, Prices
from apps.agents.providers.base import ModelProfile
from apps.runtime.ports import ModelFailed
from apps.runtime.release import Release
from apps.runtime.turn import Usage

Number = TypeVar("Number", int, float)

DEFAULT = "default"
# Said by no profile. Temperature, tokens and timeout are the reference platform's defaults.
TEMPERATURE = 0.2
MAX_TOKENS = 2048
TIMEOUT_SECONDS = 120.0
MAX_RETRIES = 2
MESSAGE_SHAPE = "tools"
_MILLION = Decimal(1_000_000)
_CENT_FRACTION = Decimal("0.00000001")
CHARS_PER_TOKEN = 4


def profile_resolve(release: Release, name: str) -> ModelProfile:
    """Return the profile ``name`` of ``release``; what it leaves empty comes from ``default``.

    Things that belong together are inherited together: a model only with its provider, a credential
    only with its address (a key never goes to another host), prices only with their model. Kept
    with the release. Raises ``UnknownItem``, or ``ModelFailed`` ``wrong_model`` when no provider or
    model is named.
    """
    kept: dict[str, ModelProfile] = release.derived.setdefault("agents.profiles", {})
    if name not in kept:
        named = release.get(ModelProfileConfig, name)
        default = release.find(ModelProfileConfig, DEFAULT) or named
        kept[name] = _merged(name, named, default)
    return kept[name]


def _merged(name: str, named: ModelProfileConfig, default: ModelProfileConfig) -> ModelProfile:
    provider = named.provider or default.provider
    same_provider = provider == default.provider
    model = named.model or (default.model if same_provider else "")
    if not provider or (not model and provider != "scripted"):
        missing = "model" if provider else "provider"
        raise ModelFailed(f"model profile {name!r} names no {missing}", code="wrong_model")
    same_address = not named.base_url and same_provider
    address = default.base_url if same_address else named.base_url
    return ModelProfile(
        name=name,
        provider=provider,
        model=model,
        address=address,
        credential=named.credential or (default.credential if same_address else ""),
        temperature=_first(named.temperature, default.temperature, TEMPERATURE),
        max_tokens=_first(named.max_tokens, default.max_tokens, MAX_TOKENS),
        timeout_seconds=_first(named.timeout_seconds, default.timeout_seconds, TIMEOUT_SECONDS),
        max_retries=_first(named.max_retries, default.max_retries, MAX_RETRIES),
        prices=_prices(named, default, inherits=same_provider and model == default.model),
        script=tuple(named.script or (default.script if same_provider else ())),
        message_shape=named.message_shape
        or (default.message_shape if same_provider else "")
        or MESSAGE_SHAPE,
        delay_ms=named.delay_ms or (default.delay_ms if same_provider else 0),
    )


def _prices(named: ModelProfileConfig, default: ModelProfileConfig, *, inherits: bool) -> Prices:
    if not inherits:
        return named.prices
    given = named.prices.model_dump(exclude_none=True)
    return default.prices.model_copy(update=given)


def _first(*values: Number | None) -> Number:
    return next(value for value in values if value is not None)


def cost(usage: Usage, prices: Prices) -> float | None:
    """Return the USD of ``usage``, rounded to 8 places; ``None`` when a price that counts is unknown.

    Cached tokens are part of the input tokens and cost the cached price, else the input price.
    Reasoning tokens are part of the output tokens and are not counted again (fault 43).
    """
    cached = min(usage.cached_tokens, usage.input_tokens)
    cached_price = prices.input if prices.cached is None else prices.cached
    total = Decimal(0)
    for tokens, price in (
        (usage.input_tokens - cached, prices.input),
        (cached, cached_price),
        (usage.output_tokens, prices.output),
    ):
        if tokens and price is None:
            return None
        total += Decimal(tokens) * Decimal(str(price or 0)) / _MILLION
    if prices.input is None and prices.output is None:
        return None
    return float(total.quantize(_CENT_FRACTION))


def tokens_estimate(text: str) -> int:
    """Return about how many tokens ``text`` is; never 0 for a text."""
    return -(-len(text) // CHARS_PER_TOKEN)
