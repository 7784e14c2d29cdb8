"""Shipped data is found, and what every command loads stays light."""

from __future__ import annotations

import subprocess
import sys

from agentx.config.resources import shipped


def test_shipped_data_is_found() -> None:
    assert shipped("windows.yaml").is_file()
    assert (shipped("providers") / "openai.yaml").is_file()


def test_paths_and_links_load_without_pydantic_and_yaml() -> None:
    """`agentx ps` needs them, and pydantic costs more than all the rest of it."""
    code = (
        "import sys; import agentx.config.links, agentx.config.paths;"
        "print(sorted({'pydantic', 'pydantic_settings', 'yaml', 'litellm'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_configuration_without_variables_loads_without_pydantic_settings() -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from agentx.config.load import load; from agentx.config.paths import Paths;"
        "gone = Path('/nonexistent'); load(Paths(gone, gone, gone), gone, {});"
        "print(sorted({'pydantic_settings', 'litellm', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
