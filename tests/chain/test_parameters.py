"""A parameter that a model refuses is renamed or left out at once, and kept in mind; no tools: no job."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agentx.chain.classify import classify
from agentx.chain.health import Health
from agentx.chain.parameters import Refusal, changed
from agentx.chain.taught import KEPT_SECONDS
from agentx.chain.walk import Chain
from agentx.config.links import Link, Provider
from agentx.errors import ChainExhausted, NoUsableModel, RequestFailed
from agentx.testing import faults
from agentx.testing.server import FaultServer
from agentx.wires.litellm import completion
from agentx.wires.messages import Image, Message, Request, Timers
from agentx.wires.openai import OpenAIWire

if TYPE_CHECKING:
    from tests.chain.conftest import Failures, World

RENAME = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("card", "status", "body", "name", "instead"),
    [
        ("openai", 400, error(RENAME, type="invalid_request_error", param="max_tokens",
                              code="unsupported_parameter"), "max_tokens", "max_completion_tokens"),
        ("openai", 400, error("Unsupported value: 'temperature' does not support 0.2 with this model. Only the "
                              "default (1) value is supported.", param="temperature", code="unsupported_value"),
         "temperature", None),
        ("openai", 400, error("Unsupported parameter: 'parallel_tool_calls' is not supported with this model."),
         "parallel_tool_calls", None),
        ("openai", 400, error("Unrecognized request argument supplied: parallel_tool_calls"),
         "parallel_tool_calls", None),
        ("azure", 400, error("Unrecognized request argument supplied: stream_options"), "stream_options", None),
        ("groq", 400, error("property 'stream_options' is unsupported"), "stream_options", None),
        ("mistral", 422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "max_completion_tokens"],
                                      "msg": "Extra inputs are not permitted"}]}, "max_completion_tokens",
         "max_tokens"),
        ("mistral", 422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"],
                                      "msg": "Extra inputs are not permitted"}]}, "stream_options", None),
        ("anthropic", 400, error("`temperature` is deprecated for this model."), "temperature", None),
        ("anthropic", 400, error("`temperature` may only be set to 1 when thinking is enabled."),
         "temperature", None),
        ("anthropic", 400, error("`temperature` and `top_p` cannot both be specified for this model."),
         "temperature", None),
        ("gemini", 400, error('Invalid JSON payload received. Unknown name "parallel_tool_calls": Cannot find '
                              'field.', status="INVALID_ARGUMENT"), "parallel_tool_calls", None),
        ("deepseek", 400, error("deepseek-reasoner does not support this tool_choice"), "tool_choice", None),
        ("moonshot", 400, error("invalid temperature: only 1 is allowed for this model"), "temperature", None),
        ("openai-compatible", 400, error("unknown field: reasoning_effort"), "reasoning_effort", None),
    ],
)  # fmt: skip
def test_the_parameter_is_read_in_every_wording(
    shipped_card: Callable[[str], Provider], card: str, status: int, body: Any, name: str, instead: str | None
) -> None:
    failure = RequestFailed("no", phase="status", status=status, body=json.dumps(body))
    found = classify(failure, shipped_card(card), 0.0)
    assert (found.error_class, found.known, found.refuses) == ("bad_request", True, Refusal(name, instead))


@pytest.mark.parametrize(
    ("card", "status", "text"),
    [
        ("ollama", 400, "this model does not support image input (ref: b8bd630e)"),
        ("ollama", 500, "this model is missing data required for image input"),
        ("llamacpp", 500, "image input is not supported - hint: if this is unexpected, you may need to provide "
                          "the mmproj"),
        ("vllm", 400, "facebook/opt-125m is not a multimodal model None"),
        ("vllm", 400, "At most 0 image(s) may be provided in one prompt."),
        ("openrouter", 404, "No endpoints found that support image input"),
        ("openai", 400, "Invalid content type. image_url is only supported by certain models."),
        ("deepseek", 400, "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant "
                          "`image_url`, expected `text`"),
        ("groq", 400, "'messages.1' : for 'role:user' the following must be satisfied[('messages.1.content' : "
                      "value must be a string)] content must be a string"),
        ("mistral", 400, "Image input is not enabled for this model"),
        ("openai-compatible", 400, "Unsupported content part type for text-only server: image_url"),
        ("openai-compatible", 400, "Non-text content requires multimodal endpoint"),
        ("openai-compatible", 422, "body -> messages -> 0 -> content -> list[TextContentPart] -> 0: Input should "
                                   "be 'text'"),
        ("openai-compatible", 400, "Model glm does not support vision"),
        ("openai-compatible", 400, "this is not a vision capable model: it doesn't support images"),
    ],
)  # fmt: skip
def test_a_model_that_reads_only_text_is_known_in_every_wording(
    shipped_card: Callable[[str], Provider], card: str, status: int, text: str
) -> None:
    failure = RequestFailed("no", phase="status", status=status, body=json.dumps(error(text)))
    found = classify(failure, shipped_card(card), 0.0)
    assert (found.error_class, found.known, found.refuses) == ("bad_request", True, Refusal("images"))
    assert found.scope == "model"


@pytest.mark.parametrize(
    "text",
    [
        "messages.3.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
        "messages.3.content.0.image: At least one of the image dimensions exceed max allowed size: 8000 pixels",
        "Could not process image",
        "Unable to process input image. Please retry or report",
        "The image data you provided does not represent a valid image.",
        "You uploaded an unsupported image. Please make sure your image has of one of the following formats",
        "Failed to load image or audio file",
    ],
)
def test_one_image_that_is_refused_is_known_from_a_model_that_sees_none(
    shipped_card: Callable[[str], Provider], text: str
) -> None:
    failure = RequestFailed("no", phase="status", status=400, body=json.dumps(error(text)))
    assert classify(failure, shipped_card("openai"), 0.0).refuses == Refusal("these images")


@pytest.mark.parametrize("text", ["the model vision-7b does not support tool_choice", "your request is invalid"])
def test_a_refusal_that_names_no_image_is_not_about_images(
    shipped_card: Callable[[str], Provider], text: str
) -> None:
    failure = RequestFailed("no", phase="status", status=400, body=json.dumps(error(text)))
    refuses = classify(failure, shipped_card("openai"), 0.0).refuses
    assert refuses is None or "images" not in refuses.name


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "max_tokens must be less than or equal to 8192"),
        (400, "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens"),
        (400, "prompt is too long: 205000 tokens > 200000 maximum; max_tokens is not supported"),
        (429, "Rate limit reached; temperature is not supported"),
        (400, "something else"),
    ],
)
def test_what_says_something_else_refuses_no_parameter(
    shipped_card: Callable[[str], Provider], status: int, text: str
) -> None:
    failure = RequestFailed("no", phase="status", status=status, body=json.dumps(error(text)))
    assert classify(failure, shipped_card("openai"), 0.0).refuses is None


@pytest.mark.parametrize(
    ("card", "status", "text"),
    [
        ("ollama", 400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        ("openrouter", 404, 'No endpoints found that support tool use. Try disabling "read_file".'),
        ("vllm", 400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        ("llamacpp", 500, "tools param requires --jinja flag"),
        ("groq", 400, "`tool calling` is not supported with this model"),
        ("gemini", 400, "Function calling is not enabled for models/gemma-3-27b-it"),
        ("huggingface", 400, "This model does not support tool calling"),
    ],
)
def test_a_model_without_tools_is_known_in_every_wording(
    shipped_card: Callable[[str], Provider], card: str, status: int, text: str
) -> None:
    failure = RequestFailed("no", phase="status", status=status, body=json.dumps(error(text)))
    found = classify(failure, shipped_card(card), 0.0)
    assert (found.error_class, found.scope, found.out) == ("bad_request", "model", True)
    assert found.hint is not None


def test_a_parameter_that_is_taken_by_neither_name_is_left_out() -> None:
    one, other = Refusal("max_tokens", "max_completion_tokens"), Refusal("max_completion_tokens", "max_tokens")
    renamed = {"max_tokens": "max_completion_tokens"}
    assert changed({}, one) == renamed
    assert changed(renamed, other) == {"max_tokens": None}
    assert changed({"max_tokens": None}, one) is None


def test_the_litellm_wire_leaves_it_out_too() -> None:
    provider = Provider(name="p", card="p", wire="litellm", litellm_prefix="anthropic")
    request = Request(model="m", messages=[], max_tokens=5, temperature=0.5, changes={"temperature": None})
    arguments = completion(request, provider, "k", Timers())
    assert ("temperature" in arguments, arguments["max_tokens"]) == (False, 5)


def refusing(name: str) -> RequestFailed:
    body = json.dumps(error(f"Unsupported parameter: '{name}' is not supported", param=name))
    return RequestFailed("no", phase="status", status=400, body=body)


def test_the_same_link_is_asked_at_once_without_it_and_the_next_job_knows(world: World) -> None:
    world.say("a", refusing("temperature"), refusing("max_tokens"), "hi")
    answer = asyncio.run(world.chain("a", "b").ask(world.prepare))
    wanted = {"temperature": None, "max_tokens": "max_completion_tokens"}
    assert (answer.link.name, world.hits("a"), answer.request.changes) == ("a/m", 3, wanted)
    assert (world.health.resting(world.links["a"]), sum(world.clock.slept)) == (None, 0)
    assert asyncio.run(world.chain("a", "b").ask(world.prepare)).request.changes == wanted
    assert world.hits("a") == 4
    world.clock.advance(KEPT_SECONDS + 1)
    assert asyncio.run(world.chain("a", "b").ask(world.prepare)).request.changes == {}


BLIND = json.dumps(error("this model does not support image input"))


async def with_an_image(link: Link, reason: str) -> Request:
    shown = Message(role="user", text="what is it?", images=(Image("image/png", "iVBORw0KGgo="),))
    return Request(model=link.model, messages=[shown], max_tokens=50, estimate=1000)


def test_a_model_that_sees_nothing_is_told_of_its_images_and_the_next_job_knows(tmp_path: Path) -> None:
    async def one_job(link: Link) -> str:
        health = Health(tmp_path / "health.db", environ={})
        async with httpx.AsyncClient(trust_env=False) as client:
            chain = Chain([link], wires=lambda one: OpenAIWire(one.provider, client), health=health)
            answer = await chain.ask(with_an_image)
        health.close()
        return answer.reply.message.text

    with FaultServer(schedule=faults.first(1, faults.Status(500, {}, BLIND))) as server:
        provider = Provider(name="p", card="openai-compatible", wire="openai", base_url=server.v1)
        link = Link(provider=provider, model="scripted", name="p")
        assert [asyncio.run(one_job(link)) for _ in range(2)] == ["Hello.", "Hello."]
        sent = [chat.body["messages"][0]["content"] for chat in server.chats]
    assert [type(content) for content in sent] == [list, str, str]
    assert sent[1] == sent[2] == "what is it?\n[an image (image/png), which this model cannot see]"


def test_an_image_that_is_refused_is_left_out_for_this_job_only(world: World, fail: Failures) -> None:
    world.say("a", fail.status(400, json.dumps(error("Could not process image"))), "hi", "hi", "hi")
    chain = world.chain("a")
    first, second = (asyncio.run(chain.ask(with_an_image)).request for _ in range(2))
    third = asyncio.run(world.chain("a").ask(with_an_image)).request
    assert (first.shows_images, second.shows_images, third.shows_images) == (False, False, True)
    assert world.hits("a") == 4


def test_a_request_without_images_is_not_repeated_without_them(world: World, fail: Failures) -> None:
    world.say("a", fail.status(400, BLIND))
    world.say("b", "hi")
    answer = asyncio.run(world.chain("a", "b").ask(world.prepare))
    assert (answer.link.name, world.hits("a")) == ("b/m", 1)


def test_what_does_not_help_is_not_remembered(world: World) -> None:
    world.say("a", refusing("temperature"))
    world.say("b", "hi")
    answer = asyncio.run(world.chain("a", "b").ask(world.prepare))
    assert (answer.link.name, world.hits("a")) == ("b/m", 2)
    assert world.health.taught.changes(world.links["a"]) == {}


def test_a_lone_link_that_refuses_whatever_is_left_out_ends(world: World) -> None:
    world.say("a", refusing("temperature"))
    with pytest.raises(ChainExhausted, match="temperature"):
        asyncio.run(world.chain("a").ask(world.prepare))


def test_a_model_without_tools_is_passed_over_until_it_is_reset(world: World, fail: Failures) -> None:
    world.say("a", fail.status(400, json.dumps(error("m does not support tools"))))
    world.say("b", "hi")
    chain = world.chain("a", "b")
    answers = [asyncio.run(chain.ask(world.prepare)).link.name for _ in range(2)]
    assert (answers, world.hits("a")) == (["b/m"] * 2, 1)
    with pytest.raises(NoUsableModel, match="does not support tools") as caught:
        asyncio.run(world.chain("a").ask(world.prepare))
    assert caught.value.hint is not None


def test_over_a_socket_the_name_is_changed_and_kept_on_disk(tmp_path: Path) -> None:
    body = error(RENAME, type="invalid_request_error", param="max_tokens", code="unsupported_parameter")

    async def prepare(link: Link, reason: str) -> Request:
        hello = Message(role="user", text="hello")
        return Request(model=link.model, messages=[hello], max_tokens=50, temperature=0.2, estimate=5)

    async def one_job(link: Link) -> str:
        health = Health(tmp_path / "health.db", environ={})
        async with httpx.AsyncClient(trust_env=False) as client:
            chain = Chain([link], wires=lambda one: OpenAIWire(one.provider, client), health=health)
            answer = await chain.ask(prepare)
        health.close()
        return answer.reply.message.text

    with FaultServer(schedule=faults.first(1, faults.Status(400, {}, body))) as server:
        provider = Provider(name="p", card="openai-compatible", wire="openai", base_url=server.v1)
        link = Link(provider=provider, model="scripted", name="p")
        assert [asyncio.run(one_job(link)) for _ in range(2)] == ["Hello.", "Hello."]
        sent = [{key for key in chat.body if key.startswith("max_")} for chat in server.chats]
    assert sent == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]
