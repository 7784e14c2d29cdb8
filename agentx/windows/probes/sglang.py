"""SGLang: `/server_info` `max_req_input_len` is what is enforced; the list of models may promise more."""

from __future__ import annotations

from agentx.config.links import Link
from agentx.windows.probes.reading import Answers, Ask, Numbers, Probe, Reading, address, lists, root, rows
from agentx.windows.probes.vllm import model_length


def asks(link: Link) -> tuple[Ask, ...]:
    base = root(address(link))
    return lists(link), Ask(f"{base}/server_info"), Ask(f"{base}/get_server_info")


def read(link: Link, answers: Answers) -> Reading | None:
    list_ask, *info_asks = asks(link)
    entries = [one for one in rows(answers.any(list_ask), "data") if one.get("owned_by") == "sglang"]
    info, asked = next(
        ((table, ask) for ask in info_asks if (table := answers.table(ask)) and "max_req_input_len" in table),
        (None, info_asks[0]),
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
    return Reading(
        kind="served",
        detail=f"{asked.shown} max_req_input_len",
        served=min((number for number in (declared, pool) if number), default=None),
        prompt=prompt,
        refused=tuple(numbers.refused),
    )


PROBE = Probe("sglang", asks, read)
