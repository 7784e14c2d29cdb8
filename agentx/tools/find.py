"""`list_files` and `search`: ripgrep does the work, .gitignore is respected, the output is bounded and sorted."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentx.errors import ToolFailed
from agentx.tools.glob import glob_pattern
from agentx.tools.tool import Arguments, Limits, Result, Spec
from agentx.tools.workspace import Workspace

SECONDS = 120
READ_BYTES = 32_000_000
LONGEST_MATCH = 300
# Hidden files count (`.github`), git's own store does not. A global ignore file of the user says nothing here.
COMMON = ("--hidden", "--glob", "!.git", "--no-require-git", "--no-ignore-global", "--no-config", "--no-messages")

LIST = Spec(
    "list_files",
    "List files by glob: `*.py` (a name, in any folder), `src/**/*.ts`, `*` for all. At most 500; what .gitignore "
    "names is left out.",
    "List files",
    "read",
    {
        "pattern": {"type": "string"},
        "path": {"type": "string", "description": "folder; else the workspace"},
    },
    ("pattern",),
)
SEARCH = Spec(
    "search",
    "Search the text of files for a regular expression (ripgrep syntax). Gives `path:line:text`, at most 200; "
    "what .gitignore names is left out.",
    "Search by regex",
    "read",
    {
        "pattern": {"type": "string"},
        "path": {"type": "string", "description": "file or folder; else the workspace"},
        "glob": {"type": "string", "description": "only in such files: `*.py`"},
    },
    ("pattern",),
)


def find_ripgrep(environ: Mapping[str, str], executable: str) -> Path | None:
    """The system's `rg`, else the one that the ripgrep wheel put beside the Python *executable*."""
    if found := shutil.which("rg", path=environ.get("PATH", "")):
        return Path(found)
    beside = shutil.which("rg", path=str(Path(executable).parent))
    return Path(beside) if beside else None


@dataclass(frozen=True, slots=True)
class Found:
    """What ripgrep printed, whole records only. `cut` says that there was more."""

    output: bytes
    errors: str
    code: int
    cut: bool


