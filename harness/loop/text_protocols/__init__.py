"""Tool calls as text, for models that were not trained on native tool calls."""

from __future__ import annotations

from collections.abc import Mapping

from harness.loop.text_protocols.hermes import HermesProtocol
from harness.loop.text_protocols.json_protocol import JsonProtocol
from harness.loop.text_protocols.provider import TextProtocolProvider
from harness.loop.text_protocols.react import ReactProtocol
from harness.loop.text_protocols.terminus2 import Terminus2Protocol
from harness.loop.text_protocols.xml import XmlProtocol
from harness.protocols import TextProtocol

PROTOCOLS: Mapping[str, TextProtocol] = {
    "json": JsonProtocol(),
    "hermes": HermesProtocol(),
    "xml": XmlProtocol(),
    "react": ReactProtocol(),
    "terminus2": Terminus2Protocol(),
}
"""What `loop.text_protocol` may name."""

__all__ = ["PROTOCOLS", "TextProtocolProvider"]
