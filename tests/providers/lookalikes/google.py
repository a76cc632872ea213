"""The Gemini API on loopback, as strict as the real one: what it rejects gets HTTP 400."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.providers.lookalikes.server import Answer, Endpoint, only, require, stream

FUNCTION_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")

ANSWER: dict[str, Any] = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "Hi ☃, how are you?"}]},
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 2, "totalTokenCount": 9},
    "modelVersion": "gemini-test-2026",
    "responseId": "response-1",
}


def check(body: dict[str, Any]) -> None:
    """The rules of a generate-content request."""
    only(
        body,
        {"contents"},
        {"systemInstruction", "tools", "toolConfig", "generationConfig"},
    )
    if "systemInstruction" in body:
        only(body["systemInstruction"], {"parts"}, {"role"})
        require(body["systemInstruction"]["parts"], "systemInstruction.parts must not be empty.")
    generation = body.get("generationConfig", {})
    only(generation, set(), {"maxOutputTokens", "temperature"})
    require(generation.get("maxOutputTokens", 1) >= 1, "max_output_tokens must be positive.")
    names = [name for tool in body.get("tools", []) for name in _declared(tool)]
    require(len(names) == len(set(names)), "Duplicate function declaration found.")
    if "toolConfig" in body:
        _check_calling(body["toolConfig"], names)
    _check_turns(body["contents"])


def _declared(tool: dict[str, Any]) -> list[str]:
    only(tool, {"functionDeclarations"})
    for declaration in tool["functionDeclarations"]:
        only(declaration, {"name", "description"}, {"parametersJsonSchema"})
        require(
            FUNCTION_NAME.fullmatch(declaration["name"]),
            f"Invalid function name {declaration['name']!r}. Must start with a letter or an"
            " underscore.",
        )
        schema = declaration.get("parametersJsonSchema", {"type": "object"})
        require(schema.get("type") == "object", "The schema must describe an object.")
    return [declaration["name"] for declaration in tool["functionDeclarations"]]


def _check_calling(config: dict[str, Any], names: list[str]) -> None:
    only(config, {"functionCallingConfig"})
    calling = config["functionCallingConfig"]
    only(calling, {"mode"}, {"allowedFunctionNames"})
    require(names, "Function calling config is set without function_declarations.")
    require(calling["mode"] in ("AUTO", "ANY", "NONE"), f"Invalid mode {calling['mode']!r}.")
    allowed = calling.get("allowedFunctionNames")
    require(
        allowed is None or calling["mode"] == "ANY",
        "allowed_function_names should only be set when the mode is ANY.",
    )
    for name in allowed or []:
        require(name in names, f"allowed_function_names holds {name!r}, which is not declared.")


def _check_turns(contents: list[dict[str, Any]]) -> None:
    require(contents, "contents is not specified.")
    for turn in contents:
        only(turn, {"role", "parts"})
        require(turn["role"] in ("user", "model"), "Please use a valid role: user, model.")
        require(turn["parts"], "contents.parts must not be empty.")
        for part in turn["parts"]:
            _check_part(part, turn["role"])
    roles = [turn["role"] for turn in contents]
    require(roles[0] == "user" and roles[-1] == "user", "The conversation must start and end"
            " with the user role.")  # fmt: skip
    require(all(a != b for a, b in pairwise(roles)), "Roles must alternate: user and model.")
    calls: list[dict[str, Any]] = []
    for turn in contents:
        answered = [p["functionResponse"] for p in turn["parts"] if "functionResponse" in p]
        require(
            len(answered) == len(calls),
            "The number of function response parts must equal the number of function call parts"
            " of the turn before.",
        )
        for call, answer in zip(calls, answered, strict=True):
            same = (call["name"], call.get("id")) == (answer["name"], answer.get("id"))
            require(same, f"Function response {answer['name']!r} has no function call.")
        calls = [p["functionCall"] for p in turn["parts"] if "functionCall" in p]
    require(not calls, "A function call is not answered.")


def _check_part(part: dict[str, Any], role: str) -> None:
    data = set(part) & {"text", "functionCall", "functionResponse", "inlineData", "fileData"}
    require(len(data) == 1, "A part must have one initialized data field.")
    only(part, data, {"thought", "thoughtSignature"} if role == "model" else ())
    require(part.get("text", "x") or "thoughtSignature" in part, "A text part must not be empty.")
    if "functionCall" in part:
        require(role == "model", "A function call must come from the model.")
        only(part["functionCall"], {"name"}, {"id", "args"})
        require(isinstance(part["functionCall"].get("args", {}), dict), "args is no object.")
    if "functionResponse" in part:
        require(role == "user", "A function response must come from the user.")
        only(part["functionResponse"], {"name", "response"}, {"id"})
        require(isinstance(part["functionResponse"]["response"], dict), "response is no object.")


def pieces(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An answer as it is streamed: text in pieces of two letters, a call or a signed part whole."""
    about = {key: value for key, value in answer.items() if key != "candidates"}
    first = {key: about[key] for key in ("modelVersion", "responseId") if key in about}
    for candidate in answer.get("candidates", []):
        rest = {key: value for key, value in candidate.items() if key != "content"}
        content = candidate.get("content", {})
        for part in content.get("parts", []):
            for piece in _piece(part):
                yield first | {"candidates": [{"content": content | {"parts": [piece]}}]}
        yield about | {"candidates": [rest]}
    if not answer.get("candidates"):
        yield about


def _piece(part: dict[str, Any]) -> list[dict[str, Any]]:
    if not part.get("text") or "thoughtSignature" in part:
        return [part]
    text = part["text"]
    return [part | {"text": text[start : start + 2]} for start in range(0, len(text), 2)]


def failure(code: int, message: str, status: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, **more}}


BAD_KEY = failure(
    400,
    "API key not valid. Please pass a valid API key.",
    "INVALID_ARGUMENT",
    details=[
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
        }
    ],
)


def streamed(answer: dict[str, Any]) -> Answer:
    return stream(*pieces(answer))


def _answer(path: str, _: dict[str, Any]) -> Answer:
    return streamed(ANSWER) if "stream" in path else Answer(200, ANSWER)


def _rejection(why: str) -> dict[str, Any]:
    return failure(400, why, "INVALID_ARGUMENT")


GOOGLE = Endpoint(
    r"/v1(?:beta)?/models/[^/:]+:(generateContent|streamGenerateContent\?alt=sse)",
    check,
    _answer,
    _rejection,
)
