from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from replay_parity.campaign.builtin import builtin_configs
from replay_parity.campaign.loaded import LoadedCampaign
from replay_parity.campaign.loading import load_campaign, load_rows
from replay_parity.campaign.sources import CrateSource, GitSource
from replay_parity.errors import BadInputError, ManyErrors
from replay_parity.system.files import read_capped

if TYPE_CHECKING:
    from tests.unit.campaign.conftest import Desk


def _titles(loaded: LoadedCampaign) -> dict[str, str]:
    return {item.row.name: item.row.title for item in loaded.rows}


def _refusal(path: Path) -> str:
    with pytest.raises(ManyErrors) as caught:
        load_campaign(path)
    return str(caught.value)


def test_a_campaign_comes_with_its_rows_in_order_and_their_corpora(desk: Desk) -> None:
    path = desk.campaign("zebra", "{name: preflight-vllm-two-workers}", "{file: deep/ant.yaml}")
    zebra, ant = desk.row("rows/zebra.yaml"), desk.row("deep/ant.yaml")
    loaded = load_campaign(path)
    assert isinstance(loaded.campaign.baseline, CrateSource)
    assert isinstance(loaded.campaign.candidate, GitSource)
    assert loaded.path == path
    builtin = builtin_configs() / "rows" / "preflight-vllm-two-workers.yaml"
    assert [(item.row.name, item.path) for item in loaded.rows] == [
        ("zebra", zebra),
        ("preflight-vllm-two-workers", builtin),
        ("ant", ant),
    ]
    assert sorted(loaded.corpora) == ["preflight-four-requests", "preflight-one-request"]
    assert loaded.corpora["preflight-one-request"].corpus.slice.rows == 1
    assert loaded.corpora["preflight-one-request"].trace_file is None


def test_names_are_looked_for_beside_the_campaign_then_beside_its_folder_then_built_in(desk: Desk) -> None:
    name = "preflight-vllm-one-worker"
    path = desk.campaign(name, at="campaigns/c.yaml")
    assert _titles(load_campaign(path)) == {name: "vLLM preflight, one worker, one request"}
    desk.row(f"rows/{name}.yaml", title="beside the folder")
    assert _titles(load_campaign(path)) == {name: "beside the folder"}
    desk.row(f"campaigns/rows/{name}.yaml", title="beside the file")
    assert _titles(load_campaign(path)) == {name: "beside the file"}


def test_own_corpora_come_before_the_built_in_ones(desk: Desk) -> None:
    path = desk.campaign("preflight-vllm-one-worker")
    source = builtin_configs() / "corpora" / "preflight-one-request.yaml"
    own = desk.write(f"corpora/{source.name}", source.read_text(encoding="utf-8"))
    assert load_campaign(path).corpora["preflight-one-request"].path == own


@pytest.mark.parametrize("name", ["demo", "releases-0.12.1-0.13.0"])
def test_a_bare_name_is_a_built_in_campaign_even_beside_a_file_of_that_name(
    name: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.folder)
    desk.write(name, "not a campaign")
    assert load_campaign(Path(name)).path == builtin_configs() / "campaigns" / f"{name}.yaml"


def test_an_unknown_bare_name_is_told_what_there_is() -> None:
    there = ", ".join(sorted(path.stem for path in (builtin_configs() / "campaigns").glob("*.yaml")))
    assert "demo, releases-0.1.0-dev.2-0.12.1, releases-0.12.1-0.13.0, template-git" in there
    assert _refusal(Path("dmeo")) == (
        f"there is no built-in campaign 'dmeo' (there are {there}; a file is given with its .yaml)"
    )


def test_files_that_cannot_be_read_are_bad_input(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.folder)
    assert _refusal(Path("absent.yaml")) == "absent.yaml: there is no such file"
    assert _refusal(desk.folder / "absent.yaml") == "absent.yaml: there is no such file"
    (desk.folder / "folder.yaml").mkdir()
    assert _refusal(Path("folder.yaml")) == "folder.yaml: is not a regular file"
    desk.write("big.yaml", "#" * 2_000_000)
    assert _refusal(Path("big.yaml")) == "big.yaml: is 2,000,000 bytes long, at most 1,048,576 are read"
    (desk.folder / "link.yaml").symlink_to(desk.campaign("absent"))
    assert _refusal(Path("./link.yaml")) == "link.yaml: is a symbolic link; give the file itself"


