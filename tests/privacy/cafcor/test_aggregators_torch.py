"""CAF of tensors is that of arrays, and a tensor."""

import numpy as np
import pytest

from aboveboard.privacy import caf

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_tensor_gives_a_tensor_of_its_type(dtype):
    rows = np.random.default_rng(0).normal(size=(9, 5))
    x = torch.as_tensor(rows).to(getattr(torch, dtype)).requires_grad_()
    found = caf(x, 2).mean
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found.double().numpy(), caf(x.detach().double().numpy(), 2).mean, rtol=1e-2, atol=1e-2)
