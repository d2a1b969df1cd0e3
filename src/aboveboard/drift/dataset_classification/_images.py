"""Images: a small convolutional network, and what can be taken away from a picture."""

import io
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import ndimage

from aboveboard.core.errors import InputError
from aboveboard.core.extras import require
from aboveboard.drift.dataset_classification._controls import Candidates, Rung, Trial
from aboveboard.drift.dataset_classification._learners import LogisticLearner, Trained, TreesLearner, estimator_learner
from aboveboard.drift.dataset_classification._modality import IMPORTANCE_COLUMNS, no_importance
from aboveboard.drift.dataset_classification._splits import Split
from aboveboard.drift.dataset_classification._tables import Features, named_frame
from aboveboard.drift.dataset_classification._text import embedded

__all__ = ["ImageModality", "NetworkLearner"]

_WIDTHS: Final = (32, 48, 64, 128)
_BATCH: Final = 128
_EPOCHS: Final = 2
_FEWEST_STEPS: Final = 200
_RATE: Final = 3e-3
_DECAY: Final = 0.05
_GRID: Final = 4
_ROWS: Final = 1_000
_TINY: Final = 1e-12


class ImageModality:
    """Rows that are images."""

    def __init__(self, embedding: Callable[[Any], Any] | None, device: str) -> None:
        self.embedding = embedding
        self.device = device
        self.excluded_: dict[str, str] = {}

    def check(self, name: str, data: Any) -> NDArray[np.uint8]:
        images = np.asarray(data)
        if images.ndim == 3:
            images = images[..., None]
        if images.ndim != 4 or images.shape[-1] not in (1, 3) or min(images.shape[1:3]) < 8:
            raise InputError(
                f"{name} has shape {np.shape(data)}",
                expected="images of at least 8 x 8 pixels: (n, height, width) or (n, height, width, 1 or 3 channels)",
                remedy="Reshape flat rows of pixels first",
            )
        if images.dtype != np.uint8:
            if images.dtype.kind != "f" or not (np.isfinite(images).all() and images.min() >= 0 and images.max() <= 1):
                raise InputError(
                    f"{name} holds pixels of type {images.dtype}", expected="uint8, or fractions from 0 to 1"
                )
            # what differs in number format alone must not tell sources apart
            images = np.round(images * 255).astype(np.uint8)
        return images

    def take(self, data: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(data[rows])

    def same(self, one: NDArray[Any], other: NDArray[Any]) -> bool:
        return one.shape == other.shape and bool(np.array_equal(one, other))

    def join(self, parts: Mapping[str, NDArray[Any]], codes: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        shapes = {name: part.shape[1:] for name, part in parts.items()}
        if len(set(shapes.values())) > 1:
            told = ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in shapes.items())
            raise InputError(
                f"the images differ in size: {told}",
                expected="one size, since the size alone would give the source away",
                remedy="Resize all images in the same way first",
            )
        return np.concatenate(list(parts.values()))

    def features(self, data: NDArray[Any], split: Split) -> Features:  # noqa: ARG002
        return Features(data) if self.embedding is None else embedded(self.embedding, data)

    def read(self, X: Any) -> Features:
        images = self.check("X", X)
        return Features(images) if self.embedding is None else embedded(self.embedding, images)

    def candidates(self, estimator: Any) -> Candidates:
        if estimator is not None:
            return {type(estimator).__name__: estimator_learner(estimator)}
        if self.embedding is not None:
            return {"logistic regression": LogisticLearner, "gradient-boosted trees": TreesLearner}
        require("torch", extra="torch", feature="DatasetClassification of images")
        return {"convolutional network": lambda: NetworkLearner(self.device)}

    def default_rungs(self, data: NDArray[Any]) -> tuple[str, ...]:
        height = data.shape[1]
        colour = ("colour", "grey") if data.shape[-1] == 3 else ()
        low = (f"low_resolution:{height // 2}", f"low_resolution:{height // 4}")
        return (*colour, "noise:0.2", "noise:0.3", "blur:1", "blur:2", *low, "jpeg:50")

    def check_rung(self, name: str, features: Features) -> None:  # noqa: ARG002
        corruption(name)

    def rung(self, name: str, importance: pd.DataFrame, trial: Trial) -> list[Rung]:  # noqa: ARG002
        change = corruption(name)

        def apply(trial: Trial, rng: np.random.Generator) -> Features:
            return self.features(change(trial.data, rng), trial.split)

        return [Rung(name, apply)]

    def importance(self, trained: Trained, trial: Trial, seed: int) -> pd.DataFrame:  # noqa: ARG002
        """Return what it costs to put the mean image over each field of a 4 x 4 grid."""
        if self.embedding is not None:
            return no_importance()
        rows = trial.split.held_out[:_ROWS]
        images, codes = trial.features.values[rows], trial.codes[rows]
        mean = trial.features.values[trial.split.train].mean(axis=0)

        def quality(values: NDArray[Any]) -> tuple[float, float]:
            proba = trained.proba(Features(values))
            own = np.maximum(proba[np.arange(len(codes)), codes], _TINY)
            return float(-np.log(own).mean()), float((proba.argmax(axis=1) == codes).mean())

        loss, accuracy = quality(images)
        ys, xs = (np.array_split(np.arange(size), _GRID) for size in images.shape[1:3])
        found = []
        for y in ys:
            for x in xs:
                covered = images.copy()
                place = np.s_[y[0] : y[-1] + 1, x[0] : x[-1] + 1]
                covered[:, *place] = np.round(mean[place])
                new_loss, new_accuracy = quality(covered)
                name = f"rows {y[0]} to {y[-1]}, columns {x[0]} to {x[-1]}"
                found.append((name, new_loss - loss, accuracy - new_accuracy))
        return named_frame(sorted(found, key=lambda row: -row[1]), IMPORTANCE_COLUMNS)


class NetworkLearner:
    """Four blocks of convolution, normalisation and pooling, then a linear layer; two epochs, more where rows are few.

    Parameters
    ----------
    device : str
        As PyTorch names it.
    """

    cross_validated = False

    def __init__(self, device: str) -> None:
        self.device = device

    def fit(self, features: Features, codes: NDArray[np.intp], m: int, seed: int) -> Self:
        torch = require("torch", extra="torch", feature="DatasetClassification of images")
        images = self._start(features, m, seed)
        labels = torch.as_tensor(codes, dtype=torch.long, device=self.device)
        generator = torch.Generator().manual_seed(seed)
        per_epoch = max(len(images) // _BATCH, 1)
        epochs = max(_EPOCHS, -(-_FEWEST_STEPS // per_epoch))
        optimizer = torch.optim.AdamW(self.network_.parameters(), lr=_RATE, weight_decay=_DECAY)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=_RATE, total_steps=epochs * per_epoch)
        self.network_.train()
        for _ in range(epochs):
            order = torch.randperm(len(images), generator=generator)
            for step in range(per_epoch):
                rows = order[step * _BATCH : (step + 1) * _BATCH]
                flipped = torch.rand(len(rows), generator=generator) < 0.5
                batch = self._scaled(images[rows])
                batch = torch.where(flipped.to(self.device)[:, None, None, None], batch.flip(-1), batch)
                loss = torch.nn.functional.cross_entropy(self.network_(batch), labels[rows.to(self.device)])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        self.network_.eval()
        return self

    def untrained(self, features: Features, m: int, seed: int) -> Self:
        """Give the network its first, random weights."""
        self._start(features, m, seed)
        self.network_.eval()
        return self

    def predict_proba(self, features: Features) -> NDArray[np.float64]:
        torch = require("torch", extra="torch", feature="DatasetClassification of images")
        logits = self._passed(features, self.network_)
        return np.asarray(torch.softmax(torch.as_tensor(logits, dtype=torch.float64), dim=1).numpy())

    def hidden(self, features: Features) -> NDArray[np.float64]:
        """Return the values that enter the last layer, shape (n, 128)."""
        return self._passed(features, self.network_[:-1])

    def _start(self, features: Features, m: int, seed: int) -> Any:
        torch = require("torch", extra="torch", feature="DatasetClassification of images")
        pixels = features.values.astype(np.float32) / 255.0
        self.centre_ = torch.as_tensor(pixels.mean(axis=(0, 1, 2)), device=self.device)[:, None, None]
        self.spread_ = torch.as_tensor(pixels.std(axis=(0, 1, 2)) + 1e-3, device=self.device)[:, None, None]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = _network(torch, features.values.shape[-1], m)
        self.network_ = network.to(self.device, memory_format=torch.channels_last)
        return torch.as_tensor(features.values).permute(0, 3, 1, 2)

    def _scaled(self, images: Any) -> Any:
        torch = require("torch", extra="torch", feature="DatasetClassification of images")
        scaled = (images.to(self.device).float() / 255.0 - self.centre_) / self.spread_
        return scaled.contiguous(memory_format=torch.channels_last)

    def _passed(self, features: Features, network: Any) -> NDArray[np.float64]:
        torch = require("torch", extra="torch", feature="DatasetClassification of images")
        images = torch.as_tensor(features.values).permute(0, 3, 1, 2)
        with torch.inference_mode():
            parts = [network(self._scaled(batch)).cpu().numpy() for batch in images.split(8 * _BATCH)]
        return np.concatenate(parts).astype(np.float64)


def _network(torch: Any, channels: int, m: int) -> Any:
    layers = []
    for width in _WIDTHS:
        layers += [
            torch.nn.Conv2d(channels, width, 3, padding=1, bias=False),
            torch.nn.BatchNorm2d(width),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2, ceil_mode=True),
        ]
        channels = width
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, m))


