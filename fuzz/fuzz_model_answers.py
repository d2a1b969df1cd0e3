"""Feed any bytes to what reads the answers of a model's process: they are an answer of the right shape, or refused."""

import io

from harness import run


def test_one_input(content: bytes) -> None:
    from aboveboard._model_host.wire import Malformed, read_message, read_numbers
    from aboveboard.auditing.models.hosted import labels_of, read_told
    from aboveboard.core.errors import ModelError

    stream = io.BytesIO(content)

    def read(length: int) -> bytearray:
        piece = bytearray(stream.read(length))
        if len(piece) < length:
            raise EOFError
        return piece

    try:
        head, body = read_message(read, most=2048)
    except (Malformed, EOFError):
        return
    if isinstance(head.get("loaded"), dict):
        try:
            assert read_told(head["loaded"]).questions
        except ModelError:
            return
    try:
        values = read_numbers(body, rows=3, widest=4)
        assert values.shape in ((3,), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4))
        assert values.dtype in ("float64", "int64", "bool")
        assert labels_of(values, head.get("labels")).shape == values.shape
    except Malformed:
        return


if __name__ == "__main__":
    run(test_one_input, ["aboveboard._model_host.wire", "aboveboard.auditing.models.hosted"])
