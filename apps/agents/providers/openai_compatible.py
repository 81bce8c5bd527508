"""Any server that speaks OpenAI's chat completions, through the official client.

The only file that imports ``openai``. Streams inside, so that a stalled server is noticed; retries
here and nowhere else; turns every failure into ``ModelFailed`` without the server's own words,
which may repeat the key.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakKeyDictionary

import httpx2
import openai
from openai import AsyncOpenAI

from apps.agents.providers.base import ModelProfile, ProviderCall
from apps.agents.providers.chunks import Assembly
from apps.agents.providers.shapes import SHAPES
from apps.agents.providers.waiting import retry_after, wait_seconds
from apps.runtime.ports import ModelFailed, ModelReply

NAME = "openai_compatible"
CONNECT_SECONDS = 5.0
# Sent where a server wants no key: the client insists on one.
_NO_KEY = "none"
_ACCOUNT_HEADERS = ("OpenAI-Organization", "OpenAI-Project")
_LIMITS = httpx2.Limits(max_connections=200, max_keepalive_connections=50)
_CODE = re.compile(r"[\w.-]{1,60}")
_UNKNOWN = re.compile(
    r"unsupported|unknown|unrecogni|not (?:supported|permitted|allowed)|extra", re.I
)
_MODEL_CODES = ("model_not_found", "invalid_model", "model_not_available", "unknown_model")
_FILTER_CODES = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")


@dataclass(frozen=True)
class _Failure:
    """Why one attempt failed. ``parameter``: the request field that the server does not know."""

    text: str
    code: str
    retry: bool = False
    asked: float | None = None
    parameter: str = ""


@dataclass
class _Trials:
    """What it took to get one reply."""

    attempts: int = 0
    waited: float = 0.0


@dataclass
class OpenAICompatible:
    """Calls the server a profile's address names, with the profile's own key.

    One client per event loop and base URL is kept: a new one costs tens of milliseconds.
    ``transport`` and ``sleep`` are for tests.
    """

    transport: httpx2.AsyncBaseTransport | None = None
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep
    _clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, AsyncOpenAI]] = field(
        default_factory=WeakKeyDictionary, repr=False
    )
    _unknown_parameters: dict[tuple[str, str], set[str]] = field(default_factory=dict, repr=False)

    async def complete(self, call: ProviderCall) -> ModelReply:
        """Return the reply of the profile's model, after at most ``max_retries`` more attempts."""
        profile = call.profile
        client = self._client(call.base_url, profile).with_options(
            api_key=call.key or _NO_KEY, max_retries=0, timeout=_timeout(profile.timeout_seconds)
        )
        trials = _Trials()
        while True:
            trials.attempts += 1
            found = await self._attempt(client, call)
            if isinstance(found, Assembly):
                return _reply(call, found, trials)
            if self._adapted(call, found):
                trials.attempts -= 1
                continue
            wait = wait_seconds(found.asked, trials.attempts - 1)
            if not found.retry or trials.attempts > profile.max_retries or wait is None:
                raise ModelFailed(found.text, code=found.code)
            await self.sleep(wait)
            trials.waited += wait

    async def aclose(self) -> None:
        """Close the running loop's clients."""
        for client in self._clients.pop(asyncio.get_running_loop(), {}).values():
            await client.close()

    def _client(self, base_url: str, profile: ModelProfile) -> AsyncOpenAI:
        """Return the kept client of ``base_url``; without one nothing is ever sent elsewhere."""
        if not base_url.startswith(("http://", "https://")):
            raise ModelFailed(
                f"model profile {profile.name!r} has no bound address", code="wrong_model"
            )
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        if base_url not in clients:
            clients[base_url] = self._new_client(base_url)
        return clients[base_url]

    def _new_client(self, base_url: str) -> AsyncOpenAI:
        return AsyncOpenAI(
            base_url=base_url,
            api_key=_NO_KEY,
            max_retries=0,
            # The client reads these from the process's environment; they belong to no tenant.
            default_headers=cast("Any", dict.fromkeys(_ACCOUNT_HEADERS, openai.Omit())),
            # A redirect could carry a customer's words to another host.
            http_client=httpx2.AsyncClient(
                transport=self.transport, limits=_LIMITS, follow_redirects=False
            ),
        )

    async def _attempt(self, client: AsyncOpenAI, call: ProviderCall) -> Assembly | _Failure:
        """Send once. Returned, not raised: an exception would keep the request, hence the key."""
        assembly = Assembly()
        try:
            async with asyncio.timeout(call.profile.timeout_seconds):
                create = cast("Any", client.chat.completions).create
                stream = await create(**self._parameters(call))
                async with stream:
                    async for chunk in stream:
                        assembly.add(chunk)
        except (TimeoutError, openai.APITimeoutError):
            return _Failure("the model did not answer in time", "timeout")
        except openai.APIStatusError as error:
            return _status_failure(error, call.key)
        except openai.APIConnectionError:
            return _Failure("the model's server cannot be reached", "broken", retry=True)
        except openai.APIError as error:
            return _event_failure(error)
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, ValueError):
            return _Failure("the model's server answered in no known form", "broken", retry=True)
        if not assembly.finish_reason:
            return _Failure("the answer broke off before its end", "broken", retry=True)
        return assembly

    def _parameters(self, call: ProviderCall) -> dict[str, Any]:
        profile = call.profile
        unknown = self._unknown_parameters.get((call.base_url, profile.model), set())
        renamed = "max_tokens" in unknown
        parameters: dict[str, Any] = {
            "model": profile.model,
            "messages": SHAPES[profile.message_shape](call.messages),
            "temperature": profile.temperature,
            "max_completion_tokens" if renamed else "max_tokens": profile.max_tokens,
            "stream": True,
        }
        if "stream_options" not in unknown:
            parameters["stream_options"] = {"include_usage": True}
        if call.tools and profile.message_shape == "tools":
            parameters["tools"] = [dict(tool) for tool in call.tools]
        return parameters

    def _adapted(self, call: ProviderCall, failure: _Failure | Assembly) -> bool:
        """Whether the server refused a field that has another spelling; remembered per model.

        OpenAI's newer models want ``max_completion_tokens``, older servers know no
        ``stream_options``. Nothing that changes the answer is ever dropped.
        """
        parameter = failure.parameter if isinstance(failure, _Failure) else ""
        known = self._unknown_parameters.setdefault((call.base_url, call.profile.model), set())
        if parameter not in ("max_tokens", "stream_options") or parameter in known:
            return False
        known.add(parameter)
        return True


