"""How each kind of server refuses: overflow, unknown model, wrong key, and any other status.

The bodies are those of real servers (captures, sources); `native` is Ollama's own protocol.
"""

from __future__ import annotations

import json
from typing import Any

from agentx.testing.counting import Json
from agentx.testing.faces import Answer, Face, Facts


def overflow(facts: Facts, native: bool, prompt: int) -> Answer:
    """400: the prompt of *prompt* tokens does not fit."""
    window = facts.window
    if facts.face == "openai":
        return Answer(
            400,
            _openai(
                f"This model's maximum context length is {window} tokens. However, your messages resulted in "
                f"{prompt} tokens. Please reduce the length of the messages.",
                code="context_length_exceeded",
                param="messages",
            ),
        )
    if facts.face == "vllm":
        least = window + 1
        text = (
            f"This model's maximum context length is {window} tokens. However, your prompt contains at least "
            f"{least} input tokens, which exceeds this limit even without any output tokens. Please reduce the "
            f"length of the input prompt. (parameter=input_tokens, value={least})"
        )
        return Answer(400, _vllm(400, text, "BadRequestError", "input_tokens"))
    if facts.face == "lmstudio":
        text = (
            "The number of tokens to keep from the initial prompt is greater than the context length "
            f"(n_keep: {prompt} >= n_ctx: {window}). Try to load the model with a larger context length, or "
            "provide a shorter input."
        )
        return Answer(400, {"error": text})
    if facts.face == "sglang":
        return _sglang(f"The input ({prompt} tokens) is longer than the model's context length ({window} tokens).")
    if facts.face == "tgi":
        return _tgi(f"`inputs` must have less than {window - 1} tokens. Given: {prompt}")
    inner: Json = {
        "error": {
            "code": 400,
            "message": f"request ({prompt} tokens) exceeds the available context size ({window} tokens), "
            "try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": prompt,
            "n_ctx": window,
        }
    }
    if facts.face == "llamacpp":
        return Answer(400, inner)
    text = json.dumps(inner, separators=(",", ":"))
    return Answer(400, {"error": text} if native else _openai(text, code=None))


def total_overflow(facts: Facts, native: bool, prompt: int, output: int) -> Answer:
    """400: prompt and asked output together do not fit (the sentence of OpenAI and older vLLM)."""
    if facts.face == "sglang":
        return _sglang(
            f"Requested token count exceeds the model's maximum context length of {facts.window} tokens. You "
            f"requested a total of {prompt + output} tokens: {prompt} tokens from the input messages and {output} "
            "tokens for the completion. Please reduce the number of tokens in the input messages or the "
            "completion to fit within the limit."
        )
    if facts.face == "tgi":
        return _tgi(
            f"`inputs` tokens + `max_new_tokens` must be <= {facts.window}. Given: {prompt} `inputs` tokens and "
            f"{output} `max_new_tokens`"
        )
    text = (
        f"This model's maximum context length is {facts.window} tokens. However, you requested {prompt + output} "
        f"tokens ({prompt} in the messages, {output} in the completion). Please reduce the length of the messages "
        "or completion."
    )
    if facts.face == "vllm":
        body: Json = {"object": "error", "message": text, "type": "BadRequestError", "param": None, "code": 400}
        return Answer(400, body)
    if native:
        return Answer(400, {"error": text})
    return Answer(400, _openai(text, code="context_length_exceeded", param="messages"))


def output_too_large(facts: Facts, field: str, output: int) -> Answer:
    """400 of vLLM: the asked output alone is larger than the window."""
    text = (
        f"{field}={output} cannot be greater than max_model_len={facts.window}. Please request fewer output "
        f"tokens. (parameter={field}, value={output})"
    )
    return Answer(400, _vllm(400, text, "BadRequestError", field))


def unknown_model(face: Face, native: bool, model: str) -> Answer:
    if face == "ollama":
        text = f'model "{model}" not found, try pulling it first'
        return Answer(404, {"error": text} if native else _openai(text, code=None, kind="not_found_error"))
    if face == "vllm":
        return Answer(404, _vllm(404, f"The model `{model}` does not exist.", "NotFoundError", "model"))
    text = f"The model `{model}` does not exist or you do not have access to it."
    return Answer(404, _openai(text, code="model_not_found"))


def wrong_key(face: Face) -> Answer:
    if face == "llamacpp":
        return failure(face, native=False, status=401, message="Invalid API Key", kind="authentication_error")
    if face == "ollama":
        return Answer(401, {"error": "unauthorized"})
    if face == "vllm":
        return Answer(401, {"error": "Unauthorized"})
    return Answer(401, _openai("Incorrect API key provided.", code="invalid_api_key"))


def failure(face: Face, native: bool, status: int, message: str, kind: str | None = None) -> Answer:
    """Any other *status*, in the server's own shape."""
    if native or face == "lmstudio":
        return Answer(status, {"error": message})
    kind = kind or ("invalid_request_error" if status < 500 else "server_error")
    if face == "llamacpp":
        return Answer(status, {"error": {"code": status, "message": message, "type": kind}})
    if face == "vllm":
        return Answer(status, _vllm(status, message, kind, None))
    return Answer(status, _openai(message, code=None, kind=kind))


def _openai(
    message: str, *, code: str | None, param: str | None = None, kind: str = "invalid_request_error"
) -> Json:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _vllm(status: int, message: str, kind: str, param: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


def _sglang(message: str) -> Answer:
    """Flat: no `error` around it."""
    body: Json = {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}
    return Answer(400, body)


def _tgi(message: str) -> Answer:
    return Answer(422, {"error": f"Input validation error: {message}", "error_type": "validation"})
