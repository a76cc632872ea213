"""What a recorder of vendors' SDKs must get right: recorded live, then replayed with no server."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from harness.cassette import use
from tests.cassette.loopback import BINARY, Upstream, cheap, cheap_async, upstream, user

Case = Callable[[int], object]
MODEL = "tiny"


def openai_client(port: int, **options: Any) -> openai.OpenAI:
    url = f"http://127.0.0.1:{port}/v1"
    return openai.OpenAI(api_key="k", base_url=url, **{"max_retries": 0, **options}, **cheap())


def anthropic_client(port: int) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        api_key="k", base_url=f"http://127.0.0.1:{port}", max_retries=0, **cheap()
    )


def question(text: str = "one") -> Any:
    return {"model": MODEL, "messages": [user(text)]}


def run_openai(
    port: int, call: Callable[[openai.AsyncOpenAI], Coroutine[Any, Any, object]]
) -> object:
    async def go() -> object:
        url = f"http://127.0.0.1:{port}/v1"
        async with openai.AsyncOpenAI(
            api_key="k", base_url=url, max_retries=0, **cheap_async()
        ) as client:
            return await call(client)

    return asyncio.run(go())


def run_anthropic(
    port: int, call: Callable[[anthropic.AsyncAnthropic], Coroutine[Any, Any, object]]
) -> object:
    async def go() -> object:
        url = f"http://127.0.0.1:{port}"
        async with anthropic.AsyncAnthropic(
            api_key="k", base_url=url, max_retries=0, **cheap_async()
        ) as client:
            return await call(client)

    return asyncio.run(go())


def openai_plain(port: int) -> object:
    with openai_client(port) as client:
        return client.chat.completions.create(**question()).model_dump()


def openai_stream(port: int) -> object:
    with openai_client(port) as client:
        chunks = client.chat.completions.create(**question(), stream=True)
        return [chunk.model_dump() for chunk in chunks]


def openai_raw(port: int) -> object:
    with openai_client(port) as client:
        answer = client.chat.completions.with_raw_response.create(**question())
        return answer.headers["x-request-id"], answer.parse().id


def anthropic_plain(port: int) -> object:
    with anthropic_client(port) as client:
        return client.messages.create(**question(), max_tokens=9).model_dump()


def anthropic_stream(port: int) -> object:
    with (
        anthropic_client(port) as client,
        client.messages.stream(**question(), max_tokens=9) as stream,
    ):
        return "".join(stream.text_stream), stream.get_final_message().model_dump()


def async_openai_plain(port: int) -> object:
    async def call(client: openai.AsyncOpenAI) -> object:
        return (await client.chat.completions.create(**question())).model_dump()

    return run_openai(port, call)


def async_openai_stream(port: int) -> object:
    async def call(client: openai.AsyncOpenAI) -> object:
        chunks = await client.chat.completions.create(**question(), stream=True)
        return [chunk.model_dump() async for chunk in chunks]

    return run_openai(port, call)


def async_anthropic_plain(port: int) -> object:
    async def call(client: anthropic.AsyncAnthropic) -> object:
        return (await client.messages.create(**question(), max_tokens=9)).model_dump()

    return run_anthropic(port, call)


def async_anthropic_stream(port: int) -> object:
    async def call(client: anthropic.AsyncAnthropic) -> object:
        async with client.messages.stream(**question(), max_tokens=9) as stream:
            return (await stream.get_final_message()).model_dump()

    return run_anthropic(port, call)


def fifty_tasks(port: int) -> object:
    async def call(client: openai.AsyncOpenAI) -> object:
        calls = (client.chat.completions.create(**question(str(n))) for n in range(50))
        return [chat.choices[0].message.content for chat in await asyncio.gather(*calls)]

    return run_openai(port, call)


def pool_threads(port: int) -> object:
    with openai_client(port) as client, ThreadPoolExecutor(8) as pool:
        chats = pool.map(lambda n: client.chat.completions.create(**question(str(n))), range(50))
        return [chat.choices[0].message.content for chat in chats]


def binary(port: int) -> object:
    with openai_client(port) as client:
        return client.files.content("x").read()


def status_429(port: int) -> object:
    with openai_client(port) as client, pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(**question())
    return caught.value.status_code, str(caught.value)


def retried_429(port: int) -> object:
    with (
        openai_client(port, max_retries=2) as client,
        pytest.raises(openai.RateLimitError) as caught,
    ):
        client.chat.completions.create(**question())
    return caught.value.status_code, str(caught.value)


def packed(server: Upstream) -> None:
    server.compress = True


def overloaded(server: Upstream) -> None:
    server.statuses = [429] * 3
    server.headers = {"retry-after-ms": "1"}


def as_it_is(server: Upstream) -> None:
    server.headers = {"x-request-id": "req_7"}


CASES: list[tuple[Case, Callable[[Upstream], None]]] = [
    (openai_plain, as_it_is),
    (openai_stream, as_it_is),
    (openai_raw, as_it_is),
    (anthropic_plain, as_it_is),
    (anthropic_stream, as_it_is),
    (async_openai_plain, as_it_is),
    (async_openai_stream, as_it_is),
    (async_anthropic_plain, as_it_is),
    (async_anthropic_stream, as_it_is),
    (fifty_tasks, as_it_is),
    (pool_threads, as_it_is),
    (openai_plain, packed),
    (openai_stream, packed),
    (anthropic_plain, packed),
    (binary, as_it_is),
    (status_429, overloaded),
    (retried_429, overloaded),
]


@pytest.mark.parametrize(
    ("case", "prepare"), CASES, ids=[f"{c.__name__}-{p.__name__}" for c, p in CASES]
)
def test_the_replayed_answer_is_the_live_one(
    tmp_path: Path, case: Case, prepare: Callable[[Upstream], None]
):
    path = tmp_path / "0.jsonl"
    with upstream() as server, use(path, "once") as session:
        server.answers = [f"the answer {n} ☃ [DONE]" for n in range(50)]
        prepare(server)
        live = case(server.port)
    assert session.recorded >= 1
    with use(path) as session:
        assert case(server.port) == live
    assert session.recorded == 0


def test_binary_content_is_what_the_server_sent(tmp_path: Path):
    with upstream() as server, use(tmp_path / "0.jsonl", "once"):
        assert binary(server.port) == BINARY


def test_nothing_packed_is_stored(tmp_path: Path):
    path = tmp_path / "0.jsonl"
    with upstream() as server, use(path, "once"):
        server.compress = True
        openai_plain(server.port)
        openai_stream(server.port)
    text = path.read_text()
    assert "content-encoding" not in text
    assert '"type":"base64"' not in text
    assert gzip.compress(b"")[:2] not in path.read_bytes()
