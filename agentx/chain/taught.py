"""The parameters that models were found to refuse, kept for all jobs beside the health of links."""

from __future__ import annotations

import json
from collections.abc import Callable

from agentx.chain.health_file import HealthFile
from agentx.chain.parameters import Changes
from agentx.config.links import Link

KEPT_SECONDS = 7 * 86_400.0
"""Servers are brought up to date: after a week it is tried again."""


class Taught:
    """By exact endpoint and model, whatever the key."""

    def __init__(self, file: HealthFile, now: Callable[[], float]) -> None:
        self._file = file
        self._now = now

    def changes(self, link: Link) -> Changes:
        """What is known of the parameters of *link*."""
        sql = "select changes from taught where key = ? and since > ?"
        rows = self._file.ask(sql, (link.identity, self._now() - KEPT_SECONDS))
        return json.loads(rows[0][0]) if rows else {}

    def learn(self, link: Link, changes: Changes) -> None:
        told = (link.identity, json.dumps(dict(changes)), self._now())
        self._file.at_once(lambda: self._file.ask("insert or replace into taught values (?, ?, ?)", told))

    def forget(self, link: Link) -> None:
        self._file.at_once(lambda: self._file.ask("delete from taught where key = ?", (link.identity,)))
