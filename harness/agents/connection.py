"""The live client of an agent's model."""

from __future__ import annotations

from harness.errors import ConfigurationError, HarnessError
from harness.loader.reading import known, validated
from harness.protocols import Provider
from harness.providers.catalog import NO_KEY, VENDORS, live_client
from harness.schema.suite import ModelConfig


def model_config(written: object, base_url: str | None) -> ModelConfig:
    """The model that `provider:name` means.

    Raises:
        ConfigurationError: it is not written so, or the provider is not known.
    """
    vendor, colon, name = str(written).partition(":")
    if not isinstance(written, str) or not colon or not name or vendor not in VENDORS:
        raise ConfigurationError(
            f"model = {written!r}: must be written provider:name, as in 'openai:gpt-4.1',"
            f" or come with provider=...; {known(VENDORS, vendor)}"
        )
    settings = {"provider": vendor, "name": name, "base_url": base_url}
    return validated(ModelConfig, settings, where="model")


def connect(model: ModelConfig, api_key: str | None = None) -> Provider:
    """The live client of a model.

    Without a key the vendor's SDK looks for one itself, as it does everywhere; but what it finds
    is not sent to an endpoint that is not the vendor's.

    Raises:
        ConfigurationError: there is no such provider, no key, or its SDK is not installed.
    """
    if model.provider not in VENDORS:
        raise ConfigurationError(
            f"model.provider = {model.provider!r}: cannot be called; "
            f"{known(VENDORS, model.provider)}"
        )
    if api_key is None and model.base_url is not None:
        api_key = NO_KEY
    try:
        return live_client(model, api_key)
    except HarnessError:
        raise
    except Exception as error:  # each SDK has errors of its own for a key that it does not find
        variable = VENDORS[model.provider].key_variable
        raise ConfigurationError(
            f"model {model.provider}:{model.name}: {error}; give api_key=..., or set {variable}"
        ) from error
