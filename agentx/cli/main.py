"""The program `agentx`: finds the command, loads only that, and is the one place that prints errors and exits."""

from __future__ import annotations

import errno
import importlib
import json
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from agentx import __version__
from agentx.cli.output import clean, mute
from agentx.cli.session import Session
from agentx.errors import AgentxError, UsageError

COMMANDS = {
    # name: (module, one line of help)
    "run": ("run", "Run a task to its end, here or detached."),
    "ps": ("ps", "List jobs and what they are doing."),
    "show": ("ps", "Show one job: model in use, context, cost, ending."),
    "logs": ("story", "Tell what happened in a job, line by line."),
    "events": ("story", "Print a job's events as JSON lines."),
    "context": ("context", "Show what a job's context holds and when it will be compacted."),
    "compact": ("compact", "Compact a job's context now."),
    "send": ("control", "Say something to a job; it is delivered at its next turn."),
    "stop": ("control", "Stop a job after its current step."),
    "resume": ("control", "Go on with a job where it stopped."),
    "windows": ("windows", "Show how many tokens each model holds, and how we know."),
    "chain": ("chain", "Show the links of a chain: keys, health, who rests until when."),
    "config": ("config", "Show and check the settings, with file and line of origin."),
    "local": ("local", "Get a small model of one's own."),
    "demo": ("demo", "Show a night in fast motion: failing links, a cut conversation, a finished task."),
    "doctor": ("doctor", "Say what is wrong, and the command that mends it."),
}

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""What writing to stdout fails with when the disk behind it is full or gone."""


class LazyCommands(click.Group):
    """Commands are imported when they are called: `agentx --help` needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f"did you mean `agentx {near[0]}`?" if near else "`agentx --help` lists the commands"
            raise UsageError(f"no such command `{cmd_name}`", hint=hint)
        module = importlib.import_module(f"agentx.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="agentx", message="%(prog)s %(version)s")
@click.option("-C", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Work as if started in DIR.")
@click.option(
    "-c", "overrides", multiple=True, metavar="KEY=VALUE", help="Set one setting, e.g. -c limits.turns=50."
)
@click.pass_context
def cli(context: click.Context, folder: Path | None, overrides: tuple[str, ...]) -> None:
    """Run long agent tasks unattended, on a chain of models that fall back one to the next."""
    try:
        cwd = (folder or Path()).absolute()
    except FileNotFoundError as error:
        raise UsageError("the current folder is not there any more", hint="`cd` to one that is") from error
    if not cwd.is_dir():
        raise UsageError(f"{folder}: is not a folder")
    context.obj = Session(os.environ, cwd, overrides)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _stand_in_for_closed_streams()
    sys.exit(_run(arguments))


def _stand_in_for_closed_streams() -> None:
    """Streams that the caller closed (`2>&-`) lead nowhere: else the next file would be opened in their place."""
    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(null)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _run(arguments: list[str]) -> int:
    """The exit code of the command; every error is printed here, as text or (with `--json`) as an object."""
    as_json, out = "--json" in arguments, sys.stdout
    try:
        if any(not _is_text(argument) for argument in arguments):
            raise UsageError("an argument is not UTF-8 text")
        code = cli.main(args=arguments, prog_name="agentx", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except AgentxError as error:
        return _fail(error.kind, error.message, error.hint, error.exit_code, as_json)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stdout.write(error.format_message() + "\n")
        return 2
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "agentx"
        hint = f"`{where} --help` shows how"
        if isinstance(error, click.NoSuchOption) and error.option_name == "--json" and where == "agentx":
            command = next((word for word in arguments if word in COMMANDS), "ps")
            hint = f"`--json` stands after the command: `agentx {command} --json`"
        elif isinstance(error, click.NoSuchOption) and error.option_name in ("-c", "-C"):
            hint = f"`{error.option_name}` stands before the command: `agentx {error.option_name} ... {where[7:]}`"
        return _fail("usage", error.format_message(), hint, 2, as_json)
    except click.ClickException as error:
        return _fail("usage", error.format_message(), None, 2, as_json)
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _fail("interrupted", "interrupted", None, 130, as_json)
    except BrokenPipeError:  # `agentx logs JOB | head`
        mute(sys.stdout)
        return 0
    except SystemExit as ended:  # click's way out of a shell's completion, and when nobody reads any more
        if sys.stdout is not out:  # it wraps the streams that nobody reads
            mute(out)
            return 0
        return ended.code if isinstance(ended.code, int) else 0
    except Exception as error:  # noqa: BLE001  the last door: a person gets one line, never a traceback
        if isinstance(error, OSError) and error.filename is None and error.errno in UNWRITABLE:
            mute(sys.stdout)
            return _fail("output", f"the output cannot be written: {error.strerror}", None, 1, as_json)
        if os.environ.get("AGENTX_DEBUG"):
            import traceback

            traceback.print_exc()
        hint = "`AGENTX_DEBUG=1` shows where; please report it"
        return _fail("internal", f"internal error: {type(error).__name__}: {error}", hint, 1, as_json)


def _is_text(argument: str) -> bool:
    """Whether *argument* can be written down: bytes that are no UTF-8 come as half characters."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fail(kind: str, message: str, hint: str | None, code: int, as_json: bool) -> int:
    if as_json:
        body = {"kind": kind, "message": message, "hint": hint, "exit": code}
        sys.stdout.write(json.dumps({"error": body}, ensure_ascii=False) + "\n")
        return code
    lines = [f"error: {line}" for line in clean(message).splitlines()[:1]]
    lines += [f"  {line}" if kind != "config" else f"error: {line}" for line in clean(message).splitlines()[1:]]
    lines += ["", *(f"hint: {line}" for line in clean(hint).splitlines())] if hint else []
    sys.stderr.write("\n".join(lines) + "\n")
    return code
