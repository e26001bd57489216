"""The few errors a person can meet. Each says what is wrong and what to do, and carries its exit code.

A failed request is data (`Record.outcome`), never one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class EnginebenchError(Exception):
    """Base of every error that the command line prints as one line, without a traceback."""

    exit_code = 2


class UserError(EnginebenchError):
    """The person's input cannot be used; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something stands; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class ConfigError(UserError):
    """A scenario or launcher file holds something unusable."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        self.place = place
        super().__init__(f"{place}: {message}" if place else message)


class TargetError(EnginebenchError):
    """An engine or endpoint could not be measured."""

    exit_code = 3


class EngineExited(TargetError):
    """An engine process ended before we asked it to."""

    def __init__(
        self, name: str, exit_status: int | None, log_path: Path | None, log_tail: str, cause: str = ""
    ) -> None:
        self.name, self.exit_status, self.log_path, self.log_tail = name, exit_status, log_path, log_tail
        self.cause = cause
        """What went wrong and what helps, where that is known; empty otherwise."""
        where = f"; last lines of {log_path}:\n{log_tail}" if log_tail else ""
        known = f"{name}: {cause}\n" if cause else ""
        super().__init__(f"{known}{name} ended {_how(exit_status)} before it was stopped{where}")


def _how(exit_status: int | None) -> str:
    if exit_status is None:
        return "for an unknown reason"
    return f"by signal {-exit_status}" if exit_status < 0 else f"with exit code {exit_status}"


class EngineNotReady(TargetError):
    """An engine did not complete a request within its start timeout."""

    def __init__(self, name: str, waited_s: float, last_answer: str, log_tail: str, cause: str = "") -> None:
        self.name, self.waited_s, self.last_answer, self.log_tail = name, waited_s, last_answer, log_tail
        self.cause = cause
        """As in EngineExited."""
        where = f"; last log lines:\n{log_tail}" if log_tail else ""
        known = f"{name}: {cause}\n" if cause else ""
        super().__init__(
            f"{known}{name} was not ready after {waited_s:.0f} s (last answer: {last_answer}); "
            f"raise `start_timeout` if the model is large{where}"
        )


class StorageError(EnginebenchError):
    """A run folder cannot be written or read."""


class Interrupted(BaseException):
    """Ctrl-C, SIGTERM or a closed terminal: what was measured so far has been saved.

    Not an Exception, like KeyboardInterrupt: it is raised wherever the signal finds us, and no
    `except Exception` on its way may take it for a failure of its own.
    """

    exit_code = 4