def corruption(name: str) -> Callable[[NDArray[np.uint8], np.random.Generator], NDArray[np.uint8]]:
    """Return the change that a name such as ``"blur:1.5"`` stands for.

    ``noise:s`` adds Gaussian noise with standard deviation s (the range of pixels is 1); ``blur:s`` blurs with a
    standard deviation of s pixels; ``low_resolution:p`` averages down to p pixels of height and enlarges again;
    ``jpeg:q`` stores at quality q and reads again; ``colour`` jitters brightness, contrast and channels; ``grey`` keeps
    brightness alone.
    """
    kind, _, value = name.partition(":")
    if kind not in _CORRUPTIONS or (kind in _BARE) == bool(value):
        raise InputError(
            f"ladder names {name!r}",
            expected="some of 'noise:0.2', 'blur:1', 'low_resolution:14', 'jpeg:50', 'colour' and 'grey' for images",
        )
    try:
        amount = float(value) if value else 0.0
    except ValueError as error:
        raise InputError(f"ladder names {name!r}", expected=f"a number after {kind}:") from error
    if (value and not (0 < amount < np.inf)) or (kind == "jpeg" and amount > 100) or (kind[:3] == "low" and amount < 1):
        raise InputError(f"ladder names {name!r}", expected="a number above 0; for jpeg at most 100")
    function = _CORRUPTIONS[kind]
    return lambda images, rng: function(images, amount, rng)


