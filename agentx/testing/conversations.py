"""The two fixed tasks that show a lost memory: a conversation of 27 messages, and a dozen notes on disk."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from agentx.testing.counting import Json

SYSTEM_KEY, PERSONAL_KEY = "ALPHA-7391", "BRAVO-2846"
QUESTION = "What is the system key and what is my personal key? Answer with both keys only."

PROSE = (
    "the harbour crew checked the north gate and wrote down the level of the water before lunch then moved the "
    "small boats to the inner pier because the wind from the west was growing stronger during the afternoon shift"
)

TASK = (
    "Read notes/note-01.txt to notes/note-{last:02}.txt one after the other. "
    "One code is planted in each of them. Answer with every code, in the order of the notes."
)


def conversation27(note_characters: int = 2_030) -> list[Json]:
    """27 messages, about 6,200 tokens by characters / 4: a key in the system prompt, one in the first user
    message, twelve notes that are each answered "Understood.", and a question for both keys.
    """
    dice = random.Random(27)
    messages: list[Json] = [
        {"role": "system", "content": f"You are a careful assistant. The system key is {SYSTEM_KEY}."},
        {
            "role": "user",
            "content": f"My personal key is {PERSONAL_KEY}. Remember it. I will now send some notes.",
        },
    ]
    for number in range(1, 13):
        text = f"Note {number}: {sentences(dice, note_characters)}"[:note_characters]
        messages.append({"role": "user", "content": text})
        messages.append({"role": "assistant", "content": "Understood."})
    return [*messages, {"role": "user", "content": QUESTION}]


def sentences(dice: random.Random, characters: int) -> str:
    """Dull prose of at least *characters* characters, always the same for the same *dice*."""
    words = PROSE.split()
    made: list[str] = []
    while sum(map(len, made)) < characters:
        start = dice.randrange(len(words) - 8)
        made.append(" ".join(words[start : start + dice.randrange(5, 9)]).capitalize() + ". ")
    return "".join(made)


def code_of(number: int, dice: random.Random) -> str:
    """A code that nobody can guess and that says which note it is from, e.g. `N07-QK4821`."""
    letters = "".join(dice.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=2))
    return f"N{number:02}-{letters}{dice.randrange(1000, 10_000)}"


def twelve_notes(folder: Path, *, words: int = 240, count: int = 12, seed: int = 12) -> tuple[str, ...]:
    """Write `notes/note-01.txt` and so on into *folder*, each of about *words* words with a code in the middle.

    Gives the codes in order; `note_task(count)` is the task that goes with them.
    """
    dice = random.Random(seed)
    codes = tuple(code_of(number, dice) for number in range(1, count + 1))
    (folder / "notes").mkdir(parents=True, exist_ok=True)
    for number, code in enumerate(codes, 1):
        path = folder / "notes" / f"note-{number:02}.txt"
        path.write_text(note_text(number, code, words, dice), encoding="utf-8")
    return codes


def note_text(number: int, code: str, words: int, dice: random.Random) -> str:
    """Short lines of prose, with *code* in a line of its own about half-way."""
    prose = sentences(dice, words * 6).split()[:words]
    lines = [" ".join(prose[start : start + 12]) for start in range(0, len(prose), 12)]
    lines.insert(len(lines) // 2, f"The code planted in this note is {code}.")
    return "\n".join([f"Note {number:02} of the harbour book", *lines, ""])


def note_task(count: int = 12) -> str:
    return TASK.format(last=count)


def missing(codes: Sequence[str], answer: str) -> list[str]:
    """The codes that *answer* does not have."""
    return [code for code in codes if code not in answer]
