"""Small agents on the vendors' SDKs, for this process and for one without our front."""

from __future__ import annotations

import json
import sys
from typing import Any

import anthropic
import openai
import requests
import vcr  # type: ignore[import-untyped]

PARAMETERS = {"type": "object", "properties": {"file": {"type": "string"}}}
OPENAI_TOOL: Any = {"type": "function", "function": {"name": "count", "parameters": PARAMETERS}}
ANTHROPIC_TOOL: Any = {"name": "count", "description": "Count.", "input_schema": PARAMETERS}


def openai_agent(base_url: str | None) -> list[str]:
    """Sends the SDK's own message objects back, as OpenAI's documentation shows it."""
    said = []
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Count ✓"},
    ]
    with openai.OpenAI(api_key="unused", base_url=base_url, max_retries=0) as client:
        while True:
            answer = client.chat.completions.create(
                model="tiny", messages=messages, tools=[OPENAI_TOOL], temperature=0
            )
            message = answer.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                said.append(call.id)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "12"})
        said.append(str(message.content))
        again: list[Any] = [{"role": "user", "content": "Stream."}]
        for _ in range(2):
            chunks = client.chat.completions.create(model="tiny", messages=again, stream=True)
            said.append("".join(c.choices[0].delta.content or "" for c in chunks if c.choices))
        text = client.responses.create(model="tiny", input="Count again.").output_text
    return [*said, text]


def anthropic_agent(base_url: str | None) -> list[str]:
    """Sends the SDK's own blocks back, as Anthropic's documentation shows it."""
    said = []
    messages: list[Any] = [{"role": "user", "content": "Count ✓"}]
    with anthropic.Anthropic(api_key="unused", base_url=base_url, max_retries=0) as client:
        while True:
            answer = client.messages.create(
                model="tiny",
                max_tokens=64,
                system="Be brief.",
                messages=messages,
                tools=[ANTHROPIC_TOOL],
            )
            messages.append({"role": "assistant", "content": answer.content})
            results: list[Any] = [
                {"type": "tool_result", "tool_use_id": block.id, "content": "12"}
                for block in answer.content
                if block.type == "tool_use"
            ]
            said += [block.text for block in answer.content if block.type == "text"]
            if not results:
                return said
            messages.append({"role": "user", "content": results})


def pages(url: str) -> list[str]:
    """Requests that are no model calls."""
    return [
        requests.get(f"{url}/page?q=1", timeout=9).text,
        requests.post(f"{url}/form", data={"a": "1 2"}, timeout=9).text,
        requests.post(f"{url}/json", json={"a": [1, None]}, timeout=9).content.hex(),
    ]


def main() -> None:
    """Everything again from a cassette of vcrpy's: FILE, then the address of the pages."""

    def refuse(event: str, _: object) -> None:
        if event == "socket.connect":
            raise ConnectionError("a replay went to the network")

    sys.addaudithook(refuse)
    path, url = sys.argv[1:]
    with vcr.use_cassette(path, record_mode="none", match_on=["method", "uri", "body"]) as played:
        said = [*openai_agent(None), *anthropic_agent(None), *pages(url)]
        print(json.dumps({"said": said, "all": played.all_played}))
    print([name for name in sys.modules if name.startswith("harness")], file=sys.stderr)


if __name__ == "__main__":
    main()
