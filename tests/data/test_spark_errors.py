"""What is said of a job of Spark that failed quotes nothing of it but known words."""

from __future__ import annotations

from sfumato.data.spark import _why


def test_executors_of_spark_that_lack_sfumato_are_told_and_nothing_else_is() -> None:
    told = _why(Exception("…\nModuleNotFoundError: No module named 'sfumato.data'\n…"))
    assert "Spark's executors cannot import sfumato" in told
    assert "PYSPARK_PYTHON" in told
    assert "secret" not in _why(Exception("No module named 'secret'"))
