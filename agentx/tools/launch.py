"""How a command is started, as values: the argument list, the environment and the folder.

A sandbox changes what these functions give and nothing else.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "_AGENTX_CALL"
"""Every process of a command inherits it, so that those which left the group are found too."""

ALLOWED = frozenset({
    "CARGO_HOME", "CONDA_PREFIX", "GOPATH", "GOROOT", "HOME", "HTTPS_PROXY", "HTTP_PROXY", "JAVA_HOME",
    "LANG", "LANGUAGE", "LOGNAME", "NO_PROXY", "NVM_DIR", "PATH", "PYENV_ROOT", "REQUESTS_CA_BUNDLE",
    "RUSTUP_HOME", "SHELL", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "http_proxy", "https_proxy", "no_proxy",
})  # fmt: skip
"""What a command may know of the environment: no variable that usually holds a key."""

NOBODY_THERE = {
    "CI": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "EDITOR": "true",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_TERMINAL_PROMPT": "0",
    "MANPAGER": "cat",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "PIP_NO_INPUT": "1",
    "SYSTEMD_PAGER": "cat",
    "TERM": "dumb",
    "VISUAL": "true",
}
"""Keeps programs from asking, paging and opening an editor: each of these hung a run without it."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


def command_env(environ: Mapping[str, str], secrets: Sequence[str]) -> dict[str, str]:
    """The environment of a command: what is allowed of *environ*, without any value that holds a secret."""
    held = [secret for secret in secrets if secret]
    kept = {
        name: value
        for name, value in environ.items()
        if (name in ALLOWED or name.startswith("LC_")) and not any(secret in value for secret in held)
    }
    # The address of a proxy may hold a password.
    kept = {name: value for name, value in kept.items() if not (name.lower().endswith("_proxy") and "@" in value)}
    kept.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    kept.setdefault("LANG", "C.UTF-8")
    return kept | NOBODY_THERE


def find_shell(environ: Mapping[str, str]) -> str:
    """The shell that commands are written for: bash where there is one."""
    return shutil.which("bash", path=environ.get("PATH", "/usr/bin:/bin")) or "/bin/sh"


def launch(command: str, workspace: Path, env: Mapping[str, str], shell: str, mark: str) -> Launch:
    """How *command* is started: no login, no startup files, nothing but *env*."""
    return Launch((shell, "-c", command), {**env, MARK: mark}, workspace)
