"""The providers that speak to a vendor, by the name that files give them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from harness.errors import ConfigurationError
from harness.protocols import Dialect, Provider
from harness.providers.anthropic_messages import AnthropicMessages
from harness.providers.google_generate import GoogleGenerate
from harness.providers.ollama_chat import OllamaChat
from harness.providers.openai_chat import OpenAIChat
from harness.providers.openai_responses import OpenAIResponses
from harness.providers.wire_json import parsed
from harness.schema.messages import ModelTurn
from harness.schema.record import Json, JsonObject
from harness.schema.suite import ModelConfig

NO_KEY = "no-key"
"""Sent where no key is set: local servers take any, and replaying sends nothing."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """How one provider is spoken to."""

    dialect: Callable[..., Dialect]
    """Makes the dialect, from the options."""
    client: str
    """`module:function` that makes the live client from `base_url`, `api_key` and the options; the
    module imports the vendor's SDK."""
    key_variable: str
    """Environment variable that holds the API key."""
    needs_key: bool = True
    """Whether its own endpoint answers nobody without one."""
    options: tuple[str, ...] = ()
    """Fields of the model's settings that both of them take."""
    extra: str | None = None
    """What must be installed beside the package: its extra of this name."""


def openai_dialect(
    *, api: str = "chat", system_role: Literal["system", "developer"] = "system"
) -> Dialect:
    """The dialect of one of OpenAI's two interfaces."""
    return OpenAIResponses() if api == "responses" else OpenAIChat(system_role=system_role)


VENDORS = {
    "anthropic": Vendor(
        dialect=AnthropicMessages,
        client="harness.providers.anthropic_client:client",
        key_variable="ANTHROPIC_API_KEY",
    ),
    "openai": Vendor(
        dialect=openai_dialect,
        client="harness.providers.openai_client:client",
        key_variable="OPENAI_API_KEY",
        options=("api", "system_role"),
    ),
    "ollama": Vendor(
        dialect=OllamaChat,
        client="harness.providers.ollama_client:client",
        key_variable="OLLAMA_API_KEY",
        needs_key=False,
        extra="ollama",
    ),
    "google": Vendor(
        dialect=GoogleGenerate,
        client="harness.providers.google_client:client",
        key_variable="GEMINI_API_KEY",
        extra="google",
    ),
}


def dialect_of(model: ModelConfig) -> Dialect:
    """What a model is spoken to in."""
    vendor = VENDORS[model.provider]
    return vendor.dialect(**_options(vendor, model))


def all_dialects() -> list[Dialect]:
    """Every dialect there is, to know a recorded or proxied request by."""
    return [AnthropicMessages(), OpenAIChat(), OpenAIResponses(), OllamaChat(), GoogleGenerate()]


def dialects_by_name() -> dict[str, Dialect]:
    """Every dialect, by what recordings call its endpoint."""
    return {dialect.name: dialect for dialect in all_dialects()}


def recorded_turn(dialect: Dialect, answer: Json) -> ModelTurn:
    """The neutral turn in a recorded answer: a body, or the events of a streamed one.

    Raises:
        ModelCallError: the answer holds none.
    """
    return dialect.from_response(recorded_body(dialect, answer))


def recorded_body(dialect: Dialect, answer: Json) -> JsonObject:
    """The body of a recorded answer, put together from its events where it was streamed.

    Raises:
        ModelCallError: the events are not such an answer.
    """
    if isinstance(answer, dict):
        return answer
    # Ollama's streams are lines, the others' are server-sent events.
    events = map(parsed, answer.splitlines()) if isinstance(answer, str) else answer
    assembler = dialect.assembler()
    for event in events if isinstance(events, Iterable) else ():
        data = event.get("data", event) if isinstance(event, dict) else None
        if isinstance(data, dict):
            assembler.add(data)
    return assembler.body()


def live_client(model: ModelConfig, api_key: str | None) -> Provider:
    """The live client of a model.

    Args:
        model: Which one, and where.
        api_key: None leaves it to the vendor's SDK to find one.

    Raises:
        ConfigurationError: the vendor's SDK is not installed.
    """
    vendor = VENDORS[model.provider]
    module, _, name = vendor.client.partition(":")
    # Loaded by name: planning, reporting and --help must not pay for a vendor's SDK.
    client = getattr(client_module(module, vendor.extra), name)
    made: Provider = client(base_url=model.base_url, api_key=api_key, **_options(vendor, model))
    return made


def client_module(name: str, extra: str | None) -> Any:
    """A module that needs a vendor's SDK.

    Raises:
        ConfigurationError: the SDK is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if extra is None or (error.name or "").startswith("harness"):
            raise
        raise ConfigurationError(
            f"the package {error.name!r} is not installed; run: pip install 'loop-harness[{extra}]'"
        ) from error


def _options(vendor: Vendor, model: ModelConfig) -> dict[str, Any]:
    return {name: getattr(model, name) for name in vendor.options}
