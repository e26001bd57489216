"""The guard alone: what it starts, what it says, and what it leaves."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from tests.engines_unit.waiting import wait_until

from enginebench.engines.owned import Order, end, own, poll

LIMIT_BYTES = 100_000
FLOOD = "import sys, signal\nfor n in range(20_000): print(n, 'x' * 90)\nsys.stdout.flush()\nsignal.pause()"


def order_of(tmp_path: Path, code: str, **fields: object) -> Order:
    argv = [sys.executable, "-S", "-c", code]
    return Order(argv, dict(os.environ), tmp_path / "log.txt", grace_s=0.2, **fields)  # type: ignore[arg-type]


def test_a_command_that_ends_by_itself_leaves_its_status(tmp_path: Path) -> None:
    owned = own(order_of(tmp_path, "raise SystemExit(7)"))
    wait_until(lambda: not poll(owned), "the command ends")
    assert owned.exit_status == 7
    end(owned)
    assert owned.left == ()


def test_a_flood_of_log_is_cut_at_its_limit(tmp_path: Path) -> None:
    owned = own(order_of(tmp_path, FLOOD, log_limit_bytes=LIMIT_BYTES))
    try:
        older = tmp_path / "log.txt.1"
        wait_until(lambda: older.exists() and (tmp_path / "log.txt").stat().st_size == 0, "the log is cut")
        assert older.stat().st_size == LIMIT_BYTES
        assert older.read_text().splitlines()[-1].startswith("19999 ")
        assert poll(owned)
    finally:
        end(owned)


def test_a_flood_of_log_keeps_its_head_and_its_tail(tmp_path: Path) -> None:
    code = (
        "import os, sys, signal\n"
        "cut = lambda: os.fstat(1).st_size == 0\n"
        "for round in 'ab':\n"
        "    for n in range(2_000): print(round, n, 'x' * 90)\n"
        "    sys.stdout.flush()\n"
        "    while not cut(): signal.sigtimedwait([], 0.01)\n"
        "print('last words', flush=True)"
    )
    log = tmp_path / "log.txt"
    log.write_text("of an earlier start\n")
    owned = own(order_of(tmp_path, code, log_limit_bytes=LIMIT_BYTES))
    wait_until(lambda: not poll(owned), "the command ends")
    end(owned)
    head = Path(f"{log}.head").read_text()
    assert head.startswith("a 0 xxx")
    assert len(head) == LIMIT_BYTES  # only the first of two cuts writes it
    older = Path(f"{log}.1").read_text()
    assert older.splitlines()[-1].startswith("b 1999 ")
    assert len(older) == LIMIT_BYTES
    assert log.read_text() == "last words\n"
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2.1 * LIMIT_BYTES


def test_a_last_command_is_run_when_the_tree_is_gone(tmp_path: Path) -> None:
    ask = f"import os, sys; sys.exit(os.path.exists('/proc/' + open({str(tmp_path / 'pid')!r}).read()))"
    code = f"import os, signal; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); signal.pause()"
    order = order_of(tmp_path, code, last=[sys.executable, "-S", "-c", ask])
    owned = own(order)
    wait_until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()), "it runs")
    end(owned)
    assert owned.complaint is None


@pytest.mark.parametrize(
    ("last", "complaint"),
    [
        ([sys.executable, "-S", "-c", "raise SystemExit('still there')"], "still there"),
        ([sys.executable, "-S", "-c", "raise SystemExit(3)"], "it failed"),
        (["no-such-command"], "[Errno 2] No such file or directory: 'no-such-command'"),
    ],
)
@pytest.mark.parametrize("guard_is_killed", [False, True])
def test_a_last_command_that_fails_is_heard_of(
    last: list[str], complaint: str, guard_is_killed: bool, tmp_path: Path
) -> None:
    owned = own(order_of(tmp_path, "import signal; signal.pause()", last=last))
    if guard_is_killed:
        os.kill(owned.guard_pid, signal.SIGKILL)
    end(owned)
    assert owned.complaint == complaint


def test_an_order_larger_than_a_pipe_arrives_whole(tmp_path: Path) -> None:
    code = "import os; raise SystemExit(len(os.environ['LONG']) == 100_000)"
    order = order_of(tmp_path, code)
    owned = own(Order(order.argv, {**order.env, "LONG": "x" * 100_000}, order.log_path, grace_s=0.2))
    wait_until(lambda: not poll(owned), "the command ends")
    end(owned)
    assert owned.exit_status == 1


def test_the_engine_gets_none_of_the_guards_pipes(tmp_path: Path) -> None:
    code = (
        "import os; print([os.readlink(f'/proc/self/fd/{fd}') for fd in (0, 1, 2)]);"
        "print(sorted(os.listdir('/proc/self/fd')))"
    )
    owned = own(order_of(tmp_path, code))
    wait_until(lambda: not poll(owned), "the command ends")
    end(owned)
    log = (tmp_path / "log.txt").resolve()
    # The fourth descriptor is the listing's own.
    assert log.read_text() == f"{['/dev/null', str(log), str(log)]}\n{['0', '1', '2', '3']}\n"


def test_a_folder_that_does_not_exist_is_an_error_and_no_process(tmp_path: Path) -> None:
    order = order_of(tmp_path, "")
    with pytest.raises(OSError, match="No such file"):
        own(Order(order.argv, order.env, tmp_path / "absent" / "log.txt"))
