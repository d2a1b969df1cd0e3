"""Facts about a language model's answers and probabilities, on a tiny one with random weights."""

import numpy as np
import pytest

from aboveboard.core import InputError, Reference
from aboveboard.data import LanguageModel

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXTS = ["the rain in spain stays mainly in the plain", "how now brown cow", "is it likely or is it not"]


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    """Return a Llama of two layers whose tokens are bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = ["<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bytes_ = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    bytes_.pre_tokenizer, bytes_.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_, eos_token="<end>")
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}[assistant] {% endif %}"
    )
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(letters),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.5,
        eos_token_id=0,
        bos_token_id=None,
        pad_token_id=None,
    )
    return LanguageModel(
        name="tiny",
        title="Tiny",
        model=LlamaForCausalLM(config).eval(),
        tokenizer=tokenizer,
        quantised=False,
        provenance="Random weights.",
        reference=Reference(title="None"),
        licence="none",
        revision="",
        sha256="",
        caveats=(),
    )


def _scored_one_by_one(tiny: LanguageModel, prompt: str, continuation: str) -> float:
    """Read prompt and continuation as one text, without padding, cache or batch."""
    head, tail = (tiny.tokenizer(text)["input_ids"] for text in (prompt, continuation))
    with torch.inference_mode():
        logits = tiny.model(torch.tensor([head + tail])).logits[0].double()
    scores = torch.log_softmax(logits, dim=-1)
    return sum(float(scores[len(head) + i - 1, token]) for i, token in enumerate(tail))


@pytest.mark.parametrize("batch_size", [1, 2, 8])
@pytest.mark.parametrize("continuations", [["a", "b"], [" yes", " certainly not", "x", " maybe"]])
def test_log_probabilities_are_those_of_each_text_read_alone(tiny, batch_size, continuations):
    found, n_tokens = tiny.log_probabilities(TEXTS, continuations, batch_size=batch_size)
    alone = [[_scored_one_by_one(tiny, prompt, text) for text in continuations] for prompt in TEXTS]
    assert found == pytest.approx(np.array(alone), abs=1e-4)
    assert n_tokens.tolist() == [len(text) for text in continuations]


def test_the_probabilities_of_all_single_tokens_sum_to_one(tiny):
    letters = [chr(code) for code in range(33, 127)]
    found, _ = tiny.log_probabilities(TEXTS[:1], letters)
    with torch.inference_mode():
        ids = torch.tensor([tiny.tokenizer(TEXTS[0])["input_ids"]])
        shares = torch.softmax(tiny.model(ids).logits[0, -1].double(), dim=-1)
    others = 1 - sum(float(shares[tiny.tokenizer(letter)["input_ids"][0]]) for letter in letters)
    assert np.exp(found).sum() + others == pytest.approx(1, abs=1e-5)


def test_an_answer_s_log_probability_is_that_of_reading_it_back(tiny):
    for answers, prompt in zip(tiny.generate(TEXTS, max_new_tokens=6, n_samples=3, random_state=0), TEXTS):
        for answer in answers:
            if not answer.finished and answer.text.isascii() and len(answer.text) == answer.n_tokens:
                assert answer.log_probability == pytest.approx(_scored_one_by_one(tiny, prompt, answer.text), abs=1e-4)


def test_the_greedy_answer_takes_the_most_probable_token_each_time(tiny):
    ((answer,),) = tiny.generate(TEXTS[:1], max_new_tokens=5, temperature=0)
    ids = tiny.tokenizer(TEXTS[0])["input_ids"]
    for _ in range(5):
        with torch.inference_mode():
            ids.append(int(tiny.model(torch.tensor([ids])).logits[0, -1].argmax()))
    assert answer.text == tiny.tokenizer.decode(ids[-5:], skip_special_tokens=True)


def test_the_same_seed_gives_the_same_answers_and_leaves_the_global_state_alone(tiny):
    before = torch.random.get_rng_state()
    first, again, other = (tiny.generate(TEXTS, n_samples=4, max_new_tokens=8, random_state=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert torch.equal(torch.random.get_rng_state(), before)
    assert [len(answers) for answers in first] == [4, 4, 4]


def test_samples_follow_the_model_s_own_probabilities(tiny):
    prompt, n = TEXTS[1], 4000
    (answers,) = tiny.generate([prompt], n_samples=n, max_new_tokens=1, batch_size=1000, random_state=0)
    with torch.inference_mode():
        shares = torch.softmax(tiny.model(torch.tensor([tiny.tokenizer(prompt)["input_ids"]])).logits[0, -1], dim=-1)
    printable = tiny.tokenizer.convert_tokens_to_ids([chr(code) for code in range(33, 127)])
    likeliest = max(printable, key=lambda token: shares[token])
    drawn = sum(answer.text == tiny.tokenizer.decode([likeliest]) for answer in answers)
    p = float(shares[likeliest])
    assert abs(drawn - n * p) < 4 * np.sqrt(n * p * (1 - p))


def test_a_conversation_is_put_into_the_form_of_the_chat_template(tiny):
    assert tiny.prompt("Is it?") == "[user] Is it?\n[assistant] "
    conversation = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it?"}]
    assert tiny.prompt(conversation) == "[system] Be brief.\n[user] Is it?\n[assistant] "


def test_the_printed_form_names_the_model_and_its_size(tiny):
    assert "LanguageModel tiny: Tiny" in repr(tiny)
    assert f"{tiny.model.num_parameters():,} weights, on cpu" in repr(tiny)


@pytest.mark.parametrize("prompts", ["one text", [], [""], [None], [3]])
def test_what_are_no_texts_is_refused(tiny, prompts):
    for ask in (tiny.generate, lambda texts: tiny.log_probabilities(texts, ["a"])):
        with pytest.raises(InputError, match="a list of texts"):
            ask(prompts)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n_samples": 0}, "n_samples is 0"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"temperature": -1}, "temperature is -1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0}, "top_p is 0"),
        ({"temperature": 0, "n_samples": 2}, "all are the same"),
        ({"max_new_tokens": 126}, "leaves no room for 126"),
    ],
)
def test_options_out_of_range_are_refused_before_work_starts(tiny, options, says):
    with pytest.raises(InputError, match=says):
        tiny.generate(["how now"], **options)
