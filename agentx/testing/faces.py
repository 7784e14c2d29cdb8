"""What each kind of server says about itself: lists, cards and counters, in the shapes of real ones.

Sources: captures of llama.cpp b10434/b11434 and Ollama 0.5.4/0.9.3; the servers' sources for LM Studio, vLLM,
SGLang, TGI, KoboldCpp and newer Ollama. Pure: what is asked and what is true in, an answer out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentx.testing.counting import TOKEN, Json, count_prompt, normal

Face = Literal["openai", "ollama", "lmstudio", "llamacpp", "vllm", "sglang", "tgi", "koboldcpp"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a JSON body; `headers` are sent besides the usual ones."""

    status: int
    body: Any
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the server would say now. `claim` is the window that it names, None where it names none."""

    face: Face
    models: Sequence[str]
    window: int
    claim: int | None
    trained: int
    modelfile: int | None
    loaded: bool
    created: int

    def knows(self, model: str) -> bool:
        """Ollama adds `:latest` by itself; servers of one model take any name for it."""
        if self.face in ("llamacpp", "koboldcpp", "tgi", "sglang"):
            return True
        names = {name.removesuffix(":latest") for name in self.models} if self.face == "ollama" else self.models
        return (model.removesuffix(":latest") if self.face == "ollama" else model) in names


def about(facts: Facts, method: str, path: str, body: Json) -> Answer | None:
    """The answer of a route that is no chat, None where this kind of server has no such route."""
    if method == "GET" and path.rstrip("/") in ("/v1/models", "/models"):
        return Answer(200, model_list(facts))
    if facts.face == "ollama":
        return _ollama(facts, method, path, body)
    if facts.face == "llamacpp":
        return _llamacpp(facts, method, path, body)
    if facts.face == "lmstudio" and method == "GET":
        return _lmstudio(facts, path)
    if facts.face == "vllm":
        return _vllm(facts, method, path, body)
    return _engine(facts, path) if method == "GET" else None


def model_list(facts: Facts) -> Json:
    """`/v1/models`: only llama.cpp, vLLM and services of the OpenRouter kind say a window here."""
    data = [_listed(facts, model) for model in facts.models]
    body: Json = {"object": "list", "data": data}
    if facts.face == "llamacpp":
        body["models"] = [
            {"name": model, "model": model, "type": "model", "capabilities": ["completion"], "details": {}}
            for model in facts.models
        ]
    return body


def _listed(facts: Facts, model: str) -> Json:
    owners = {"ollama": "library", "lmstudio": "organization_owner"}
    entry: Json = {"id": model, "object": "model", "owned_by": owners.get(facts.face, facts.face)}
    if facts.face == "lmstudio":
        return entry
    entry["created"] = facts.created
    if facts.face == "openai":
        entry["owned_by"] = "system"
        if facts.claim is not None:
            entry["context_length"] = facts.claim
    elif facts.face == "llamacpp":
        meta: Json = {"vocab_type": 2, "n_vocab": 49152, "n_ctx_train": facts.trained, "n_params": 494_032_768}
        if facts.claim is not None:
            meta["n_ctx"] = facts.claim
        entry |= {"owned_by": "llamacpp", "aliases": [model], "tags": [], "meta": meta}
    elif facts.face == "vllm":
        entry |= {"root": model, "parent": None, "max_model_len": facts.claim, "permission": []}
    elif facts.face == "sglang":  # the trained length, whatever the memory holds
        entry |= {"root": model, "parent": None, "max_model_len": facts.trained}
    elif facts.face == "tgi":
        entry["owned_by"] = model
    elif facts.face == "koboldcpp":
        entry |= {"permission": [], "root": "koboldcpp"}
    return entry


def _engine(facts: Facts, path: str) -> Answer | None:
    """The one route that says the window at SGLang, TGI and KoboldCpp; it lacks what is not claimed."""
    claim = facts.claim
    if (facts.face, path) == ("sglang", "/server_info"):
        limits: Json = {} if claim is None else {"max_total_num_tokens": claim, "max_req_input_len": claim - 6}
        return Answer(200, {"model_path": facts.models[0], "context_length": None, "version": "0.5.23", **limits})
    if (facts.face, path) == ("tgi", "/info"):
        limits = {} if claim is None else {"max_total_tokens": claim, "max_input_tokens": claim - 1}
        return Answer(200, {"model_id": facts.models[0], "version": "3.3.6", **limits})
    if (facts.face, path) == ("koboldcpp", "/api/extra/true_max_context_length") and claim is not None:
        return Answer(200, {"value": claim})
    if (facts.face, path) == ("koboldcpp", "/api/extra/version"):
        return Answer(200, {"result": "KoboldCpp", "version": "1.99"})
    return None


def _ollama(facts: Facts, method: str, path: str, body: Json) -> Answer | None:
    if (method, path) == ("GET", "/api/version"):
        return Answer(200, {"version": "0.12.3"})
    if (method, path) == ("GET", "/"):
        return Answer(200, "Ollama is running")
    if (method, path) == ("GET", "/api/tags"):
        return Answer(200, {"models": [_ollama_card(model) for model in facts.models]})
    if (method, path) == ("GET", "/api/ps"):
        served: Json = {} if facts.claim is None else {"context_length": facts.claim}
        loaded = facts.models[: int(facts.loaded)]
        return Answer(200, {"models": [_ollama_card(m) | {"size_vram": 0} | served for m in loaded]})
    if (method, path) == ("POST", "/api/show"):
        model = str(body.get("model") or body.get("name") or "")
        if not facts.knows(model):
            return Answer(404, {"error": f"model '{model}' not found"})
        return Answer(200, _ollama_show(facts))
    return None


def _ollama_card(model: str) -> Json:
    name = model if ":" in model else f"{model}:latest"
    details = {
        "parent_model": "",
        "format": "gguf",
        "family": "qwen2",
        "families": ["qwen2"],
        "parameter_size": "494.03M",
        "quantization_level": "Q4_K_M",
    }
    return {"name": name, "model": name, "size": 491_401_670, "digest": "c3af4a60f143", "details": details}


def _ollama_show(facts: Facts) -> Json:
    body: Json = {
        "license": "",
        "modelfile": "FROM example\n",
        "template": "{{ .Prompt }}",
        "details": _ollama_card("m")["details"],
        "model_info": {
            "general.architecture": "qwen2",
            "general.parameter_count": 494_032_768,
            "qwen2.rope.scaling.original_context_length": 4096,
            "qwen2.context_length": facts.trained,
            "tokenizer.ggml.tokens": None,
        },
        "capabilities": ["completion", "tools"],
    }
    if facts.modelfile is not None:
        body["modelfile"] += f"PARAMETER num_ctx {facts.modelfile}\n"
        body["parameters"] = (
            f'num_ctx                        {facts.modelfile}\nstop                           "<|im_end|>"'
        )
    return body


def _llamacpp(facts: Facts, method: str, path: str, body: Json) -> Answer | None:
    claim: Json = {} if facts.claim is None else {"n_ctx": facts.claim}
    if (method, path) == ("GET", "/health"):
        return Answer(200, {"status": "ok"})
    if (method, path) == ("GET", "/props"):
        caps = {"supports_tools": True, "supports_tool_calls": True, "supports_system_role": True}
        return Answer(
            200,
            {
                "default_generation_settings": {"params": {"n_predict": -1, "temperature": 0.8}, **claim},
                "total_slots": 1,
                "model_alias": facts.models[0],
                "model_path": facts.models[0],
                "modalities": {"vision": False, "audio": False},
                "endpoint_slots": True,
                "chat_template": "",
                "chat_template_caps": caps,
                "build_info": "b10434-7e4c0a9",
                "is_sleeping": False,
            },
        )
    if (method, path) == ("GET", "/slots"):
        return Answer(200, [{"id": 0, **claim, "speculative": False, "is_processing": False}])
    if (method, path) == ("POST", "/tokenize"):
        return Answer(200, {"tokens": _tokens(str(body.get("content", "")), bool(body.get("with_pieces")))})
    if (method, path) == ("POST", "/apply-template"):
        return Answer(200, {"prompt": rendered(normal(body.get("messages", [])), body.get("tools") or [])})
    if (method, path) == ("POST", "/v1/chat/completions/input_tokens"):
        count = count_prompt(normal(body.get("messages", [])), body.get("tools") or [])
        return Answer(200, {"input_tokens": count, "object": "response.input_tokens"})
    return None


def _tokens(text: str, pieces: bool) -> list[Any]:
    found = [match.group() for match in TOKEN.finditer(text)]
    if pieces:
        return [{"id": index, "piece": piece} for index, piece in enumerate(found)]
    return list(range(len(found)))


def rendered(messages: Sequence[Json], tools: Sequence[Json]) -> str:
    """The prompt as one text, in the ChatML manner; tokenised it counts about what the request counts."""
    texts = [f"<|im_start|>{m['role']}\n{m['content']}{m.get('tool_calls') or ''}<|im_end|>\n" for m in messages]
    return "".join([str(list(tools)) if tools else "", *texts, "<|im_start|>assistant\n"])


def _lmstudio(facts: Facts, path: str) -> Answer | None:
    if path == "/api/v0/models":
        return Answer(200, {"object": "list", "data": [_lmstudio_v0(facts, model) for model in facts.models]})
    if path.startswith("/api/v0/models/"):
        model = path.removeprefix("/api/v0/models/")
        found = facts.knows(model)
        return Answer(200, _lmstudio_v0(facts, model)) if found else Answer(404, {"error": "model not found"})
    if path == "/api/v1/models":
        return Answer(200, {"models": [_lmstudio_v1(facts, model) for model in facts.models]})
    return None


def _lmstudio_v0(facts: Facts, model: str) -> Json:
    entry: Json = {
        "id": model,
        "object": "model",
        "type": "llm",
        "publisher": "lmstudio-community",
        "arch": "qwen2",
        "compatibility_type": "gguf",
        "quantization": "Q4_K_M",
        "state": "loaded" if facts.loaded else "not-loaded",
        "max_context_length": facts.trained,
        "capabilities": ["tool_use"],
    }
    if facts.loaded and facts.claim is not None:
        entry["loaded_context_length"] = facts.claim
    return entry


def _lmstudio_v1(facts: Facts, model: str) -> Json:
    config: Json = {"parallel": 1} if facts.claim is None else {"context_length": facts.claim, "parallel": 1}
    return {
        "type": "llm",
        "publisher": "lmstudio-community",
        "key": model,
        "display_name": model,
        "max_context_length": facts.trained,
        "loaded_instances": [{"id": model, "config": config}] if facts.loaded else [],
        "capabilities": {"vision": False, "trained_for_tool_use": True},
    }


def _vllm(facts: Facts, method: str, path: str, body: Json) -> Answer | None:
    if (method, path) == ("GET", "/health"):
        return Answer(200, "")
    if (method, path) == ("GET", "/version"):
        return Answer(200, {"version": "0.32.0"})
    if (method, path) != ("POST", "/tokenize"):
        return None
    if "messages" in body:
        count = count_prompt(normal(body["messages"]), body.get("tools") or [])
    else:
        count = len(_tokens(str(body.get("prompt", "")), pieces=False))
    tokens = list(range(count))
    return Answer(200, {"count": count, "max_model_len": facts.claim, "tokens": tokens, "token_strs": None})