def _noise(images: NDArray[np.uint8], amount: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    noise = rng.standard_normal(images.shape, dtype=np.float32) * np.float32(255.0 * amount)
    return _pixels(images + noise)


def _blur(images: NDArray[np.uint8], amount: float, _: np.random.Generator) -> NDArray[np.uint8]:
    return _pixels(ndimage.gaussian_filter(images.astype(np.float32), sigma=(0, amount, amount, 0)))


def _low_resolution(images: NDArray[np.uint8], amount: float, _: np.random.Generator) -> NDArray[np.uint8]:
    from PIL import Image

    height, width = images.shape[1:3]
    small = (max(round(width * amount / height), 1), max(round(amount), 1))

    def change(image: Any) -> Any:
        return image.resize(small, Image.Resampling.BOX).resize((width, height), Image.Resampling.BILINEAR)

    return _each(images, change)


def _jpeg(images: NDArray[np.uint8], amount: float, _: np.random.Generator) -> NDArray[np.uint8]:
    from PIL import Image

    def change(image: Any) -> Any:
        file = io.BytesIO()
        image.save(file, format="JPEG", quality=round(amount))
        return Image.open(file)

    return _each(images, change)


def _colour(images: NDArray[np.uint8], _: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    n = len(images)
    brightness = rng.uniform(0.6, 1.4, size=(n, 1, 1, 1))
    contrast = rng.uniform(0.6, 1.4, size=(n, 1, 1, 1))
    tint = rng.uniform(0.8, 1.2, size=(n, 1, 1, images.shape[-1]))
    mean = images.mean(axis=(1, 2, 3), keepdims=True)
    return _pixels((images - mean) * contrast * tint + mean * brightness * tint)


def _grey(images: NDArray[np.uint8], _: float, rng: np.random.Generator) -> NDArray[np.uint8]:  # noqa: ARG001
    if images.shape[-1] == 1:
        return images
    grey = images @ np.array([0.299, 0.587, 0.114])
    return _pixels(np.repeat(grey[..., None], 3, axis=-1))


def _each(images: NDArray[np.uint8], change: Callable[[Any], Any]) -> NDArray[np.uint8]:
    from PIL import Image

    squeezed = images[..., 0] if images.shape[-1] == 1 else images
    changed = np.stack([np.asarray(change(Image.fromarray(image))) for image in squeezed])
    return changed.reshape(images.shape).astype(np.uint8)


def _pixels(values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.clip(np.round(values), 0, 255).astype(np.uint8)


_BARE: Final = ("colour", "grey")
_CORRUPTIONS: Final[dict[str, Callable[..., NDArray[np.uint8]]]] = {
    "noise": _noise,
    "blur": _blur,
    "low_resolution": _low_resolution,
    "jpeg": _jpeg,
    "colour": _colour,
    "grey": _grey,
}
