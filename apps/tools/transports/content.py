"""What an MCP server wrote, as one result."""

import hashlib
from collections.abc import Mapping
from typing import Any

from mcp.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from apps.runtime.ports import RemoteResult
from apps.tools.results import error_text, result_normalise, text_value

Block = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


def tool_result(name: str, result: CallToolResult) -> RemoteResult:
    """Return the answer of tool ``name``.

    An error flag wins over structured content (field case 10.5), structured content over text.
    Text that is JSON becomes its value. Anything that is not text becomes a placeholder in the text
    and an entry in ``metadata["attachments"]``; the bytes themselves go no further (field case 10.8).
    """
    pieces = [_piece(block) for block in result.content]
    attachments = [found for _, found in pieces if found]
    metadata = {"attachments": attachments} if attachments else {}
    if result.is_error:
        message = "\n".join(text for text, _ in pieces)
        return RemoteResult(ok=False, error=_error(name, message), metadata=metadata)
    if result.structured_content is not None:
        return result_normalise(_unwrapped(result.structured_content), metadata=metadata)
    values = [text_value(text) for text, _ in pieces]
    if all(isinstance(value, str) for value in values):
        return result_normalise("\n".join(values), metadata=metadata)
    return result_normalise(values[0] if len(values) == 1 else values, metadata=metadata)


def _unwrapped(value: Any) -> Any:
    """The SDK's servers wrap what is no object as ``{"result": value}``."""
    if isinstance(value, Mapping) and set(value) == {"result"}:
        return value["result"]
    return value


def _error(name: str, message: str) -> str:
    """Return the server's words without the SDK's own prefix."""
    text = message.removeprefix(f"Error executing tool {name}: ").strip()
    return error_text(text_value(text)) if text else "The tool failed without a message."


def _piece(block: Block) -> tuple[str, dict[str, Any] | None]:
    """Return the text of ``block`` and, when it is none, what is known of the attachment."""
    match block:
        case TextContent(text=text):
            return text, None
        case EmbeddedResource(resource=TextResourceContents(text=text)):
            return text, None
        case ImageContent(data=data, mime_type=mime) | AudioContent(data=data, mime_type=mime):
            return _attachment(block.type, data, mime)
        case ResourceLink(uri=uri, mime_type=mime):
            return f"[link {uri}]", {
                "type": "resource_link",
                "mime_type": mime or "",
                "uri": str(uri),
            }
        case EmbeddedResource(resource=resource):
            return _attachment("resource", getattr(resource, "blob", ""), resource.mime_type or "")
    raise TypeError(type(block).__name__)


def _attachment(kind: str, data: str, mime: str) -> tuple[str, dict[str, Any]]:
    """``data`` is base64: three bytes for every four characters."""
    size = len(data.rstrip("=")) * 3 // 4
    digest = hashlib.sha256(data.encode("utf-8", "replace")).hexdigest()
    known = {"type": kind, "mime_type": mime, "bytes": size, "base64_sha256": digest}
    return f"[{kind} {mime}, {size} bytes]", known
