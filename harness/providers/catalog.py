"""The providers that speak to a vendor, by the name that files give them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.protocols import Dialect
from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.openai_chat import OpenAIChat


@dataclass(frozen=True, slots=True)
class Vendor:
    """How one provider is spoken to."""

    dialect: Callable[[], Dialect]
    client: str
    """`module:function` that makes the live client; the module imports the vendor's SDK."""
    key_variable: str
    """Environment variable that holds the API key."""


VENDORS = {
    "anthropic": Vendor(
        dialect=AnthropicMessages,
        client="harness.providers.anthropic_client:client",
        key_variable="ANTHROPIC_API_KEY",
    ),
    "openai": Vendor(
        dialect=OpenAIChat,
        client="harness.providers.openai_client:client",
        key_variable="OPENAI_API_KEY",
    ),
}