class Ripgrep:
    """Runs ripgrep in the workspace."""

    def __init__(self, rg: Path | None, workspace: Workspace) -> None:
        self._rg = rg
        self._workspace = workspace

    async def run(self, arguments: Sequence[str], most: int) -> Found:
        """The output for *arguments*, at most *most* lines of it. Raises ToolFailed when it does not end."""
        if self._rg is None:
            raise ToolFailed("ripgrep (`rg`) is not installed here", hint="use the shell: `find`, `grep -rn`")
        process = await asyncio.create_subprocess_exec(
            str(self._rg),
            *COMMON,
            *arguments,
            cwd=self._workspace.root,
            env={"LC_ALL": "C.UTF-8"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(SECONDS):
                return await self._read(process, most)
        except TimeoutError as error:
            raise ToolFailed(f"no end after {SECONDS} seconds", hint="narrow the path or the glob") from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()

    async def _read(self, process: asyncio.subprocess.Process, most: int) -> Found:
        assert process.stdout is not None
        assert process.stderr is not None
        blocks: list[bytes] = []
        lines = size = 0
        while lines <= most and size <= READ_BYTES and (block := await process.stdout.read(1 << 18)):
            blocks.append(block)
            lines += block.count(b"\n")
            size += len(block)
        output = b"".join(blocks)
        if lines > most or size > READ_BYTES:
            return Found(first_lines(output[:READ_BYTES], most), "", 0, cut=True)
        errors = (await process.stderr.read(4_096)).decode("utf-8", "replace")
        return Found(output, errors, await process.wait(), cut=False)


def first_lines(output: bytes, most: int) -> bytes:
    """The first *most* whole lines of *output*."""
    whole = output[: output.rfind(b"\n") + 1]
    return b"\n".join(whole.split(b"\n", most)[:most])


class ListFiles:
    def __init__(self, workspace: Workspace, rg: Ripgrep, limits: Limits) -> None:
        self.spec = LIST
        self._workspace = workspace
        self._rg = rg
        self._limits = limits

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        pattern, base = str(arguments["pattern"]).strip(), folder(self._workspace, arguments)
        # A folder in place of a pattern can only mean what is in it.
        if not set(pattern) & set("*?[{") and pattern.strip("/"):
            inner = self._workspace.path(str(base / pattern))
            if inner.is_dir():
                base, pattern = inner, "**"
        fits = glob_pattern(pattern or "**")
        found = await self._rg.run(["--files", "--", where(self._workspace, base)], 1_000_000)
        names = [relative(line) for line in found.output.split(b"\n") if line]
        start = inner_start(self._workspace, base)
        kept = sorted(name for name in names if fits.fullmatch(name[start:]))
        if not kept:
            there = f"{len(names):,} other files are there" if names else "it holds no files"
            return answer(f"no file in `{self._workspace.name(base)}` fits `{pattern}` ({there})")
        shown = kept[: self._limits.listed]
        if len(kept) > len(shown):
            shown.append(f"[{len(kept) - len(shown):,} more files; narrow the pattern or the path]")
        return answer("\n".join(shown))


class Search:
    def __init__(self, workspace: Workspace, rg: Ripgrep, limits: Limits) -> None:
        self.spec = SEARCH
        self._workspace = workspace
        self._rg = rg
        self._limits = limits

    async def run(self, arguments: Arguments, call_id: str) -> Result:
        pattern, glob = str(arguments["pattern"]), str(arguments.get("glob") or "")
        if not pattern:
            raise ToolFailed("`pattern` is empty")
        target = self._workspace.path(arguments.get("path") or ".")
        if not target.exists():
            self._workspace.file(arguments["path"])  # says what is close
        found, note = await self._matches(pattern, glob, target)
        fits = glob_pattern(glob) if glob else None
        start = inner_start(self._workspace, target if target.is_dir() else target.parent)
        lines: list[tuple[str, int, str]] = []
        for record in found.output.split(b"\n"):
            raw, _, rest = record.partition(b"\0")
            number, _, text = rest.decode("utf-8", "replace").partition(":")
            name = relative(raw)
            if number.isdigit() and (fits is None or fits.fullmatch(name[start:])):
                lines.append((name, int(number), text.rstrip("\r")))
        if not lines:
            place = f"`{self._workspace.name(target)}`" + (f", files `{glob}`" if glob else "")
            return answer(f"{note}no match for `{pattern}` in {place}")
        lines.sort()
        shown = [f"{name}:{number}:{text}" for name, number, text in lines[: self._limits.matches]]
        if found.cut or len(lines) > len(shown):
            total = f"more than {len(lines):,}" if found.cut else f"{len(lines):,}"
            shown.append(f"[{len(shown):,} of {total} matching lines; narrow the pattern, the path or the glob]")
        return answer(note + "\n".join(shown))

    async def _matches(self, pattern: str, glob: str, target: Path) -> tuple[Found, str]:
        """What matches; a pattern that is no regular expression is searched as plain text, and that is said."""
        arguments = ["--null", "--line-number", "--with-filename", "--no-heading", "--color", "never"]
        arguments += ["--max-columns", str(LONGEST_MATCH), "--max-columns-preview"]
        name = glob.removeprefix("**/")
        if name and "/" not in name:  # a glob of ripgrep overrides .gitignore; a type does not
            arguments += ["--type-add", f"agentx:{name}", "--type", "agentx"]
        end = ["-e", pattern, "--", where(self._workspace, target)]
        found = await self._run([*arguments, *end])
        if found.code == 2 and "regex" in found.errors:
            found = await self._run([*arguments, "--fixed-strings", *end])
            note = "[the pattern is no regular expression: it was searched as plain text]\n"
        else:
            note = ""
        if found.code == 2 and not found.output:
            lines = found.errors.strip().splitlines() or ["some files could not be read"]
            raise ToolFailed(f"the search failed: {lines[-1]}")
        return found, note

    async def _run(self, arguments: list[str]) -> Found:
        most = 500 * self._limits.matches
        found = await self._rg.run(arguments, most)
        if found.cut:  # which lines came first is chance: the same call shall give the same lines
            found = await self._rg.run(["--sort", "path", *arguments], most)
        return found


def folder(workspace: Workspace, arguments: Arguments) -> Path:
    """The folder that `path` names; the workspace when it names none."""
    text = arguments.get("path") or "."
    path = workspace.path(text)
    if not path.is_dir():
        workspace.file(text)  # raises for what is not there
        raise ToolFailed(f"`{text}` is a file, not a folder")
    return path


def where(workspace: Workspace, path: Path) -> str:
    """*path* for ripgrep, which runs in the workspace."""
    name = workspace.name(path)
    return name if name == "." else f"./{name}"


def relative(name: bytes) -> str:
    """A name that ripgrep printed, relative to the workspace."""
    return name.decode("utf-8", "replace").removeprefix("./")


def inner_start(workspace: Workspace, base: Path) -> int:
    """Where, in a name relative to the workspace, the part within *base* begins."""
    name = workspace.name(base)
    return 0 if name == "." else len(name) + 1


def answer(text: str) -> Result:
    return Result(text, True, size=len(text.encode("utf-8", "replace")))
