"""A small language model in memory, with where it comes from: ask it, sample from it, and read its probabilities."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from aboveboard.core.errors import InputError
from aboveboard.core.extras import require

if TYPE_CHECKING:
    from aboveboard.core.reference import Reference

__all__ = ["Generation", "LanguageModel"]


@dataclass(frozen=True, slots=True)
class Generation:
    """One answer that was generated.

    Parameters
    ----------
    text : str
        Without special tokens.
    log_probability : float
        Sum over its tokens, the end token included, of the model's own log-probabilities (nats), whatever the
        temperature it was sampled at.
    n_tokens : int
        How many tokens, the end token included.
    finished : bool
        Whether the model ended it; False where `max_new_tokens` cut it off.
    """

    text: str
    log_probability: float
    n_tokens: int
    finished: bool


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LanguageModel:
    """A Hugging Face model and its tokenizer, with provenance, licence and caveats.

    Parameters
    ----------
    name, title : str
    model : transformers.PreTrainedModel
        A causal language model in evaluation mode.
    tokenizer : transformers.PreTrainedTokenizerBase
        With a chat template where `prompt` is to be used.
    quantised : bool
        Whether the weights were rounded to a few bits before they were loaded; such a model refuses to be trained or
        saved.
    provenance, reference, licence, revision, sha256, caveats
        Where it comes from; `sha256` is that of the file that was read, empty where only the revision is known.

    Notes
    -----
    The model runs where it lies: move it with ``language_model.model.to("cuda")``. Nothing here trains it.
    """

    name: str
    title: str
    model: Any
    tokenizer: Any
    quantised: bool
    provenance: str
    reference: Reference
    licence: str
    revision: str
    sha256: str
    caveats: tuple[str, ...]

    def __repr__(self) -> str:
        weights = f"{self.model.num_parameters():,} weights" + (", quantised" if self.quantised else "")
        return (
            f"LanguageModel {self.name}: {self.title}\n  {weights}, on {self.model.device}\n"
            f"  licence: {self.licence}; {len(self.caveats)} caveats, see .caveats"
        )

    def prompt(self, messages: str | Sequence[Mapping[str, str]]) -> str:
        """Return the text that asks the model, in the form that it was trained on, up to where its answer begins.

        Parameters
        ----------
        messages : str, or sequence of mappings
            What the user says; or the whole conversation, each message with ``role`` and ``content``.
        """
        conversation = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
        text: str = self.tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
        return text

    def generate(
        self,
        prompts: Sequence[str],
        *,
        n_samples: int = 1,
        max_new_tokens: int = 64,
        temperature: float = 1.0,
        top_p: float = 1.0,
        batch_size: int = 16,
        random_state: Any = None,
    ) -> list[list[Generation]]:
        """Continue each prompt.

        Parameters
        ----------
        prompts : sequence of str
            Taken as they are: see `prompt` for the form of a chat.
        n_samples : int
            How many independent answers to each.
        max_new_tokens : int
            The longest answer.
        temperature : float
            0 takes the most probable token each time; 1 samples from the model itself.
        top_p : float in (0, 1]
            Sample among the most probable tokens that together have this probability.
        batch_size : int
            How many answers are generated at once.
        random_state : int, RandomState or None
            Same seed, same prompts and batch size, same machine: same answers.

        Returns
        -------
        list of list of Generation
            For each prompt its `n_samples` answers.

        Raises
        ------
        aboveboard.core.InputError
            For an empty prompt, a number out of range, or a prompt that does not fit the model with its answer.

        Notes
        -----
        Memory grows with batch size x answer length x vocabulary: 4 bytes each.
        """
        torch = require("torch", extra="llm", feature="LanguageModel.generate")
        _check_sampling(n_samples, max_new_tokens, temperature, top_p, batch_size)
        encoded = [self._tokens(prompt, room=max_new_tokens) for prompt in _texts(prompts)]
        sampled = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0}
        how = sampled if temperature > 0 else {"do_sample": False}
        answers: list[Generation] = []
        with torch.inference_mode(), torch.random.fork_rng(devices=self._forked_devices()):
            torch.manual_seed(check_random_state(random_state).randint(2**31 - 1))
            for batch in _batches([tokens for tokens in encoded for _ in range(n_samples)], batch_size):
                ids, mask = self._left_padded(batch)
                done = self.model.generate(
                    input_ids=ids,
                    attention_mask=mask,
                    max_new_tokens=max_new_tokens,
                    pad_token_id=self._padding,
                    eos_token_id=self.tokenizer.eos_token_id,
                    return_dict_in_generate=True,
                    output_logits=True,
                    **how,
                )
                answers += self._generations(done.sequences[:, ids.shape[1] :], done.logits)
        return [answers[start : start + n_samples] for start in range(0, len(answers), n_samples)]

    def log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str], *, batch_size: int = 8
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how probable each continuation is after each prompt.

        Parameters
        ----------
        prompts : sequence of str, length n
            Taken as they are: see `prompt` for the form of a chat.
        continuations : sequence of str, length K
            The same for every prompt. Each is turned into tokens by itself, so one that continues a line begins with
            its space.
        batch_size : int
            How many prompts are read at once.

        Returns
        -------
        log_probability : ndarray of shape (n, K)
            Sum over the tokens of the continuation, in nats. The end of the answer is not among them.
        n_tokens : ndarray of shape (K,), int64
            So that ``exp(-log_probability / n_tokens)`` is the perplexity.

        Notes
        -----
        A prompt is read once for all its continuations: O(n (prompt length + K x continuation length)) tokens.
        """
        torch = require("torch", extra="llm", feature="LanguageModel.log_probabilities")
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}", expected="1 or more")
        tails = [self._tokens(text) for text in _texts(continuations)]
        longest = max(map(len, tails))
        encoded = [self._tokens(prompt, room=longest) for prompt in _texts(prompts)]
        with torch.inference_mode():
            rows = [self._scores(batch, tails) for batch in _batches(encoded, batch_size)]
        return np.concatenate(rows), np.array([len(tail) for tail in tails])

    def _scores(self, prompts: list[list[int]], tails: list[list[int]]) -> np.ndarray:
        """Sum the log-probabilities of each tail after each prompt: read the prompts, then all tails on their cache."""
        import torch
        from transformers import DynamicCache

        ids, mask = self._left_padded(prompts)
        lengths = mask.sum(dim=1)
        cache = DynamicCache(config=self.model.config)
        as_cache = {self._cache_argument: cache}
        read = self.model(
            input_ids=ids, attention_mask=mask, position_ids=_positions(mask), logits_to_keep=1, **as_cache
        )
        tail_ids, tail_mask = self._right_padded(tails)
        first = torch.log_softmax(read.logits[:, -1].float(), dim=-1)[:, tail_ids[:, 0]]
        if tail_ids.shape[1] == 1:
            return first.double().cpu().numpy()
        n, K = len(prompts), len(tails)
        cache.batch_repeat_interleave(K)
        fed = tail_ids[:, :-1].repeat(n, 1)
        on = self.model(
            input_ids=fed,
            attention_mask=torch.cat([mask.repeat_interleave(K, dim=0), tail_mask[:, :-1].repeat(n, 1)], dim=1),
            position_ids=lengths.repeat_interleave(K)[:, None] + torch.arange(fed.shape[1], device=fed.device),
            **as_cache,
        )
        wanted = tail_ids[:, 1:].repeat(n, 1)
        later = _log_probability_of(on.logits, wanted).masked_fill(~tail_mask[:, 1:].repeat(n, 1).bool(), 0)
        scores: np.ndarray = (first + later.sum(dim=1).view(n, K)).double().cpu().numpy()
        return scores

    def _generations(self, sequences: Any, logits: tuple[Any, ...]) -> list[Generation]:
        import torch

        log_probability = _log_probability_of(torch.stack(logits, dim=1), sequences).double().cpu()
        found = []
        for tokens, scores in zip(sequences.tolist(), log_probability):
            finished = self.tokenizer.eos_token_id in tokens
            length = tokens.index(self.tokenizer.eos_token_id) + 1 if finished else len(tokens)
            text = self.tokenizer.decode(tokens[:length], skip_special_tokens=True)
            found.append(Generation(text, float(scores[:length].sum()), length, finished))
        return found

    def _tokens(self, text: str, *, room: int = 0) -> list[int]:
        tokens: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        limit = getattr(self.model.config, "max_position_embeddings", None) or math.inf
        if len(tokens) + room > limit:
            raise InputError(
                f"A prompt of {len(tokens):,} tokens leaves no room for {room:,} more",
                expected=f"at most {limit:,} tokens together",
                remedy="Shorten it",
            )
        return tokens

    @property
    def _cache_argument(self) -> str:
        """Newer versions of transformers call the cache by its name."""
        named = inspect.signature(type(self.model).forward).parameters
        return "cache" if "cache" in named else "past_key_values"

    @property
    def _padding(self) -> int:
        pad: int | None = self.tokenizer.pad_token_id
        return self.tokenizer.eos_token_id if pad is None else pad

    def _left_padded(self, rows: list[list[int]]) -> tuple[Any, Any]:
        width = max(map(len, rows))
        ids = [[self._padding] * (width - len(row)) + row for row in rows]
        return self._tensor(ids), self._tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])

    def _right_padded(self, rows: list[list[int]]) -> tuple[Any, Any]:
        width = max(map(len, rows))
        ids = [row + [self._padding] * (width - len(row)) for row in rows]
        return self._tensor(ids), self._tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])

    def _tensor(self, rows: list[list[int]]) -> Any:
        import torch

        return torch.tensor(rows, dtype=torch.long, device=self.model.device)

    def _forked_devices(self) -> list[Any]:
        return [self.model.device] if self.model.device.type == "cuda" else []


