# pyright: basic, reportMissingImports=false, reportArgumentType=false
# (the peers live in an environment of the bench's own, where no type checker looks)
"""One client of `bench/chain.py`, in a process of its own: does what it is told, says how long each call took.

`worker.py CLIENT SERVER REFUSED`. Each line of stdin is `{"case": ..., "messages": n, "times": n}`; each line of
stdout is a list of pairs: milliseconds by the clock, and of this process's own work. Before each measured batch
one call is made that is not measured. With each call the history has two new messages at its end, as an agent's.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

Case = Literal["healthy", "429", "refused", "resting", "direct", "json"]
Call = Callable[[], Awaitable[object]]
Say = tuple[str, str]
"""Role and text."""

TEXT = "word " * 260


def history(count: int, turn: int) -> list[Say]:
    """*count* messages, of which the last two are those of *turn*."""
    roles = ("user", "assistant")
    old = [(roles[n % 2], f"{n} {TEXT}") for n in range(count - 2)]
    return [*old, *((roles[n % 2], f"{n} {turn} {TEXT}") for n in range(count - 2, count))]


class Client:
    """`prepare` makes the call of one case, with everything made that need not be made for each call."""

    def __init__(self, server: str, refused: str) -> None:
        self.good = f"{server}/v1"
        self.first = {"healthy": self.good, "429": f"{server}/429/v1", "refused": refused}
        self.first |= {"resting": self.first["429"], "direct": self.good, "json": self.good}

    def prepare(self, case: Case, count: int) -> Callable[[int], Call]:
        raise NotImplementedError


class Bare(Client):
    """httpx alone: a body of ready bytes is posted and the JSON answer read. `json`: the body is rendered, too."""

    def __init__(self, server: str, refused: str) -> None:
        import httpx

        super().__init__(server, refused)
        self.client = httpx.AsyncClient()

    def prepare(self, case: Case, count: int) -> Callable[[int], Call]:
        url = f"{self.first[case]}/chat/completions"

        def call(turn: int) -> Call:
            body = {"model": "m", "messages": [{"role": r, "content": t} for r, t in history(count, turn)]}
            ready = json.dumps(body).encode()

            async def ask() -> object:
                sent: dict[str, Any] = {"json": body} if case == "json" else {"content": ready}
                response = await self.client.post(
                    url, headers={"authorization": "Bearer k", "content-type": "application/json"}, **sent
                )
                return response.json()["choices"][0]["message"]["content"]

            return ask

        return call


class Agentx(Client):
    """The chain of two links with its health in a file, or (`direct`) the wire of the second link alone."""

    def __init__(self, server: str, refused: str) -> None:
        from agentx.chain import Chain
        from agentx.chain.health import Health
        from agentx.config.links import Link, Provider
        from agentx.wires.make import Wires, client
        from agentx.wires.messages import Message, Request, Timers

        super().__init__(server, refused)
        self.folder = tempfile.TemporaryDirectory()
        self.health = Health(Path(self.folder.name) / "health.db", environ={})
        self.client = client()
        self.Message, self.Request, self.timers, self.Chain = Message, Request, Timers(), Chain
        environ = {"KEY": "k"}
        self.link = lambda name, url: Link(
            provider=Provider(name=name, card="x", wire="openai", base_url=url, api_key_env="KEY"),
            model="m",
            name=name,
        )
        self.wires = Wires(self.client, environ).of

    def prepare(self, case: Case, count: int) -> Callable[[int], Call]:
        first, second = self.link("first", self.first[case]), self.link("second", self.good)
        chain = self.Chain((first, second), wires=self.wires, health=self.health)
        old = [self.Message(role=role, text=text) for role, text in history(count, 0)[:-2]]

        def call(turn: int) -> Call:
            new = [self.Message(role=role, text=text) for role, text in history(count, turn)[-2:]]
            request = self.Request(model="m", messages=(*old, *new))
            if case == "direct":
                return lambda: self.wires(second).ask(request, self.timers)
            self.health.forget(first)
            if case == "resting":
                self.health.rest(first, time.time() + 60, "rate_limit", "measured")

            async def prepare(*_: object) -> object:
                return request

            return lambda: chain.ask(prepare)

        return call


class Router(Client):
    """litellm.Router with one fallback. `retries` None: as it comes."""

    def __init__(self, server: str, refused: str, retries: int | None = None) -> None:
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        import litellm

        super().__init__(server, refused)
        litellm.suppress_debug_info = True
        self.litellm, self.retries = litellm, retries

    def prepare(self, case: Case, count: int) -> Callable[[int], Call]:
        def deployment(name: str, url: str) -> dict[str, Any]:
            return {
                "model_name": name,
                "litellm_params": {"model": "openai/m", "api_base": url, "api_key": "k"},
            }

        options: dict[str, Any] = {} if self.retries is None else {"num_retries": self.retries}
        router = self.litellm.Router(
            model_list=[deployment("first", self.first[case]), deployment("second", self.good)],
            fallbacks=[{"first": ["second"]}],
            **options,
        )

        def call(turn: int) -> Call:
            messages = [{"role": role, "content": text} for role, text in history(count, turn)]
            return lambda: router.acompletion(model="first", messages=messages)

        return call


class PydanticAI(Client):
    """FallbackModel of two OpenAI models."""

    def __init__(self, server: str, refused: str, retries: int | None = None) -> None:
        import pydantic_ai.messages as said
        from openai import AsyncOpenAI
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.models.fallback import FallbackModel
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        super().__init__(server, refused)
        options: dict[str, Any] = {} if retries is None else {"max_retries": retries}
        self.model = lambda url: OpenAIChatModel(
            "m", provider=OpenAIProvider(openai_client=AsyncOpenAI(base_url=url, api_key="k", **options))
        )
        self.said, self.Fallback, self.Parameters = said, FallbackModel, ModelRequestParameters

    def prepare(self, case: Case, count: int) -> Callable[[int], Call]:
        model, said = self.Fallback(self.model(self.first[case]), self.model(self.good)), self.said

        def call(turn: int) -> Call:
            messages = [
                said.ModelRequest(parts=[said.UserPromptPart(content=text)])
                if role == "user"
                else said.ModelResponse(parts=[said.TextPart(content=text)])
                for role, text in history(count, turn)
            ]
            return lambda: model.request(messages, None, self.Parameters())

        return call


class LangChain(Client):
    """`with_fallbacks` of two ChatOpenAI."""

    def __init__(self, server: str, refused: str, retries: int | None = None) -> None:
        from langchain_core.messages import AIMessage, HumanMessage
        from langchain_openai import ChatOpenAI

        super().__init__(server, refused)
        options: dict[str, Any] = {} if retries is None else {"max_retries": retries}
        self.model = lambda url: ChatOpenAI(model="m", base_url=url, api_key="k", **options)
        self.kinds = {"user": HumanMessage, "assistant": AIMessage}

    def prepare(self, case: Case, count: int) -> Callable[[int], Call]:
        model = self.model(self.first[case]).with_fallbacks([self.model(self.good)])

        def call(turn: int) -> Call:
            messages = [self.kinds[role](content=text) for role, text in history(count, turn)]
            return lambda: model.ainvoke(messages)

        return call


CLIENTS: dict[str, Callable[[str, str], Client]] = {
    "httpx": Bare,
    "agentx": Agentx,
    "litellm": Router,
    "litellm, retries off": lambda server, refused: Router(server, refused, 0),
    "pydantic-ai": PydanticAI,
    "pydantic-ai, retries off": lambda server, refused: PydanticAI(server, refused, 0),
    "langchain": LangChain,
    "langchain, retries off": lambda server, refused: LangChain(server, refused, 0),
}


async def measured(call: Callable[[int], Call], times: int) -> list[tuple[float, float]]:
    taken: list[tuple[float, float]] = []
    for turn in range(times + 1):
        ask = call(turn)
        start, worked = time.perf_counter(), time.process_time()
        await ask()
        taken.append(((time.perf_counter() - start) * 1000, (time.process_time() - worked) * 1000))
    return taken[1:]


async def main() -> None:
    name, server, refused = sys.argv[1:]
    client = CLIENTS[name](server, refused)
    print("ready", flush=True)
    prepared = functools.cache(client.prepare)
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        taken = await measured(prepared(order["case"], order["messages"]), order["times"])
        print(json.dumps(taken), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