def test_rows_that_cannot_be_read_are_all_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.folder)
    path = desk.campaign("one", "two", "{file: three.yaml}")
    desk.write("rows/one.yaml", "a: ]")
    (desk.folder / "rows" / "two.yaml").mkdir()
    desk.write("three.yaml", "a: *b")
    assert [line.split(" ")[0] for line in _refusal(path).splitlines()] == [
        "rows/one.yaml:1:",
        "rows/two.yaml:",
        "three.yaml:1:",
    ]


def test_each_of_256_rows_is_read_once_and_their_corpus_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"row-{number}" for number in range(256)]
    for name in names:
        desk.row(f"rows/{name}.yaml")
    read: list[Path] = []

    def counted(path: Path, *, cap: int) -> bytes:
        read.append(path)
        return read_capped(path, cap=cap)

    monkeypatch.setattr("replay_parity.campaign.loading.read_capped", counted)
    loaded = load_campaign(desk.campaign(*names))
    assert [item.row.name for item in loaded.rows] == names
    assert len(read) == len(set(read)) == 256 + 2


@pytest.mark.parametrize(
    ("workload", "spec"),
    [
        ("{kind: closed_loop, max_in_flight: 8}", "{max_in_flight: 8, requests: []}"),
        ("{kind: trace}", "{max_in_flight: null, max_sim_time_ms: null, adapters: null, kvbm: ~, requests: []}"),
        (
            "{kind: trace}",
            "{adapters: {placement: {provider: round_robin, config: null}, scaling: {provider: none, config: {}}}}",
        ),
        ("{kind: trace}", "{engine: {rank: {native_host_offload: null, timing_model: {type: polynomial}}}}"),
    ],
)
def test_what_rule_10_allows_is_accepted(workload: str, spec: str, desk: Desk) -> None:
    desk.row("rows/row.yaml", workload=workload, spec=spec)
    assert load_campaign(desk.campaign("row")).rows


def test_a_flood_of_problems_is_cut(desk: Desk) -> None:
    desk.row("rows/row.yaml", **{f"key{number}": "1" for number in range(200)})
    told = _refusal(desk.campaign("row")).splitlines()
    assert len(told) == 51
    assert told[-1].endswith("/key50: this and 149 more places are wrong")


def test_the_engine_gets_what_is_written(desk: Desk) -> None:
    desk.row(
        "rows/row.yaml",
        spec="{engine: {rank: {num_gpu_blocks: 18446744073709551615, speedup_ratio: 1.0, flag: true, a: 0x1f, b: ~}}}",
    )
    rank: dict[str, Any] = {
        "num_gpu_blocks": 2**64 - 1,
        "speedup_ratio": 1.0,
        "flag": True,
        "a": "0x1f",
        "b": None,
    }
    assert repr(load_campaign(desk.campaign("row")).rows[0].row.spec) == repr({"engine": {"rank": rank}})


def test_rows_are_loaded_without_a_campaign_by_name_and_by_file(tmp_path: Path) -> None:
    file = builtin_configs() / "rows" / "demo-sglang-aggregated.yaml"
    found = load_rows(["demo-vllm-aggregated", str(file), "demo-vllm-aggregated"], folder=tmp_path)
    assert [item.row.name for item in found.rows] == ["demo-vllm-aggregated", "demo-sglang-aggregated"]
    assert set(found.corpora) == {"embedded-sessions-5000"}


def test_an_unknown_row_without_a_campaign_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as caught:
        load_rows(["demo-vllm-agregated"], folder=tmp_path)
    assert "there is no row 'demo-vllm-agregated'" in str(caught.value)
    assert "did you mean 'demo-vllm-aggregated'?" in str(caught.value)


def test_a_row_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ManyErrors) as caught:
        load_rows([str(tmp_path / "gone.yaml")], folder=tmp_path)
    assert "gone.yaml" in str(caught.value)
