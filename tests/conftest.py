"""For every test."""

import gc

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    # Two thousand collected tests are objects enough for a full collection of 0.1 s, which would
    # stop an event loop or a client in the middle of whatever is tested. They live until the end
    # anyway; the load worker does the same with what it has loaded.
    gc.collect()
    gc.freeze()
