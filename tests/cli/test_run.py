"""`enginebench run` from the command line to the files of a run."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.cli.conftest import PROGRAM
from tests.fakes.scripted_server import scripted_server

import enginebench as package
from enginebench.clock import monotonic_ns
from enginebench.units import NS_PER_S

NOBODY = ("--url", "http://127.0.0.1:9/v1")
SHORT = ("--input-tokens", 16, "--output-tokens", 8, "--warmup", "0s")


def options(mock: Any, *more: object) -> tuple[object, ...]:
    return ("--url", mock.base_url, "--model", mock.model, *SHORT, *more)


def wait_for(condition: Any, what: str, timeout_s: float = 30) -> Any:
    """Asks until `condition` gives something true; fails with `what` when it never does."""
    end_ns = monotonic_ns() + int(timeout_s * NS_PER_S)
    while monotonic_ns() < end_ns:
        if found := condition():
            return found
        os.sched_yield()
    pytest.fail(f"waited {timeout_s} s for {what}")


def test_a_run_by_url_leaves_a_whole_folder_and_prints_its_report_last(enginebench, mock, tmp_path):
    ended = enginebench("run", *options(mock, "--concurrency", "1,4", "--requests", 12, "--out", "run"))
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[-1] == "report: run/report.html"
    folder = tmp_path / "run"
    names = {path.name for path in folder.iterdir()}
    assert {"run.json", "records", "summary.json", "report.html", "report.md"} <= names
    meta = json.loads((folder / "run.json").read_text())
    assert (meta["status"], len(meta["cells"])) == ("done", 2)
    assert meta["hosts"][0]["boot_id"]
    assert sorted(path.name for path in (folder / "records").iterdir()) == [
        "endpoint-l1-r0-w0.parquet",
        "endpoint-l4-r0-w0.parquet",
    ]
    assert list((folder / "spool").glob("*.spool")) == []


def test_the_records_are_what_the_mock_knows_it_sent(enginebench, mock, tmp_path):
    ended = enginebench("run", *options(mock, "--concurrency", "4", "--requests", 20, "--out", "run"))
    assert ended.code == 0, ended.err
    frame = package.load(tmp_path / "run").frame()
    assert set(frame.outcome) == {"ok"}
    truth = {entry.id: entry for entry in mock.truth()}
    for row in frame.itertuples():
        sent = truth[row.request_id]
        assert row.output_tokens == sent.output_tokens == 8
        assert row.prompt_tokens == sent.prompt_tokens == 16 + 4
        assert list(row.chunk_kind) == list(sent.kind)
        # The server's clock is read before each send, the kernel's stamp is taken inside it.
        assert all(
            arrived >= before for arrived, before in zip(row.chunk_arrived_ns, sent.sent_ns, strict=True)
        )


def test_the_same_seed_sends_the_same_prompts_and_no_prompt_twice(enginebench, mock, tmp_path):
    for name in ("a", "b"):
        arguments = options(
            mock, "--concurrency", "1,2", "--requests", 6, "--set", "repeats=2", "--out", name
        )
        assert enginebench("run", *arguments).code == 0
    first, second = (package.load(tmp_path / name).frame().sort_values("seq") for name in ("a", "b"))
    assert list(first.prompt_sha256) == list(second.prompt_sha256)
    assert first.prompt_sha256.is_unique


def test_every_request_failing_is_an_error_with_a_report_and_no_number(enginebench, tmp_path):
    body = b'{"error": {"message": "engine died", "code": 500}}'
    head = b"HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)

    def refuse(connection: Any, number: int) -> None:
        connection.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n" if number == 0 else head + body)

    with scripted_server(refuse) as server:
        ended = enginebench(
            "run",
            "--url",
            server.url,
            "--model",
            "m",
            "--concurrency",
            2,
            "--requests",
            10,
            *SHORT,
            "--out",
            "run",
        )
    assert ended.code == 3
    (level,) = json.loads((tmp_path / "run" / "summary.json").read_text())["targets"][0]["levels"]
    assert level["counts"]["ok"] == 0
    assert level["counts"]["error"] == 10
    assert level["errors"] == {"http_500": 10}
    assert level["metrics"]["ttft"]["p50"]["value"] is None
    assert level["metrics"]["output_throughput"]["value"]["value"] is None
    assert "http_500" in ended.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_a_signal_in_mid_level_saves_a_partial_report_and_exits_4(mock, tmp_path, number):
    process = start_long_run(mock, tmp_path)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 4, err
    assert out.splitlines()[-1] == "report: run/report.html"
    run = package.load(tmp_path / "run")
    assert run.meta["status"] == "interrupted"
    assert run.cells[-1].problem == "interrupted"
    assert (run.frame().outcome == "ok").sum() > 0
    assert (tmp_path / "run" / "report.html").exists()


def start_long_run(mock: Any, tmp_path: Path) -> subprocess.Popen[str]:
    """A run in the middle of a level that would take a minute."""
    words = ["run", *options(mock, "--concurrency", 4, "--duration", "60s", "--out", "run")]
    process = subprocess.Popen(
        [*PROGRAM, *map(str, words)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    spool = tmp_path / "run" / "spool" / "endpoint-l4-r0-w0.spool"
    # The spool's buffer reaches the disk every few seconds: by then hundreds of requests are done.
    wait_for(lambda: spool.exists() and spool.stat().st_size > 20_000, "captures in the spool")
    return process


def test_kill_9_in_mid_level_loses_at_most_the_last_seconds(enginebench, mock, tmp_path):
    process = start_long_run(mock, tmp_path)
    children = psutil.Process(process.pid).children(recursive=True)
    killed_ns = monotonic_ns()
    process.kill()
    process.communicate()
    wait_for(lambda: not any(child.is_running() for child in children), "the load to stop by itself")
    ended = enginebench("report", "run")
    assert ended.code == 0, ended.err
    run = package.load(tmp_path / "run")
    assert run.meta["status"] == "crashed"
    frame = run.frame()
    done_ns = frame[frame.outcome == "ok"].done_ns
    assert len(done_ns) > 0
    assert killed_ns - done_ns.max() < 10 * NS_PER_S
    assert (tmp_path / "run" / "report.html").exists()
    assert "This run is not complete: it died" in ended.out
    assert list((tmp_path / "run" / "spool").glob("*.spool")) == []


def test_a_live_run_is_left_alone_by_report(enginebench, mock, tmp_path):
    process = start_long_run(mock, tmp_path)
    ended = enginebench("report", "run", "--format", "json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["status"] == "running"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 4, err


def test_resume_does_the_cells_that_are_missing_and_keeps_the_others(enginebench, mock, tmp_path):
    arguments = options(mock, "--concurrency", "1,2,4", "--requests", 8)
    assert enginebench("run", *arguments, "--out", "run").code == 0
    meta_path = tmp_path / "run" / "run.json"
    meta = json.loads(meta_path.read_text())
    meta["cells"][1]["finished"] = False
    meta["status"] = "interrupted"
    meta_path.write_text(json.dumps(meta))
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run" / "records").iterdir()}
    ended = enginebench("run", *arguments, "--resume", "run")
    assert ended.code == 0, ended.err
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run" / "records").iterdir()}
    assert [name for name in after if after[name] != before[name]] == ["endpoint-l2-r0-w0.parquet"]
    run = package.load(tmp_path / "run")
    assert run.meta["status"] == "done"
    assert sorted(cell.cell.level for cell in run.cells) == [1, 2, 4]
    assert all(cell.finished for cell in run.cells)


def test_resume_refuses_another_scenario(enginebench, mock):
    assert enginebench("run", *options(mock, "--concurrency", 1, "--requests", 2, "--out", "run")).code == 0
    ended = enginebench("run", *options(mock, "--concurrency", 2, "--requests", 2, "--resume", "run"))
    assert ended.code == 2
    assert "another scenario" in ended.err


def test_a_used_folder_is_never_written_over(enginebench, mock, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("precious")
    ended = enginebench("run", *options(mock, "--requests", 1, "--out", "run"))
    assert ended.code == 2
    assert "not empty" in ended.err
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine.txt"]


def test_a_launched_engine_that_dies_in_mid_level_fails_its_target_and_keeps_what_it_gave(tmp_path):
    scenario = {
        "name": "dies",
        "targets": [{"name": "m", "launch": "mock", "model": "mock", "options": {"base_ms": 2}}],
        "workload": {"input_tokens": 8, "output_tokens": 8},
        "load": {"levels": [2], "warmup": "0s", "duration": "60s"},
    }
    (tmp_path / "s.yaml").write_text(json.dumps(scenario))
    process = subprocess.Popen(
        [*PROGRAM, "run", "s.yaml", "--out", "run"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    spool = tmp_path / "run" / "spool" / "m-l2-r0-w0.spool"
    wait_for(lambda: spool.exists() and spool.stat().st_size > 10_000, "captures in the spool")
    engines = [p for p in psutil.Process(process.pid).children(recursive=True) if "mock" in p.cmdline()]
    engines[-1].kill()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "m ended by signal 9" in err
    assert "Traceback" not in err
    run = package.load(tmp_path / "run")
    assert run.meta["status"] == "failed"
    assert (run.frame().outcome == "ok").sum() > 0
    assert not run.cells[0].finished


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["run"], 2, "give a scenario file or --url"),
        (["run", "no-such.yaml"], 2, "no-such.yaml"),
        (["run", *NOBODY, "--model", "m", "--out", "x"], 3, "cannot reach http://127.0.0.1:9/v1"),
        (["run", *NOBODY], 2, "--model"),
        (["run", "--url", "http://93.184.215.14/v1", "--model", "m"], 2, "public host"),
        (["run", *NOBODY, "--model", "m", "--api-key-env", "NO_SUCH_VARIABLE"], 2, "NO_SUCH_VARIABLE"),
        (["report", "no-such-folder"], 2, "not a run folder"),
        (["list", "gadgets"], 2, "gadgets"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)  # fmt: skip
def test_mistakes_are_one_clear_line_and_no_traceback(enginebench, words, code, says):
    ended = enginebench(*words)
    assert ended.code == code
    assert says in ended.err
    assert "Traceback" not in ended.err + ended.out


def test_an_unknown_model_is_named_with_those_that_are_served(enginebench, mock):
    ended = enginebench("run", "--url", mock.base_url, "--model", "gpt-9", "--out", "x", *SHORT)
    assert ended.code == 3
    assert "gpt-9" in ended.err
    assert mock.model in ended.err


def test_the_key_reaches_the_server_and_nothing_else(tmp_path):
    seen: list[bytes] = []

    def leak(connection: Any, number: int) -> None:
        body = b'{"error": {"message": "Incorrect API key provided: sk-very-secret"}}'
        connection.sendall(b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    with scripted_server(leak) as server:
        done = subprocess.run(
            [*PROGRAM, "run", "--url", server.url, "--model", "m", "--concurrency", "1", "--requests", "3",
             "--api-key-env", "MY_KEY", "--warmup", "0s", "--out", "run"],
            cwd=tmp_path, capture_output=True, env={**os.environ, "MY_KEY": "sk-very-secret"}, timeout=60,
        )  # fmt: skip
        seen = list(server.requests)
    assert all(b"Bearer sk-very-secret" in request for request in seen[1:])
    assert b"very-secret" not in done.stdout + done.stderr
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or b"very-secret" not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["run", "quickstart", "--concurrency", "4", "--model", "m"],
            "--model, --concurrency: only with --url",
        ),
        (["run", *NOBODY, "--model", "m", "--only", "x"], "--only goes with a scenario"),
        (["run", "quickstart", "--out", "a", "--resume", "b"], "leave out --out"),
    ],
    ids=["options of --url", "--only", "--resume and --out"],
)
def test_an_option_that_would_be_ignored_is_refused(enginebench, words, says):
    ended = enginebench(*words)
    assert ended.code == 2
    assert says in ended.err


@pytest.mark.parametrize("key", ["two words", "two\nlines", "clé"])
def test_a_key_that_no_header_can_carry_is_refused_unquoted(enginebench, tmp_path, key):
    (tmp_path / "key").write_text(key)
    ended = enginebench("run", *NOBODY, "--model", "m", "--set", "targets.0.api_key_file=key", *SHORT)
    assert ended.code == 2
    assert "holds no API key" in ended.err
    assert key.split()[-1] not in ended.err


def test_the_limit_of_open_files_is_raised_for_the_workers_too(mock, tmp_path):
    words = [
        *PROGRAM,
        "run",
        *map(str, options(mock, "--concurrency", 120, "--requests", 120, "--out", "run")),
    ]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -Sn 100; exec "$@"', "bash", *words],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(package.load(tmp_path / "run").frame().outcome) == {"ok"}


def test_a_load_worker_that_is_killed_makes_the_run_a_failed_one(mock, tmp_path):
    process = start_long_run(mock, tmp_path)
    children = psutil.Process(process.pid).children(recursive=True)
    (worker,) = [child for child in children if child.net_connections(kind="tcp")]
    worker.kill()
    _, err = process.communicate(timeout=30)
    run = package.load(tmp_path / "run")
    assert process.returncode == 3, err
    assert run.meta["status"] == "failed"
    assert not run.cells[0].finished


def test_an_engine_that_is_not_installed_is_refused_before_anything_is_measured(tmp_path):
    """Also when it comes second: the first target's minutes would be lost time."""
    scenario = {
        "name": "second-missing",
        "targets": [
            {"name": "m", "launch": "mock", "model": "mock"},
            {"name": "l", "launch": "llamacpp", "via": "wheel", "model": "{engines}/models/tiny-llama.gguf"},
        ],
        "load": {"levels": [1], "warmup": "0s", "requests": 1},
    }
    (tmp_path / "s.yaml").write_text(json.dumps(scenario))
    done = subprocess.run(
        [*PROGRAM, "run", "s.yaml", "--out", "run"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
        env={**os.environ, "ENGINEBENCH_ENGINES": str(tmp_path / "none")},
    )  # fmt: skip
    assert done.returncode == 2
    assert "scripts/install-engines llamacpp" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("streams", [lambda gone: subprocess.PIPE, lambda gone: gone], ids=["stdout", "both"])
def test_a_reader_that_has_gone_changes_nothing_of_how_a_run_ends(tmp_path, streams):
    def refuse(connection: Any, number: int) -> None:
        connection.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")

    with scripted_server(refuse) as server:
        words = [
            "--url",
            server.url,
            "--model",
            "m",
            "--concurrency",
            1,
            "--requests",
            2,
            *SHORT,
            "--out",
            "run",
        ]
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = subprocess.run(
            [*PROGRAM, "run", *map(str, words)],
            cwd=tmp_path,
            stdout=write_end,
            stderr=streams(write_end),
            timeout=60,
        )
        os.close(write_end)
    assert done.returncode == 3
    assert (tmp_path / "run" / "report.html").exists()
    assert b"Traceback" not in (done.stderr or b"")
