"""Images that are refused: a model that sees none, one bad image, or more bytes than a server takes. Pure.

They are given up like a parameter that is not taken: a line of text then stands for each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from agentx.chain.body import Said
from agentx.chain.parameters import Refusal
from agentx.wires.messages import Message, Request

IMAGES, THESE_IMAGES = "images", "these images"
"""The names of what is left out. The second holds for one job: the next one may have better images."""
LEAVES_OUT_IMAGES = frozenset({IMAGES, THESE_IMAGES})

NO_IMAGES = re.compile(
    r"((does|do) not|doesn.t|don.t|cannot|can.t|\bnot|\bun)[ -]?(currently )?(support|accept|take)(s|ed)?:?"
    r"( for)?[^.;]{0,60}\b(image[_ ](input|url)|images|image content|vision|multi-?modal)"
    r"|\b(image[_ ](input|url)|images|vision|multi-?modal)[^.;]{0,60}"
    r"\b((is|are) (not|only)|unsupported|not enabled)"
    r"|requires? (a )?(multi-?modal|vision)|not a (multi-?modal|vision)|at most 0 image"
    r"|no endpoints found that support image|missing data required for image|unknown variant [`'\"]*image_url"
    r"|\bcontent[`'\"]*:? (must|should) be a string|list\[textcontentpart\]",
    re.IGNORECASE,
)
"""llama.cpp, Ollama, vLLM, OpenRouter, OpenAI, DeepSeek, Groq and others to a model that only reads text."""
BAD_IMAGE = re.compile(
    r"(could not|cannot|unable to|failed to|error) (process|read|load|decode|download|open|parse)(ing)?\b"
    r"[^.;]{0,20}\bimage|(valid|unsupported|corrupt(ed)?) (base64 )?image"
    r"|\bimage\b[^.;]{0,20}(exceeds|dimensions|too (large|small|big))",
    re.IGNORECASE,
)
"""Anthropic, OpenAI, Gemini and llama.cpp to an image that is broken, too large, or of a form they do not know."""


def refused_images(said: Said) -> Refusal | None:
    """Images, where the model cannot be shown any; these images, where it is one of them that is refused."""
    if BAD_IMAGE.search(said.text):
        return Refusal(THESE_IMAGES)
    return Refusal(IMAGES) if NO_IMAGES.search(said.text) else None


LEFT_OUT = "[image left out]"
AT_ONCE = 4
"""So many of the oldest images are left out together: each change of the beginning costs the provider's cache."""
CAUSE = 0.5
"""Of a request's bytes: images that have less are not why it has too many."""


def image_bytes(messages: Sequence[Message]) -> int:
    """What the images of *messages* take of a request, in bytes of base64."""
    return sum(len(image.data) for message in messages for image in message.images)


def to_blame(request: Request) -> int:
    """The bytes of the images of *request* where they are most of it, else 0."""
    if not request.shows_images:
        return 0
    images = image_bytes(request.messages)
    others = sum(len(m.text) + sum(len(call.arguments) for call in m.tool_calls) for m in request.messages)
    return images if images > CAUSE * (images + others) else 0


def lighter(messages: Sequence[Message], most_bytes: int) -> tuple[Message, ...]:
    """*messages* whose images have at most *most_bytes* together: a line of text stands for the oldest of them."""
    sizes = [len(image.data) for message in messages for image in message.images]
    needed, left = 0, sum(sizes)
    while left > most_bytes:
        left -= sizes[needed]
        needed += 1
    in_batches = -(-needed // AT_ONCE) * AT_ONCE
    dropped = max(needed, min(in_batches, len(sizes) - 1))  # the newest goes only where it must
    made: list[Message] = []
    for message in messages:
        gone = min(dropped, len(message.images))
        dropped -= gone
        if gone:
            lines = "\n".join([LEFT_OUT] * gone)
            text = f"{message.text}\n{lines}" if message.text else lines
            message = replace(message, text=text, images=message.images[gone:])
        made.append(message)
    return tuple(made)
