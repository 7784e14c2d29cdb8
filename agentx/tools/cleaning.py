"""Makes foreign bytes safe to store, send and show: text without escapes, control characters and our keys.

A NUL or a lone surrogate breaks databases and request bodies; an escape sequence can rewrite a terminal.
"""

from __future__ import annotations

import base64
import codecs
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

REDACTED = "[redacted]"
SHORTEST_SECRET = 6
LONGEST_ESCAPE = 4096

ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    rf"|\x1b\][^\x07\x1b]{{0,{LONGEST_ESCAPE}}}(?:\x07|\x1b\\)"
    rf"|\x1b[PX^_][^\x1b]{{0,{LONGEST_ESCAPE}}}\x1b\\"
    r"|\x1b[ -/]*[0-~]"
)
OPEN_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?|[ -/]*)?\Z")
RETURNS = re.compile(r"\r+\n?")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
CONTROLS_BUT_RETURNS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")


def clean(text: str) -> str:
    """*text* without escape sequences, control characters and lone surrogates; `\\r` becomes a line end."""
    return _plain(ESCAPES.sub("", text))


def with_line_ends(text: str) -> str:
    """*text* whose every `\\r` is a line end."""
    return RETURNS.sub("\n", text) if "\r" in text else text


def _plain(text: str, *, keep_returns: bool = False) -> str:
    text = CONTROLS_BUT_RETURNS.sub("", text) if keep_returns else CONTROLS.sub("", with_line_ends(text))
    return text.encode("utf-8", "replace").decode("utf-8")


class Redactor:
    """Takes known secrets out of text: as they are, in base64 (whatever stands around them) and in URL form."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in forms_of(secret)}
        self._forms = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._forms))) if forms else None

    def redacted(self, text: str) -> str:
        if self._pattern is None or not any(
            form in text for form in self._forms
        ):  # ten times as fast as the pattern
            return text
        return self._pattern.sub(REDACTED, text)

    def opening(self, text: str) -> int:
        """How many characters at the end of *text* may be the beginning of a secret."""
        if not self._forms:
            return 0
        tail = text[-len(self._forms[0]) :]
        for start in range(len(tail)):
            end = tail[start:]
            if any(form.startswith(end) for form in self._forms):
                return len(end)
        return 0


def forms_of(secret: str) -> set[str]:
    """The spellings of *secret* that are looked for."""
    forms = {secret, quote(secret, safe=""), quote_plus(secret)}
    raw = secret.encode("utf-8", "replace")
    # Base64 depends on where a value begins within three bytes; the outer characters mix with the neighbours.
    for before, first in ((0, 0), (1, 2), (2, 3)):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * before + raw).decode("ascii")
            piece = text[first : (before + len(raw)) * 8 // 6]
            if len(piece) >= SHORTEST_SECRET:
                forms.add(piece)
    return forms


class Cleaner:
    """Cleans a stream piece by piece: what lies across two pieces is found as if they were one.

    With *keep_returns* each `\\r` stays, for who wants to know which lines were rewritten in place.
    """

    def __init__(self, redactor: Redactor, *, keep_returns: bool = False) -> None:
        self._redactor = redactor
        self._keep_returns = keep_returns
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._raw = ""  # an escape that is not whole yet
        self._return = ""  # a `\r` that a `\n` may follow
        self._held = ""  # clean text that may be the beginning of a secret

    def feed(self, data: bytes) -> str:
        """The clean text that is certain after *data*."""
        text = self._raw + self._decoder.decode(data)
        tail = OPEN_ESCAPE.search(text, max(0, len(text) - LONGEST_ESCAPE))
        cut = tail.start() if tail else len(text)
        text, self._raw = self._return + ESCAPES.sub("", text[:cut]), text[cut:]
        whole = text.rstrip("\r")
        self._return = "\r" if len(whole) < len(text) else ""
        return self._certain(_plain(whole, keep_returns=self._keep_returns))

    def _certain(self, text: str) -> str:
        text = self._redactor.redacted(self._held + text)
        cut = len(text) - self._redactor.opening(text)
        self._held = text[cut:]
        return text[:cut]

    def finish(self) -> str:
        """The rest; the stream has ended."""
        rest = ESCAPES.sub("", self._return + self._raw + self._decoder.decode(b"", final=True))
        rest = _plain(rest, keep_returns=self._keep_returns)
        text = self._redactor.redacted(self._held + rest)
        self._raw = self._return = self._held = ""
        return text
