"""Images that are refused: which refusals mean that a model sees none, and which are about one image. Pure.

They are given up like a parameter that is not taken: a line of text then stands for each.
"""

from __future__ import annotations

import re

from agentx.chain.body import Said
from agentx.chain.parameters import Refusal

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
