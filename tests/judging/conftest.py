from tests.llm.conftest import _environment, endpoint  # noqa: F401 (fixtures)
