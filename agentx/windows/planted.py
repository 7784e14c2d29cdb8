"""A conversation of a chosen size with two planted words: one at the very start, one near the end, asked back."""

from __future__ import annotations

import random
from dataclasses import dataclass

from agentx.wires.messages import Message

TEXT = (
    "harbour crew north gate water level lunch small boats inner pier wind west stronger afternoon shift rope "
    "lantern market bridge barrel window garden letter morning copper engine valley shelter river stone yellow "
    "carpet winter ladder paper station kettle button corner"
)
WORDS = tuple(TEXT.split())
NAMES = ("ALPHA", "BRAVO", "DELTA", "KITE", "LIMA", "OSCAR", "TANGO", "VICTOR")
QUESTION = "What is the system key and what is my personal key? Answer with both keys only."
FEWEST, MOST = 40, 200
"""Words of one note: few, so that a server that drops whole messages stops near its window; not too many notes."""
SHARE = 400
SHORTEST = 8
"""Tokens of a note below which none is added."""
CHARACTERS, PER_MESSAGE = 4, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """`estimate` is the plain guess at its tokens, `granule` that of its largest message."""

    messages: tuple[Message, ...]
    first: str
    last: str
    estimate: int
    granule: int


def note_words(budget: int) -> int:
    """The words of each note in a measurement that may use *budget* tokens.

    The same in all its requests: where notes are longer, a character is fewer tokens.
    """
    return max(FEWEST, min(MOST, budget // SHARE))


def planted(size: int, words: int, dice: random.Random) -> Planted:
    """A conversation of at most *size* tokens by a plain estimate, in notes of *words* words; the last is shorter.

    Each begins with another word, so that no cache of an earlier one can answer for it. The first word stands in
    the first message of the user and not in a system prompt, which servers keep when they drop the oldest.
    """
    first, last = (f"{name}-{dice.randrange(1000, 10_000)}" for name in dice.sample(NAMES, 2))
    start = [
        _user(f"The system key is {first}. Remember it. Notes follow; at the end I ask for two keys."),
        _noted(),
    ]
    end = [_user(f"My personal key is {last}. Remember it too."), _noted(), _user(QUESTION)]
    notes: list[Message] = []
    used, granule, number = sum(map(_tokens, (*start, *end))), 0, 0
    while (room := size - used - _tokens(_noted()) - PER_MESSAGE) > SHORTEST:
        number += 1
        text = f"Note {number}: {' '.join(dice.choices(WORDS, k=words))}."
        notes += [_user(text[: room * CHARACTERS]), _noted()]
        granule = max(granule, _tokens(notes[-2]))
        used += _tokens(notes[-2]) + _tokens(notes[-1])
    return Planted(messages=(*start, *notes, *end), first=first, last=last, estimate=used, granule=granule)


def _tokens(message: Message) -> int:
    return PER_MESSAGE + -(-len(message.text) // CHARACTERS)


def _user(text: str) -> Message:
    return Message(role="user", text=text)


def _noted() -> Message:
    return Message(role="assistant", text="Noted.")