def _positions(mask: Any) -> Any:
    """Count tokens from 0, not the padding before them."""
    return (mask.cumsum(dim=1) - 1).clamp(min=0)


def _log_probability_of(logits: Any, tokens: Any) -> Any:
    """Return the log-probability of each token, of shape (rows, length)."""
    import torch

    return torch.log_softmax(logits.float(), dim=-1).gather(2, tokens[:, :, None])[:, :, 0]


def _batches(rows: list[list[int]], size: int) -> Iterator[list[list[int]]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _texts(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str) or not texts or not all(isinstance(text, str) and text for text in texts):
        got = "one text" if isinstance(texts, str) else "no text, or an empty one, or one that is no text"
        raise InputError(f"The prompts or continuations hold {got}", expected="a list of texts, none of them empty")
    return list(texts)


def _check_sampling(n_samples: int, max_new_tokens: int, temperature: float, top_p: float, batch_size: int) -> None:
    for name, value in (("n_samples", n_samples), ("max_new_tokens", max_new_tokens), ("batch_size", batch_size)):
        if value < 1:
            raise InputError(f"{name} is {value}", expected="1 or more")
    if not 0 <= temperature < math.inf:
        raise InputError(f"temperature is {temperature}", expected="0 or more")
    if not 0 < top_p <= 1:
        raise InputError(f"top_p is {top_p}", expected="above 0 and at most 1")
    if temperature == 0 and n_samples > 1:
        raise InputError(
            f"{n_samples} answers are asked for at temperature 0, where all are the same",
            expected="n_samples=1, or a temperature above 0",
        )
