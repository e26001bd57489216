"""A serving engine that batches like a real one and writes down what it did.

from enginebench.mock import MockConfig, running

with running(MockConfig(model="tiny")) as server:
    ...  # send requests to server.base_url
    truth = server.truth()
"""

from enginebench.batching.scheduler import SchedulerConfig
from enginebench.batching.step_time import StepTime
from enginebench.mock.config import MockConfig
from enginebench.mock.process import MockServer, running
from enginebench.mock.truth import Truth, read_truth

__all__ = ["MockConfig", "MockServer", "SchedulerConfig", "StepTime", "Truth", "read_truth", "running"]
