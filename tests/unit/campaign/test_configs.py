"""The shipped files say what UPSTREAM.md and the traces' own checksums say."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from replay_parity.campaign.builtin import builtin_configs
from replay_parity.campaign.corpus_file import Corpus, Inline, Upstream
from replay_parity.campaign.loaded import LoadedCampaign
from replay_parity.campaign.loading import load_campaign
from replay_parity.campaign.row import Row
from replay_parity.campaign.sources import CrateSource
from replay_parity.campaign.yaml_reader import read_yaml

_CONFIGS = builtin_configs()
_CAMPAIGNS = sorted(path.stem for path in (_CONFIGS / "campaigns").iterdir())
_CONVERSATION = ["vllm-aggregated", "sglang-aggregated", "trtllm-aggregated", "vllm-disaggregated"]
_RUN_BY_0_12_1 = [
    "vllm-aggregated",
    "vllm-aggregated-adp2",
    "vllm-disaggregated",
    "sglang-aggregated",
    "sglang-aggregated-adp2",
    "sglang-disaggregated",
    "trtllm-aggregated",
    "trtllm-aggregated-adp2",
]
# Refused by 0.12.1, run by 0.13.0.
_RUN_BY_0_13_0_ONLY = [
    "vllm-disaggregated-adp2-4",
    "sglang-disaggregated-adp2-4",
    "trtllm-disaggregated",
    "trtllm-disaggregated-adp2-4",
]
_WORKLOADS = [
    "vllm-aggregated-closed-64",
    "sglang-aggregated-closed-64",
    "vllm-disaggregated-closed-64",
    "vllm-aggregated-agentic",
    "vllm-aggregated-agentic-64",
    "sglang-aggregated-agentic",
]
_MOONCAKE_FULL = "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df"
_MOONCAKE_5000 = "c2157405477e02aeaaa01e5fcc9794bd9ac146f64643a03aef067853471356b0"


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> LoadedCampaign:
    """All shipped rows in one campaign."""
    demo = (_CONFIGS / "campaigns" / "demo.yaml").read_text(encoding="utf-8")
    names = sorted(path.stem for path in (_CONFIGS / "rows").iterdir())
    path = tmp_path_factory.mktemp("all") / "all.yaml"
    path.write_text(demo.split("rows:")[0] + f"rows: [{', '.join(names)}]\n", encoding="utf-8")
    return load_campaign(path)


@pytest.fixture(scope="module")
def rows(everything: LoadedCampaign) -> dict[str, Row]:
    return {item.row.name: item.row for item in everything.rows}


def _corpus(path: Path) -> Corpus:
    return Corpus.model_validate(read_yaml(path.read_bytes(), path=path).data)


@pytest.mark.parametrize("name", _CAMPAIGNS)
def test_every_campaign_loads_and_is_called_like_its_file(name: str) -> None:
    assert load_campaign(Path(name)).campaign.name == name


@pytest.mark.parametrize("path", sorted((_CONFIGS / "corpora").iterdir()), ids=lambda path: path.stem)
def test_every_corpus_is_called_like_its_file_and_may_be_given_away(path: Path) -> None:
    corpus = _corpus(path)
    assert corpus.name == path.stem
    assert corpus.source.licence == "Apache-2.0"
    if isinstance(corpus.source, Inline):
        data = "".join(f"{line}\n" for line in corpus.source.lines).encode()
        assert hashlib.sha256(data).hexdigest() == corpus.source.full_sha256


def test_the_mooncake_corpora_are_the_published_ones() -> None:
    full = _corpus(_CONFIGS / "corpora" / "mooncake-conversation-full.yaml")
    part = _corpus(_CONFIGS / "corpora" / "mooncake-conversation-5000.yaml")
    assert full.source == part.source
    assert isinstance(full.source, Upstream)
    assert (full.source.full_rows, full.source.full_sha256) == (12_031, _MOONCAKE_FULL)
    assert (full.slice.rows, part.slice.rows, part.slice.sha256) == (12_031, 5_000, _MOONCAKE_5000)
    assert full.block_size == part.block_size == 512


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        (
            "demo",
            ["demo-vllm-aggregated", "demo-sglang-aggregated", "demo-trtllm-aggregated", "demo-vllm-disaggregated"],
        ),
        ("releases-0.12.1-0.13.0", _CONVERSATION),
        ("conversation-0.12.0-0.12.1", _RUN_BY_0_12_1),
        ("workloads-0.12.0-0.12.1", _WORKLOADS),
        ("releases-0.1.0-dev.2-0.12.1", _CONVERSATION),
    ],
)
def test_the_release_campaigns_compare_what_their_names_say(name: str, rows: list[str]) -> None:
    loaded = load_campaign(Path(name))
    assert [item.row.name for item in loaded.rows] == rows
    baseline, candidate = loaded.campaign.baseline, loaded.campaign.candidate
    assert isinstance(baseline, CrateSource)
    assert isinstance(candidate, CrateSource)
    kinds = {f"{kind}-{baseline.version}-{candidate.version}" for kind in ("releases", "conversation", "workloads")}
    assert name in {"demo", *kinds}
    assert baseline.dirty == (baseline.version == "0.1.0-dev.2")
    assert loaded.campaign.build.toolchain == "path"
    assert loaded.campaign.build.features == ()
    assert loaded.campaign.relationship is not None
    assert loaded.campaign.relationship.stated


def _capacity(rank: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(rank[key] for key in ("num_gpu_blocks", "block_size", "max_num_seqs", "max_num_batched_tokens"))


@pytest.mark.parametrize(
    ("name", "backend", "capacity", "pressure"),
    [
        ("vllm-aggregated", "vllm", (6_144, 64, 16, 8_192), ("vllm_preemptions", 1, 3)),
        ("sglang-aggregated", "sglang", (2_048, 512, 256, 32_768), ("sglang_retractions", 1, 3)),
        # 3,867 blocks in UPSTREAM.md: two requests do not fit there and come out short (see the row's comment).
        ("trtllm-aggregated", "trtllm", (3_899, 32, 16, 8_192), ("none", 0, 0)),
    ],
)
def test_the_aggregated_conversation_rows_have_their_qualified_capacities(
    rows: dict[str, Row], name: str, backend: str, capacity: tuple[int, ...], pressure: tuple[str, int, int]
) -> None:
    row = rows[name]
    rank = row.spec["engine"]["rank"]
    assert row.spec["topology"] == {"kind": "aggregated", "workers": {"initial_workers": 4}}
    assert (rank["backend"], _capacity(rank)) == (backend, capacity)
    bounds = row.evidence.pressure
    assert (bounds.kind, bounds.minimum, bounds.maximum) == pressure


def test_the_disaggregated_conversation_row_has_its_qualified_capacities(rows: dict[str, Row]) -> None:
    spec = rows["vllm-disaggregated"].spec
    engine = spec["engine"]
    assert spec["topology"]["prefill"] == spec["topology"]["decode"] == {"initial_workers": 2}
    assert _capacity(engine["prefill"]["rank"]) == (6_144, 64, 16, 8_192)
    assert _capacity(engine["decode"]["rank"]) == (7_168, 64, 16, 8_192)
    for role in ("prefill", "decode"):
        rank = engine[role]["rank"]
        assert (rank["kv_bytes_per_token"], rank["kv_transfer_bandwidth"]) == (131_072, 64.0)


@pytest.mark.parametrize(
    ("name", "backend", "prefill", "decode"),
    [
        # Workers, attention-DP ranks and capacity of each pool.
        ("vllm-aggregated-adp2", "vllm", None, (2, 2, (6_144, 64, 16, 8_192))),
        ("sglang-aggregated-adp2", "sglang", None, (2, 2, (2_048, 512, 256, 32_768))),
        ("trtllm-aggregated-adp2", "trtllm", None, (2, 2, (3_899, 32, 16, 8_192))),
        ("sglang-disaggregated", "sglang", (2, 1, (1_536, 512, 256, 32_768)), (2, 1, (1_600, 512, 256, 32_768))),
        ("trtllm-disaggregated", "trtllm", (2, 1, (3_899, 32, 16, 8_192)), (2, 1, (3_899, 32, 16, 8_192))),
        ("vllm-disaggregated-adp2-4", "vllm", (1, 2, (6_144, 64, 16, 8_192)), (1, 4, (7_168, 64, 16, 8_192))),
        ("sglang-disaggregated-adp2-4", "sglang", (1, 2, (1_536, 512, 256, 32_768)), (1, 4, (960, 512, 256, 32_768))),
        ("trtllm-disaggregated-adp2-4", "trtllm", (1, 2, (3_899, 32, 16, 8_192)), (1, 4, (3_899, 32, 16, 8_192))),
    ],
)
def test_the_other_conversation_rows_have_their_topologies_and_capacities(
    rows: dict[str, Row], name: str, backend: str, prefill: tuple[Any, ...] | None, decode: tuple[Any, ...]
) -> None:
    spec = rows[name].spec
    topology, engine = spec["topology"], spec["engine"]
    pools = [("workers", engine, decode)] if prefill is None else []
    pools += [("prefill", engine.get("prefill"), prefill), ("decode", engine.get("decode"), decode)] if prefill else []
    assert topology["kind"] == ("aggregated" if prefill is None else "disaggregated")
    for pool, ranks, wanted in pools:
        assert (topology[pool]["initial_workers"], ranks["dp_size"], _capacity(ranks["rank"])) == wanted
        assert ranks["rank"]["backend"] == backend


@pytest.mark.parametrize("name", [*_RUN_BY_0_12_1, *_RUN_BY_0_13_0_ONLY])
def test_the_conversation_rows_expect_only_what_the_trace_demands(rows: dict[str, Row], name: str) -> None:
    row = rows[name]
    assert row.corpus == "mooncake-conversation-5000"
    assert row.workload.arrival_speedup_ratio == (2.0 if name.startswith("sglang-disaggregated") else 4.0)
    assert row.expected.model_dump(exclude_none=True) == {
        "num_requests": 5_000,
        "completed_requests": 5_000,
        "total_input_tokens": 65_330_959,
        "requested_output_tokens": 1_730_337,
        "total_output_tokens": 1_730_337,
    }


@pytest.mark.parametrize("name", _WORKLOADS)
def test_the_workloads_have_their_kinds_and_caps(rows: dict[str, Row], name: str) -> None:
    workload, spec = rows[name].workload, rows[name].spec
    if "closed" in name:
        assert workload.kind == "closed_loop"
        assert workload.max_in_flight == spec["max_in_flight"] == 64
    else:
        assert workload.kind == "agentic"
        assert workload.lanes == (64 if name.endswith("-64") else None)
        assert "max_in_flight" not in spec


_POLYNOMIAL = {"type": "polynomial"}


@pytest.mark.parametrize(
    ("name", "workers", "ranks", "prefill", "decode", "pressure"),
    [
        # UPSTREAM.md, published golden points: workers of each pool, DP ranks, capacities.
        ("vllm-aggregated", (4,), (1,), None, (6_144, 64, 16, 8_192), "vllm_preemptions"),
        ("vllm-disaggregated", (2, 2), (1, 1), (9_000, 64, 16, 8_192), (9_000, 64, 16, 8_192), "vllm_preemptions"),
        ("sglang-aggregated", (4,), (1,), None, (1_536, 512, 256, 32_768), "sglang_retractions"),
        (
            "sglang-disaggregated",
            (2, 2),
            (1, 1),
            (12_500, 512, 256, 32_768),
            (12_500, 512, 256, 32_768),
            "sglang_retractions",
        ),
        ("trtllm-aggregated", (4,), (1,), None, (3_867, 32, 16, 8_192), "none"),
        (
            "vllm-disaggregated-adp2-4",
            (2, 2),
            (2, 4),
            (4_500, 64, 16, 8_192),
            (6_000, 64, 16, 8_192),
            "vllm_preemptions",
        ),
        (
            "sglang-disaggregated-adp2-4",
            (2, 2),
            (2, 4),
            (6_250, 512, 256, 32_768),
            (1_900, 512, 256, 32_768),
            "sglang_retractions",
        ),
        ("trtllm-disaggregated-adp2-4", (2, 2), (2, 4), (3_867, 32, 16, 8_192), (3_867, 32, 16, 8_192), "none"),
    ],
)
def test_the_published_rows_have_their_topologies_and_capacities(
    rows: dict[str, Row],
    name: str,
    workers: tuple[int, ...],
    ranks: tuple[int, ...],
    prefill: tuple[int, ...] | None,
    decode: tuple[int, ...],
    pressure: str,
) -> None:
    row = rows[f"arxiv-{name}"]
    assert (row.name_in_record, row.corpus, row.metadata) == (name, "mooncake-arxiv-5000", {})
    assert row.workload.kind == "trace"
    assert row.workload.arrival_speedup_ratio == 4.0
    topology, engine = row.spec["topology"], row.spec["engine"]
    pools = ["workers"] if prefill is None else ["prefill", "decode"]
    roles = [engine] if prefill is None else [engine["prefill"], engine["decode"]]
    assert tuple(topology[pool]["initial_workers"] for pool in pools) == workers
    assert tuple(role["dp_size"] for role in roles) == ranks
    assert [_capacity(role["rank"]) for role in roles] == ([decode] if prefill is None else [prefill, decode])
    for role in roles:
        assert (role["rank"]["timing_model"], role["tensor_parallel_size"]) == (_POLYNOMIAL, 1)
        if prefill is not None:
            transfer = 262_144 if name.startswith("sglang") else 1
            keys = ("kv_bytes_per_token", "kv_transfer_bandwidth", "kv_transfer_timing_mode")
            assert tuple(role["rank"][key] for key in keys) == (transfer, 100.0, "full_prompt")
    bounds = row.evidence.pressure
    assert (bounds.kind, bounds.minimum, bounds.maximum) == (pressure, *((0, 0) if pressure == "none" else (1, 3)))
    assert row.expected.model_dump(exclude_none=True) == {
        "num_requests": 5_000,
        "completed_requests": 5_000,
        "total_input_tokens": 46_542_297,
        "requested_output_tokens": 922_544,
        "total_output_tokens": 922_544,
    }


def test_no_row_binds_a_counter_that_a_release_may_change(rows: dict[str, Row]) -> None:
    every_revision = {
        "num_requests",
        "completed_requests",
        "total_input_tokens",
        "requested_output_tokens",
        "total_output_tokens",
    }
    for row in rows.values():
        assert set(row.expected.model_dump(exclude_none=True)) == every_revision


def test_every_row_fills_its_corpus(everything: LoadedCampaign) -> None:
    for item in everything.rows:
        assert item.row.expected.num_requests == everything.corpora[item.row.corpus].corpus.slice.rows
