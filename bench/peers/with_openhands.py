# pyright: basic, reportMissingImports=false
# (it runs in an environment of the bench's own, where no type checker looks)
"""An OpenHands conversation for the long job: two tools, and the condenser that the default agent has.

Its tools are classes, found by their names, so they stand in a module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from openhands.sdk import LLM, Agent, Conversation, FallbackStrategy, LLMProfileStore
from openhands.sdk.context.condenser.llm_summarizing_condenser import default_condenser
from openhands.sdk.tool import Action, Observation, Tool, ToolDefinition, ToolExecutor, register_tool


class ReadAction(Action):
    path: str


class WriteAction(Action):
    path: str
    content: str


class FileObservation(Observation):
    pass


class Reads(ToolExecutor):
    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def __call__(self, action: Any, conversation: Any = None) -> FileObservation:
        return FileObservation.from_text(text=(self.workspace / action.path).read_text())


class Writes(Reads):
    def __call__(self, action: Any, conversation: Any = None) -> FileObservation:
        file = self.workspace / action.path
        file.parent.mkdir(exist_ok=True)
        file.write_text(action.content)
        return FileObservation.from_text(text=f"wrote {action.path}")


class ReadFileTool(ToolDefinition[ReadAction, FileObservation]):
    name = "read_file"

    @classmethod
    def create(cls, conv_state: Any = None, **_: Any) -> Any:
        return [_tool(cls, "Read a file of the workspace.", ReadAction, Reads(_workspace(conv_state)))]


class WriteFileTool(ToolDefinition[WriteAction, FileObservation]):
    name = "write_file"

    @classmethod
    def create(cls, conv_state: Any = None, **_: Any) -> Any:
        return [_tool(cls, "Write a file of the workspace.", WriteAction, Writes(_workspace(conv_state)))]


def _tool(made: Any, description: str, action: type[Action], executor: ToolExecutor) -> Any:
    return made(description=description, action_type=action, observation_type=FileObservation, executor=executor)


def _workspace(state: Any) -> Path:
    return Path(state.workspace.working_dir)


def conversation(workspace: Path, links: list[dict[str, Any]], *, model: str, key: str) -> Any:
    """A conversation on the first of *links*; it falls back to the others, each with its own window."""
    llms = [
        LLM(
            model=f"openai/{model}",
            base_url=link["url"],
            api_key=key,
            usage_id=f"agent{number}",
            max_input_tokens=link["window"],
            retry_min_wait=0,  # waits between retries, by default 8 to 64 s each, are no matter of the bench
            retry_max_wait=0,
        )
        for number, link in enumerate(links)
    ]
    if names := [llm.usage_id for llm in llms[1:]]:
        store = LLMProfileStore(base_dir="profiles")
        for llm in llms[1:]:
            store.save(llm.usage_id, llm, include_secrets=True)
        llms[0].fallback_strategy = FallbackStrategy(fallback_llms=names, profile_store_dir="profiles")
    for made in (ReadFileTool, WriteFileTool):
        register_tool(made.name, made)
    agent = Agent(
        llm=llms[0],
        tools=[Tool(name=ReadFileTool.name), Tool(name=WriteFileTool.name)],
        condenser=default_condenser(llms[0].model_copy(update={"usage_id": "condenser"})),
    )
    return Conversation(agent, workspace=str(workspace), visualizer=None)
