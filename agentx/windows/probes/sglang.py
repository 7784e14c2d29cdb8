"""SGLang: `/server_info` `max_req_input_len` is what is enforced; the list of models may promise more.

`context_length` there is the launch flag, null when it was not given. `/model_info` has no window. Builds before
`/server_info` have `/get_server_info` (facts: windows, section 1.5).
"""

from __future__ import annotations

from typing import Any

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, Table, address, lists, root, rows
from agentx.windows.probes.vllm import model_length


def asks(link: Link) -> tuple[Ask, ...]:
    return lists(link), Ask(f"{root(address(link))}/server_info")


def more(link: Link, answers: Answers) -> tuple[Ask, ...]:
    list_ask, info_ask = asks(link)
    return (_older(link),) if _entries(answers.any(list_ask)) and not answers.has(info_ask) else ()


def read(link: Link, answers: Answers) -> Reading | None:
    list_ask, info_ask = asks(link)
    entries = _entries(answers.any(list_ask))
    info, asked = next(
        (
            (table, ask)
            for ask in (info_ask, _older(link))
            if (table := answers.table(ask)) and "max_req_input_len" in table
        ),
        (None, info_ask),
    )
    if info is None and not entries:
        return None
    numbers = Numbers()
    declared = model_length(entries, link.model, numbers)
    if info is None:
        return Reading(
            kind="served", detail="GET /v1/models max_model_len", served=declared, refused=tuple(numbers.refused)
        )
    prompt = numbers.take(f"{asked.shown} max_req_input_len", info.get("max_req_input_len"))
    pool = numbers.take(f"{asked.shown} max_total_num_tokens", info.get("max_total_num_tokens"))
    flag = numbers.take(f"{asked.shown} context_length", info.get("context_length"))
    return Reading(
        kind="served",
        detail=f"{asked.shown} max_req_input_len",
        served=min((number for number in (declared, pool, flag) if number), default=None),
        prompt=prompt,
        refused=tuple(numbers.refused),
    )


def _entries(listed: Any) -> list[Table]:
    return [one for one in rows(listed, "data") if one.get("owned_by") == "sglang"]


def _older(link: Link) -> Ask:
    return Ask(f"{root(address(link))}/get_server_info")


PROBE = Probe("sglang", asks, read, owners=("sglang",), more=more)
