"""Signals: heard once, and never in the middle of storing."""

import os
import signal
from collections.abc import Callable

import pytest

from enginebench.bench.interrupts import Interrupts
from enginebench.errors import Interrupted


def kill(number: int = signal.SIGINT) -> None:
    """The handler runs before this returns: Python checks for signals after the call."""
    os.kill(os.getpid(), number)


def silent(line: str) -> None: ...


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_at_once_where_nothing_holds_it(number):
    with Interrupts(silent), pytest.raises(Interrupted, match=signal.Signals(number).name):
        kill(number)


def test_what_is_held_is_finished_first():
    done = []

    def work(interrupts: Interrupts) -> None:
        with interrupts.held():
            kill()
            done.append("stored")
        done.append("never")

    with Interrupts(silent) as interrupts, pytest.raises(Interrupted):
        work(interrupts)
    assert done == ["stored"]


def test_the_part_of_a_held_block_that_listens_is_broken_off_and_the_rest_is_not():
    done = []
    with Interrupts(silent) as interrupts, interrupts.held():
        with pytest.raises(Interrupted), interrupts.heard():
            kill()
            done.append("never")
        kill()
        done.append("stored")
    assert done == ["stored"]


def test_a_signal_before_the_listening_part_breaks_it_off_as_it_begins():
    with Interrupts(silent) as interrupts, interrupts.held():
        kill()
        with pytest.raises(Interrupted), interrupts.heard():
            pytest.fail("the load must not begin")


def test_later_signals_only_ask_for_patience():
    said: list[str] = []
    with Interrupts(said.append):
        with pytest.raises(Interrupted):
            kill()
        kill()
        kill(signal.SIGTERM)
    assert len(said) == 2
    assert "saving" in said[0]


@pytest.fixture
def nohup() -> Callable[[], object]:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield lambda: signal.getsignal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, before)


def test_what_was_ignored_stays_ignored(nohup):
    with Interrupts(silent):
        kill(signal.SIGHUP)
        assert nohup() is signal.SIG_IGN


def test_the_handlers_of_before_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts(silent):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
