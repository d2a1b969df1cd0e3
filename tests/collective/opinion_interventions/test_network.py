"""Networks are read as they are, and what is none is refused."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from aboveboard.collective import (
    FriedkinJohnsen,
    OpinionInterventionOptimizer,
    add_influencer,
    insert_edges,
    load_edge_list,
    network_from_edges,
)
from aboveboard.collective.opinion_interventions._network import find_edges, mutable_edges, read_weights
from aboveboard.core import InputError

PAIR = np.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones((2, 3)), "shape"),
        (np.zeros((0, 0)), "shape"),
        (np.ones(3), "shape"),
        (np.array([["a", "b"], ["c", "d"]]), "type"),
        (np.array([[0, np.nan], [1, 0]]), "not finite"),
        (np.array([[0, np.inf], [1, 0]]), "not finite"),
        (np.array([[0, -1.0], [1, 0]]), "the weight -1"),
        (np.array([[1.0, 1], [1, 0]]), "1 weight of an account for itself"),
        (sparse.csr_array(([0.0], ([0], [0])), shape=(2, 2)), "for itself"),
        (np.array([[0, 1j], [1, 0]]), "type"),
    ],
)
def test_what_is_no_network_is_refused(W, message):
    with pytest.raises(InputError, match=message):
        FriedkinJohnsen(W, [1, 0])


@pytest.mark.parametrize(
    ("s", "message"),
    [
        ([1], "shape"),
        ([[1, 0]], "shape"),
        ([1, np.nan], "opinion of account 1 is nan"),
        ([1, np.inf], "account 1 is inf"),
        (["a", "b"], "not all numbers"),
        (pd.Series([1, None], dtype="Int64"), "account 1 is nan"),
        (pd.Series(["a", "b"], dtype="category"), "not all numbers"),
    ],
)
def test_opinions_that_are_none_are_refused(s, message):
    with pytest.raises(InputError, match=message):
        FriedkinJohnsen(PAIR, s)


@pytest.mark.parametrize("make", [sparse.coo_array, sparse.csc_matrix, sparse.lil_array, pd.DataFrame, np.asarray])
def test_every_container_gives_the_same_network(make):
    assert (read_weights(make(PAIR)) != sparse.csr_array(PAIR)).nnz == 0


def test_what_was_given_is_left_alone():
    W = sparse.csr_array(PAIR)
    OpinionInterventionOptimizer("disagreement", symmetric=True).fit(W, [1, 0])
    assert W.data.tolist() == [1.0, 1.0]


def test_edges_named_twice_are_added_up_and_stored_zeros_stay():
    W = read_weights(sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2)))
    assert W.nnz == 2
    assert W.data.tolist() == [3.0, 0.0]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("listens", [[0, 2], [0, 0]]), ("influences", [[0, 0], [2, 0]]), ("mutual", [[0, 2], [2, 0]])],
)
def test_an_edge_says_who_listens_to_whom(direction, expected):
    assert network_from_edges([0], [1], [2.0], direction=direction).toarray().tolist() == expected


def test_an_account_does_not_listen_to_itself():
    with pytest.warns(UserWarning, match="1 edges from an account to itself"):
        W = network_from_edges([0, 1], [0, 0])
    assert W.toarray().tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0], [1, 2]), {}, "1 sources, 2 targets"),
        (([0.5], [1]), {}, "whole numbers"),
        (([-1], [1]), {}, "number -1"),
        (([0], [5]), {"n": 3}, "below n = 3"),
        (([0], [1], [-1.0]), {}, "weight -1"),
        (([0], [1]), {"direction": "both"}, "listens, influences, mutual"),
    ],
)
def test_edges_that_are_none_are_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        network_from_edges(*arguments, **options)


def test_an_edge_list_of_snap_is_read(tmp_path):
    text = "# Directed graph\n# FromNodeId\tToNodeId\n7\t3\n3\t10\n10\t7\n7\t10\n"
    plain, packed = tmp_path / "edges.txt", tmp_path / "edges.txt.gz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    for file in (plain, packed):
        W, accounts = load_edge_list(file)
        assert accounts.tolist() == [3, 7, 10]
        assert W.toarray().tolist() == [[0, 0, 1], [1, 0, 1], [0, 1, 0]]


def test_an_edge_list_can_hold_weights(tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("0 1 0.5\n1 2 2\n", encoding="utf-8")
    assert load_edge_list(file, direction="mutual")[0].toarray().tolist() == [[0, 0.5, 0], [0.5, 0, 2], [0, 2, 0]]


@pytest.mark.parametrize("text", ["a b\n", "1\n", "1 2 3 4\n", "1.5 2\n", "", "1 2\n3 4 5 6\n", "1 2 x\n", "1 2\n3\n"])
def test_a_file_that_is_no_edge_list_is_refused(tmp_path, text):
    file = tmp_path / "edges.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"edges\.txt"):
        load_edge_list(file)
    with pytest.raises(InputError, match="no file"):
        load_edge_list(tmp_path / "none.txt")


@given(st.integers(0, 2**32 - 1))
def test_edges_are_found_where_they_are(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    dense = (rng.random((n, n)) < 0.4) * (1 - np.eye(n))
    W = read_weights(dense)
    i, j = np.indices((n, n)).reshape(2, -1)
    found = find_edges(W, i, j)
    assert ((found >= 0) == (dense[i, j] > 0)).all()
    there = found >= 0
    assert (W.indices[found[there]] == j[there]).all()


def test_an_influencer_is_heard_by_nobody_at_first_and_hears_nobody():
    W, s, rows, cols = add_influencer([[0, 1, 0], [0, 0, 0], [2, 0, 0]], [1, 2, 3], opinion=-1.0)
    assert s.tolist() == [1, 2, 3, -1]
    assert W.nnz == 5
    assert W.toarray()[3].tolist() == [0, 0, 0, 0]
    assert W.data[find_edges(W, rows, cols)].tolist() == [0, 0, 0]
    assert FriedkinJohnsen(W, s).equilibrium()[:3] == pytest.approx(
        FriedkinJohnsen([[0, 1, 0], [0, 0, 0], [2, 0, 0]], [1, 2, 3]).equilibrium()
    )


def test_inserted_edges_are_stored_and_others_keep_their_weight():
    W = insert_edges([[0, 3.0], [0, 0]], [0, 1, 1], [1, 0, 0])
    assert W.nnz == 2
    assert W.toarray().tolist() == [[0, 3], [0, 0]]


@pytest.mark.parametrize(
    ("mutable", "symmetric", "message"),
    [
        ("some", False, "mutable is 'some'"),
        (3, False, "mutable is no pair"),
        (([0], [1, 2]), False, "1 rows and 2 columns"),
        (([0], [9]), False, "accounts from 0 to 2"),
        (([2], [0]), False, "insert_edges"),
        (([0, 0], [1, 1]), False, "an edge twice"),
        (([], []), False, "no edge to change"),
        ("all", True, "not the same in both directions"),
    ],
)
def test_edges_that_cannot_be_changed_are_refused(mutable, symmetric, message):
    with pytest.raises(InputError, match=message):
        mutable_edges(read_weights([[0, 1, 0], [2, 0, 1], [0, 1, 0]]), mutable, symmetric=symmetric)


def test_pairs_are_one_variable_whichever_direction_is_named():
    W = read_weights([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    for mutable in ("all", ([0, 2], [1, 1]), ([1, 1, 0], [0, 2, 1])):
        edges = mutable_edges(W, mutable, symmetric=True)
        assert (edges.rows.tolist(), edges.cols.tolist(), edges.start.tolist()) == ([0, 1], [1, 2], [2, 1])
    edges.write(W, np.array([5.0, 6.0]))
    assert W.toarray().tolist() == [[0, 5, 0], [5, 0, 6], [0, 6, 0]]
