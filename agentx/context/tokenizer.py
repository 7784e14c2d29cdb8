"""A real tokenizer for the rare moments when an estimate is not enough. Offline, and in a process of its own.

LiteLLM ships the vocabulary `cl100k_base`; loading it takes 60 MB and half a second, which a job should not carry
for the whole night. Nothing is ever downloaded: without the file there is no count.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SECONDS = 20.0
VOCABULARY = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
"""The name under which tiktoken looks for `cl100k_base` in its cache folder."""
PROGRAM = """\
import sys, tiktoken
text = sys.stdin.buffer.read().decode("utf-8", "replace")
print(len(tiktoken.get_encoding("cl100k_base").encode(text, disallowed_special=())))
"""
LEAST_OF_OTHER_SCRIPTS = 0.25
"""What newer vocabularies need at least for text that is not ASCII, as a share of `cl100k_base`: o200k needs about
0.6 for Russian and far less for some scripts of India."""
ASCII = re.compile(r"[\x00-\x7f]+")
NOWHERE = "http://127.0.0.1:9"


def vocabulary_folder() -> Path | None:
    """Where LiteLLM's shipped vocabulary lies, found without importing LiteLLM."""
    spec = importlib.util.find_spec("litellm")
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place) / "litellm_core_utils" / "tokenizers"
        if (folder / VOCABULARY).is_file():
            return folder
    return None


def least_tokens(text: str, counter: Callable[[str], int | None]) -> int | None:
    """The fewest tokens that *text* may be by a common tokenizer, as *counter* tells; None where it cannot."""
    if text.isascii():
        return counter(text)
    plain, others = counter("".join(ASCII.findall(text))), counter(ASCII.sub("", text))
    return None if plain is None or others is None else plain + int(LEAST_OF_OTHER_SCRIPTS * others)


def count_tokens(text: str, *, folder: Path | None = None, seconds: float = SECONDS) -> int | None:
    """The tokens of *text* by a real byte-pair tokenizer; None where there is none or it takes too long.

    Other models' tokenizers differ by some per cent. Repeated blanks or letters do not fool it.
    """
    folder = folder or vocabulary_folder()
    if folder is None:
        return None
    # A proxy that is not there: should the file ever be refused, tiktoken cannot fetch another one.
    environment = {"TIKTOKEN_CACHE_DIR": str(folder), "https_proxy": NOWHERE, "http_proxy": NOWHERE}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM],
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            env=environment,
            cwd=folder,
            timeout=seconds,
            check=True,
        )
        return int(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
