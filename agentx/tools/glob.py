"""Glob patterns as people write them, matched against paths with `/`."""

from __future__ import annotations

import re


def glob_pattern(glob: str) -> re.Pattern[str]:
    """*glob* as a pattern for whole relative paths.

    Without a `/` it is matched against the last name, at any depth. `**` crosses folders, `*` and `?` do not,
    `{a,b}` is either.
    """
    glob = glob.removeprefix("./")
    if "/" not in glob:
        glob = f"**/{glob}"
    if glob.endswith("/"):
        glob += "**"
    return re.compile(_translated(glob.lstrip("/")))


def _translated(glob: str) -> str:
    out: list[str] = []
    at, open_braces = 0, 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
            continue
        if glob.startswith("**", at):
            out.append(".*")
            at += 2
            continue
        if char == "[" and (end := glob.find("]", at + 2)) > 0:
            out.append(_char_class(glob[at + 1 : end]))
            at = end + 1
            continue
        if char == "{" and "}" in glob[at:]:
            open_braces += 1
            out.append("(?:")
        elif char == "}" and open_braces:
            open_braces -= 1
            out.append(")")
        elif char == "," and open_braces:
            out.append("|")
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)))
        at += 1
    return "".join(out) + ")" * open_braces


def _char_class(inner: str) -> str:
    negated = inner[0] in "!^" and len(inner) > 1
    inner = inner[1:] if negated else inner
    items: list[str] = []
    at = 0
    while at < len(inner):
        if inner[at + 1 : at + 2] == "-" and inner[at] <= inner[at + 2 : at + 3]:
            items.append(f"{re.escape(inner[at])}-{re.escape(inner[at + 2])}")
            at += 3
        else:
            items.append(re.escape(inner[at]))
            at += 1
    return f"[{'^/' if negated else ''}{''.join(items)}]"