def _timeout(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))


def _status_failure(error: openai.APIStatusError, key: str) -> _Failure:
    status = error.status_code
    named = _error_code(error, key)
    text = f"the model's server refused with HTTP {status}{f' ({named})' if named else ''}"
    if status in (401, 403):
        return _Failure(text, "auth")
    if named in _FILTER_CODES:
        return _Failure(text, "content_filter")
    if status == 429:
        out_of_quota = named == "insufficient_quota"
        asked = retry_after(error.response.headers)
        return _Failure(text, "rate_limited", retry=not out_of_quota, asked=asked)
    if status == 404 or named in _MODEL_CODES or error.param == "model":
        return _Failure(text, "wrong_model")
    if status in (408, 409) or status >= 500:
        return _Failure(text, "broken", retry=True, asked=retry_after(error.response.headers))
    return _Failure(text, "broken", parameter=_unknown_parameter(error))


def _unknown_parameter(error: openai.APIStatusError) -> str:
    """Return which of the two fields with another spelling the server complains about."""
    complaint = f"{error.param or ''} {error.message}"
    if "max_completion_tokens" in complaint:
        return "max_tokens"
    known_not = "stream_options" in complaint and _UNKNOWN.search(complaint)
    return "stream_options" if known_not else ""


def _event_failure(error: openai.APIError) -> _Failure:
    """An error event in the middle of a stream."""
    named = error.code or ""
    if named in _FILTER_CODES:
        return _Failure("the model's server filtered the answer", "content_filter")
    code = "rate_limited" if "rate_limit" in f"{named} {error.type or ''}" else "broken"
    return _Failure("the model's server broke off with an error", code, retry=True)


def _error_code(error: openai.APIStatusError, key: str) -> str:
    """Return the server's short error code when it is one, and does not hold the key."""
    code = error.code or ""
    inner = error.body.get("innererror") if isinstance(error.body, Mapping) else None
    if isinstance(inner, Mapping) and inner.get("code") in _FILTER_CODES:
        code = str(inner["code"])
    return code if _CODE.fullmatch(code) and not (key and key in code) else ""


def _reply(call: ProviderCall, assembly: Assembly, trials: _Trials) -> ModelReply:
    asked = "".join(message.content for message in call.messages)
    usage, reasoning_tokens = assembly.usage(asked=asked)
    metadata: dict[str, Any] = {
        "reasoning_content": assembly.reasoning,
        "reasoning_tokens": reasoning_tokens,
        "served_model": assembly.model if assembly.model != call.profile.model else "",
        "attempts": trials.attempts if trials.attempts > 1 else 0,
        "waited_ms": round(trials.waited * 1000),
    }
    return ModelReply(
        text=assembly.text,
        tool_calls=assembly.tool_calls,
        usage=usage,
        finish_reason=assembly.finish_reason,
        provider=NAME,
        model=call.profile.model,
        metadata={name: value for name, value in metadata.items() if value},
    )
