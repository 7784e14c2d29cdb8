"""`AGENTX_...` variables as a layer of settings; `__` stands between the keys: `AGENTX_LIMITS__COST=5`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, get_origin

from pydantic import BaseModel

from agentx.config.layers import Layer
from agentx.config.problems import nearest, shape_at
from agentx.config.settings import Settings
from agentx.config.yamlfile import Location, parse_value
from agentx.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_settings import BaseSettings

PREFIX = "AGENTX_"
SPECIAL: Mapping[str, str] = {
    "AGENTX_HOME": "The folder that holds config, state and cache.",
    "AGENTX_DEBUG": "Show tracebacks when it is 1.",
    "AGENTX_LOCAL_MODEL": "The model file (GGUF) of the card `local`.",
    "AGENTX_LOCAL_SERVER": "The `llama-server` of the card `local`.",
}


@dataclass(frozen=True, slots=True)
class Environment:
    layer: Layer
    warnings: tuple[str, ...]


def read_environment(environ: Mapping[str, str]) -> Environment:
    """The settings in *environ*; a variable that means nothing is a warning with the nearest name.

    Raises ConfigError for a list or table that is not YAML (JSON is YAML too). An empty variable is not set.
    """
    ours = {name: value for name, value in environ.items() if name.startswith(PREFIX) and name not in SPECIAL}
    known = {name: value for name, value in ours.items() if meaning(name)}
    names = {name: segments(name) for name in known if known[name]}

    def where(at: Location, _key: bool) -> str:
        fits = [name for name, path in names.items() if at[: len(path)] == path or path[: len(at)] == at]
        return max(fits, key=lambda name: len(names[name]), default="environment")

    data = from_pydantic(known) if names else {}
    return Environment(Layer(data, where), tuple(unknown(name) for name in sorted(set(ours) - set(known))))


def from_pydantic(variables: Mapping[str, str]) -> dict[str, Any]:
    from pydantic_settings import EnvSettingsSource  # 100 ms, spared where no variable is set

    for name, value in variables.items():
        if not scalar(shape_at(Settings, segments(name))):
            check_value(value, name)

    class Source(EnvSettingsSource):
        """Reads the given variables, and lists and tables as YAML."""

        def _load_env_vars(self) -> Mapping[str, str | None]:
            return {name.lower(): value for name, value in variables.items() if value}

        def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
            return parse_value(value, field_name)

    # The source reads fields and config of the class only; `BaseSettings` itself would read the process's own
    # environment whenever a Settings is made.
    source = Source(cast("type[BaseSettings]", Settings), env_prefix=PREFIX, env_nested_delimiter="__")
    return {key: nulled(value) for key, value in source().items()}


def nulled(value: Any) -> Any:
    """*value* with the word `null`, wherever it stands alone, as null: a variable can hold nothing but text."""
    if isinstance(value, dict):
        return {key: nulled(item) for key, item in cast("dict[str, Any]", value).items()}
    return None if value == "null" else value


def check_value(value: str, name: str) -> None:
    """Raises ConfigError, with the variable's name, when *value* cannot be read."""
    try:
        parse_value(value, name)
    except ConfigError as error:
        hint = f"lists and tables are written as in a file, for example {name}='[a, b]'"
        raise ConfigError([Problem(problem.where, problem.what, hint) for problem in error.problems]) from error


def segments(name: str) -> tuple[str, ...]:
    """The keys that a variable names; the environment knows no small letters, so all are small."""
    return tuple(name.removeprefix(PREFIX).lower().split("__"))


def meaning(name: str) -> bool:
    """Whether *name* names a setting; in free tables (`options`, `headers`) every key is one."""
    path = segments(name)
    return all(path) and shape_at(Settings, path) is not None


def unknown(name: str) -> str:
    close = nearest(name, [*SPECIAL, *(variable for variable, _ in variables())])
    return f"the variable {name} means nothing here" + (f"; did you mean {close}?" if close else "")


def variables(model: type[BaseModel] = Settings, prefix: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Every variable that is a setting, with a sentence on it; NAME stands for a name of one's own."""
    for name, field in model.model_fields.items():
        path = (*prefix, name)
        shape = shape_at(model, (name,))
        if get_origin(shape) is dict and (inner := table_type(shape_at(shape, ("NAME",)))):
            yield from variables(inner, (*path, "NAME"))
        elif inner := table_type(shape):
            yield from variables(inner, path)
        else:
            own = "NAME" if get_origin(shape) is dict else None
            yield PREFIX + "__".join(p if p == own else p.upper() for p in path), field.description or ""


def table_type(shape: Any) -> type[BaseModel] | None:
    return shape if isinstance(shape, type) and issubclass(shape, BaseModel) else None


def scalar(shape: Any) -> bool:
    return table_type(shape) is None and get_origin(shape) not in (dict, list)
