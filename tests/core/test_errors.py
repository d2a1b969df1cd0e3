import pytest

from aboveboard.core.errors import InputError, MissingExtra, ModelError


def test_an_input_error_says_what_was_got_what_was_expected_and_what_to_do():
    error = InputError("the file is empty.", expected="two rows", remedy="Save it again")
    assert str(error) == "the file is empty. Expected two rows. Save it again."
    assert (error.got, error.expected, error.remedy) == ("the file is empty.", "two rows", "Save it again")


def test_a_remedy_that_is_a_question_keeps_its_mark():
    assert str(InputError("no 'b'", remedy="Did you mean 'a'?")) == "no 'b'. Did you mean 'a'?"


def test_an_input_error_needs_no_remedy():
    assert str(InputError("the file is empty")) == "the file is empty."


def test_an_input_error_is_a_value_error_as_scikit_learn_users_expect():
    with pytest.raises(ValueError, match="empty"):
        raise InputError("empty")


def test_a_model_error_is_no_input_error():
    assert not issubclass(ModelError, ValueError)


def test_a_missing_extra_names_the_command_that_installs_it():
    error = MissingExtra("numba", extra="fast", feature="DynFrsClassifier")
    assert isinstance(error, ImportError)
    assert "pip install 'aboveboard[fast]'" in str(error)
    assert str(error).startswith("DynFrsClassifier needs")
