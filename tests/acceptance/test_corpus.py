"""`replay-parity corpus` as a user runs it; traces come from a real HTTP server on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from replay_parity.campaign.corpus_file import Corpus
from tests.support.cli import replay_parity
from tests.support.trace_server import Handler, TraceServer, good, status, trace_server

DATA = b"".join(
    b'{"timestamp": %d, "input_length": 600, "output_length": %d, "hash_ids": [0, %d]}\n' % (number, number, number + 1)
    for number in range(2_000)
)
LINES = DATA.splitlines(keepends=True)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def corpus_file(folder: Path, *, name: str = "small", start: int = 5, rows: int = 100, **source: Any) -> Path:
    path = folder / f"{name}.yaml"
    document = {
        "schema_version": 1,
        "name": name,
        "title": "A small trace",
        "format": "mooncake",
        "block_size": 512,
        "source": {
            "kind": "upstream",
            "repository": "https://github.com/some/traces",
            "commit": "1" * 40,
            "path": "trace.jsonl",
            "licence": "Apache-2.0",
            "full_rows": len(LINES),
            "full_sha256": digest(DATA),
        }
        | source,
        "slice": {"start": start, "rows": rows, "sha256": digest(b"".join(LINES[start : start + rows]))},
    }
    path.write_text(yaml.safe_dump(document))
    return path


def environment(folder: Path, server: TraceServer | None = None) -> dict[str, str]:
    found = {"REPLAY_PARITY_CACHE": str(folder / "cache")}
    return found if server is None else found | {"REPLAY_PARITY_TRACE_URL": server.template}


def corpus(*arguments: str, cwd: Path, server: TraceServer | None = None) -> subprocess.CompletedProcess[str]:
    return replay_parity("corpus", *arguments, cwd=cwd, env=environment(cwd, server))


def test_fetch_verify_show_work_together(tmp_path: Path) -> None:
    file = str(corpus_file(tmp_path))
    before = corpus("verify", file, cwd=tmp_path)
    assert before.returncode == 2
    assert "`replay-parity corpus fetch small` gets it" in before.stderr
    assert "No proven trace is here" in corpus("show", file, cwd=tmp_path).stdout
    with trace_server(DATA) as server:
        done = corpus("fetch", file, cwd=tmp_path, server=server)
    assert (done.returncode, done.stdout) == (0, f"small: OK, 100 rows, SHA-256 {digest(b''.join(LINES[5:105]))}\n")
    assert "fetching corpus small from https://github.com/some/traces at 111111111111" in done.stderr
    verified = corpus("verify", file, "-q", cwd=tmp_path)
    assert (verified.returncode, verified.stderr) == (0, "")
    assert "OK  " in verified.stdout
    assert "1" * 40 in verified.stdout
    shown = json.loads(corpus("show", file, "--json", cwd=tmp_path).stdout)
    assert shown["corpus"]["slice"]["rows"] == shown["facts"]["requests"] == 100
    assert shown["facts"]["input_tokens"]["total"] == 60_000


def test_a_wrong_trace_is_exit_code_2_in_one_sentence(tmp_path: Path) -> None:
    wrong = DATA.replace(b"600", b"601", 1)
    with trace_server(wrong) as server:
        done = corpus("fetch", str(corpus_file(tmp_path)), "-q", cwd=tmp_path, server=server)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert digest(wrong) in done.stderr
    assert digest(DATA) in done.stderr


def test_a_failing_network_is_exit_code_3_and_the_same_command_continues(tmp_path: Path) -> None:
    file = str(corpus_file(tmp_path))
    with trace_server(DATA, good(DATA, sent=10_000), status(429, Retry_After="900"), good(DATA)) as server:
        done = corpus("fetch", file, "-q", "--time-limit", "30", cwd=tmp_path, server=server)
        assert done.returncode == 3
        assert "the same command continues" in done.stderr
        assert corpus("fetch", file, "-q", cwd=tmp_path, server=server).returncode == 0
        assert server.ranges() == [None, "bytes=10000-", "bytes=10000-"]


def test_nothing_named_is_refused(tmp_path: Path) -> None:
    done = corpus("fetch", cwd=tmp_path)
    assert done.returncode == 2
    assert "no corpus is named" in done.stderr


def test_two_processes_at_once_fetch_it_once_and_both_end_well(tmp_path: Path) -> None:
    def slow(handler: Handler) -> None:
        time.sleep(2)
        good(DATA)(handler)

    file = str(corpus_file(tmp_path))
    with trace_server(DATA, slow) as server:
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "replay_parity", "corpus", "fetch", file],
                cwd=tmp_path,
                env={**os.environ, **environment(tmp_path, server)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        ended = [process.communicate(timeout=60) for process in running]
        assert [process.returncode for process in running] == [0, 0]
        assert [out for out, _ in ended] == [f"small: OK, 100 rows, SHA-256 {digest(b''.join(LINES[5:105]))}\n"] * 2
        assert sum("another process fetches this trace" in err for _, err in ended) == 1
        assert len(server.asked) == 1


def test_a_campaign_fetches_what_its_rows_need_and_then_has_it(tmp_path: Path) -> None:
    (tmp_path / "corpora").mkdir()
    (tmp_path / "rows").mkdir()
    corpus_file(tmp_path / "corpora")
    corpus_file(tmp_path / "corpora", name="other", start=0, rows=7)
    shipped = Path(__file__).parents[2] / "configs"
    row = yaml.safe_load((shipped / "rows" / "demo-vllm-aggregated.yaml").read_text())
    del row["expected"]
    for name in ("small", "other"):
        (tmp_path / "rows" / f"{name}.yaml").write_text(yaml.safe_dump(row | {"name": name, "corpus": name}))
    campaign = yaml.safe_load((shipped / "campaigns" / "demo.yaml").read_text())
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(campaign | {"name": "mine", "rows": ["small", "other"]}))
    with trace_server(DATA) as server:
        done = corpus("fetch", "--campaign", str(path), "-q", cwd=tmp_path, server=server)
        assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["small", "other"]
        # Two slices of one trace: one download.
        assert len(server.asked) == 1
    # By name, out of the folder where the user is.
    assert corpus("verify", "other", cwd=tmp_path).returncode == 0


def test_verify_tells_every_distinct_problem_with_its_line(tmp_path: Path) -> None:
    broken = b"".join([*LINES[:10], b"\n", *LINES[10:20], b"[1]\n", *LINES[20:]])
    trace = tmp_path / "broken.jsonl"
    trace.write_bytes(broken)
    done = corpus("verify", str(corpus_file(tmp_path)), str(trace), "-q", cwd=tmp_path)
    assert done.returncode == 2
    assert f"{trace}: line 11 is blank\n{trace}: line 22 is not a JSON object\n" in done.stdout
    assert digest(broken) in done.stderr
    assert trace.read_bytes() == broken


def test_control_characters_of_a_trace_do_not_reach_the_terminal(tmp_path: Path) -> None:
    trace = tmp_path / "hostile.jsonl"
    trace.write_bytes(b'{"\\u001b]0;owned\\u0007": 1, "\\u001b]0;owned\\u0007": 2}\n')
    done = corpus("verify", str(corpus_file(tmp_path, start=0)), str(trace), "-q", cwd=tmp_path)
    assert done.returncode == 2
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["nothing", "nothing.yaml", "mooncake-conversation-500"])
def test_an_unknown_corpus(name: str, tmp_path: Path) -> None:
    done = corpus("show", name, cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no " in done.stderr


def test_a_broken_corpus_file_names_its_lines(tmp_path: Path) -> None:
    path = corpus_file(tmp_path)
    path.write_text(path.read_text().replace("format: mooncake", "format: weka").replace("rows: 100", "rows: 0"))
    done = corpus("show", str(path), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count(f"{path.name}:") == 2
    assert "mooncake" in done.stderr
    assert "agentic_mooncake" in done.stderr


def test_the_derived_corpus_is_shown_without_any_file(tmp_path: Path) -> None:
    done = corpus("show", "agentic-sessions-400", cwd=tmp_path)
    assert done.returncode == 0
    assert "agentic-v1, seed 1, from embedded-sessions-5000" in done.stdout
    assert "400 in 159 sessions" in done.stdout


def test_slice_proposes_a_corpus_file_that_verifies(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_bytes(DATA)
    asked = ("slice", "trace.jsonl", "--start", "7", "--rows", "50", "--output", "mine.jsonl")
    origin = ("--repository", "https://github.com/some/traces", "--commit", "1" * 40, "--licence", "MIT")
    done = corpus(*asked, *origin, "--path", "a/trace.jsonl", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "mine.jsonl").read_bytes() == b"".join(LINES[7:57])
    proposed = Corpus.model_validate(yaml.safe_load(done.stdout))
    assert proposed.source.full_sha256 == digest(DATA)
    assert "Fill in" not in done.stdout
    again = corpus(*asked, "--corpus-file", "mine.yaml", cwd=tmp_path)
    assert again.returncode == 0
    assert (
        "# Fill in where the trace is published: repository, commit, path, licence."
        in (tmp_path / "mine.yaml").read_text()
    )
    assert corpus("verify", "mine.yaml", "mine.jsonl", cwd=tmp_path).returncode == 0
    assert corpus("verify", "mine.yaml", "trace.jsonl", cwd=tmp_path).returncode == 0
    third = corpus(*asked, "--corpus-file", "mine.yaml", cwd=tmp_path)
    assert third.returncode == 2
    assert "mine.yaml: is there already" in third.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--start", "1990", "--rows", "11"), "has 2,000 rows, so there are 10 from row 1990 on, but 11 are asked for"),
        (("--start", "0", "--rows", "1", "--format", "weka"), "there is no trace format 'weka'"),
        (("--start", "1", "--rows", "1", "--format", "agentic_mooncake"), "must start at 0, because its header line"),
        (
            ("--start", "0", "--rows", "1", "--block-size", "16"),
            "line 1 has an input_length of 600, but hash_ids for 32",
        ),
        (("--start", "0", "--rows", "1", "--output", "trace.jsonl"), "is the trace itself"),
    ],
)
def test_a_slice_that_is_refused_leaves_nothing(options: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_bytes(DATA)
    done = corpus("slice", "trace.jsonl", "--output", "new.jsonl", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["trace.jsonl"]
    assert (tmp_path / "trace.jsonl").read_bytes() == DATA


def test_the_trace_to_cut_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(DATA)
    (tmp_path / "trace.jsonl").symlink_to("real")
    done = corpus("slice", "trace.jsonl", "--start", "0", "--rows", "1", "--output", "new.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "is a symbolic link; give the file itself" in done.stderr
