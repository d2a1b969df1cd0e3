"""A pipeline whose last step forgets, and which says what the steps before it still remember."""

import warnings
from dataclasses import replace
from typing import Any, Self

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from aboveboard.core import Certificate, InputError

__all__ = ["RememberedWarning", "UnlearningPipeline"]

_NEUTRAL = frozenset({"n_features_in_", "feature_names_in_", "n_outputs_", "sparse_output_", "dtype_"})


class RememberedWarning(UserWarning):
    """A step before the forest still carries what it learnt from rows that were removed."""


class UnlearningPipeline(Pipeline):  # type: ignore[misc]
    """A scikit-learn Pipeline whose encoders are fitted once and whose last step is a DynFrs forest.

    `fit` fits every step. `partial_fit` and `remove` change the forest alone: the steps before it stay as they were
    fitted, so that all rows are seen through the same encoding. What these steps learnt (means, categories, medians)
    still depends on every row of `fit`, removed or not; `remembered_` lists it, `remove` warns of it, and the
    certificate names it. Prefer steps that learn nothing (fixed functions, hashing, `categorical_features` of the
    forest), or fit them on rows that will not be erased.

    Parameters
    ----------
    steps, transform_input, memory, verbose
        As in ``sklearn.pipeline.Pipeline``.

    Raises
    ------
    InputError
        When the last step cannot forget.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from aboveboard.unlearning import DynFrsClassifier, UnlearningPipeline
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = UnlearningPipeline([("scale", StandardScaler()), ("forest", DynFrsClassifier(random_state=0))])
    >>> model.fit(X, y).remembered_
    ('scale: StandardScaler.mean_', 'scale: StandardScaler.n_samples_seen_', ...)
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, sample_id: Any = None, **params: Any) -> Self:
        """Fit the encoders and the forest; `sample_weight` and `sample_id` go to the forest."""
        name, last = self.steps[-1]
        if not hasattr(last, "remove") or not hasattr(last, "certify"):
            raise InputError(
                f"the last step, {name!r}, is a {type(last).__name__}, which cannot forget",
                expected="a DynFrsClassifier or a DynFrsRegressor",
            )
        for key, value in (("sample_weight", sample_weight), ("sample_id", sample_id)):
            if value is not None:
                params[f"{name}__{key}"] = value
        super().fit(X, y, **params)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, sample_id: Any = None) -> Self:
        """Add rows to the forest, seen through the encoders as they are."""
        self._forest().partial_fit(self._encoded(X), y, sample_weight=sample_weight, sample_id=sample_id)
        return self

    def remove(self, sample_id: Any) -> Self:
        """Remove rows from the forest; warn of what the encoders still remember.

        Warns
        -----
        RememberedWarning
        """
        self._forest().remove(sample_id)
        if self.remembered_:
            warnings.warn(
                "The forest has forgotten the rows, but the steps before it were fitted on them and still carry: "
                + ", ".join(self.remembered_),
                RememberedWarning,
                stacklevel=2,
            )
        return self

    def certify(self, n_probe: int | None = None) -> Certificate:
        """Check the forest as `DynFrsClassifier.certify` does; the certificate names what the encoders remember."""
        certificate: Certificate = self._forest().certify(n_probe)
        if not self.remembered_:
            return certificate
        more = "What the steps before the forest learnt from all rows of fit: " + ", ".join(self.remembered_) + "."
        return replace(certificate, does_not_cover=(*certificate.does_not_cover, more))

    def fingerprint(self) -> str:
        """Return the fingerprint of the forest; it does not cover the encoders."""
        return str(self._forest().fingerprint())

    def check_removal(self, sample_id: Any) -> Any:
        """As `DynFrsClassifier.check_removal`."""
        return self._forest().check_removal(sample_id)

    @property
    def sample_ids_(self) -> Any:
        """Ids of the rows that the forest holds."""
        return self._forest().sample_ids_

    @property
    def forest_(self) -> Any:
        """The forest itself."""
        return self._forest().forest_

    @property
    def remembered_(self) -> tuple[str, ...]:
        """Learnt attributes of the steps before the forest, each as ``"step: Class.attribute"``."""
        return tuple(line for name, step in self.steps[:-1] for line in _learnt(name, step))

    def _forest(self) -> Any:
        return self.steps[-1][1]

    def _encoded(self, X: Any) -> Any:
        return X if len(self.steps) == 1 else self[:-1].transform(X)


def _learnt(name: str, step: Any) -> list[str]:
    inner = (
        getattr(step, "transformers_", None) or getattr(step, "transformer_list", None) or getattr(step, "steps", ())
    )
    if inner:
        return [line for part in inner for line in _learnt(f"{name}/{part[0]}", part[1])]
    if not hasattr(step, "transform") or not get_tags(step).requires_fit:
        return []
    attributes = sorted(a for a in vars(step) if a.endswith("_") and not a.startswith("_") and a not in _NEUTRAL)
    return [f"{name}: {type(step).__name__}.{attribute}" for attribute in attributes]
