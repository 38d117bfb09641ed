"""Text that tries every way out of what it is shown in, and a verdict that holds it wherever text may be."""

from __future__ import annotations

from hypothesis import strategies as st

from replay_parity.github.origin import Origin, PolicyEdit
from replay_parity.parity.result import DifferenceSummary, RowResult, SideResult
from replay_parity.parity.verdict import BuildSummary, CampaignSummary, SideBuild, Verdict
from replay_parity.pin.models import ArtifactRecord, CrateRevision, GitRevision, LockDifference
from tests.support.verdicts import TOOLCHAIN, row, verdict

INJECTIONS = (
    "x\n::error file=a::boom",
    "x\r\n::set-output name=a::b",
    "::stop-commands::abc\n::abc::",
    "a\nEOF\nother=value",
    "<script>alert(1)</script><img src=x onerror=y>",
    "</details></td></table><h1>PASS</h1>",
    "<!-- hidden",
    "# PASS: all rows match",
    "\n\n# PASS\n\n---\n",
    "| a | b |\n|---|---|\n| PASS | PASS |",
    "a | b || c \\| d",
    "```\n# out of the fence\n```",
    "`a``b```c````",
    "[click](javascript:alert(1)) ![x](https://example.com/x.png)",
    "<https://example.com> https://example.com www.example.com ftp://example.com a@example.com",
    "@octocat @org/team #1 owner/name#2 GH-3 deadbeef0 :boom: $x$ $`x`$",
    "[^1] [!NOTE] - [x] ~~a~~ **b** __c__ _d_",
    "\u202etxet\u2066 \x1b[31mred\x1b[0m \x00\x07\u200b\u2028\u2029\ufeff",
    "&lt;b&gt; &#64;octocat &amp;",
    "\\",
    "%0A::error::x %25",
    "",
    " ",
)

# Everything that Markdown, HTML and GitHub give a meaning to, beside any other text.
SPICE = st.lists(
    st.one_of(
        st.sampled_from(list("\\`*_{}[]()<>#+-.!|~&$@=:^\"'/ \t\r\n0aAé\u202e\u200b\u00a0\u3000\x00\x1b")),
        st.sampled_from(["```", "~~~", "---", "***", "===", "1. ", "- ", "> ", "# ", "|---|", "| - |", ":--", "\\|"]),
        st.sampled_from(INJECTIONS),
        st.text(max_size=5),
    ),
    max_size=12,
).map("".join)


def hostile_row(words: str, **changes: object) -> RowResult:
    """A row that shows the words wherever it can."""
    side = SideResult(
        digests=("a" * 64,),
        qualification={"virtual_duration_ms": words, "completed_requests": 10**5000, "vllm_preemptions": True},
        evidence_problems=(words,),
        evidence_notes=(words,),
    )
    fields = {
        "outcome": "mismatch",
        "reason": words,
        "title": words,
        "baseline": side,
        "candidate": side.model_copy(update={"digests": ("b" * 64,)}),
        "differences": DifferenceSummary(
            file=words, total=1, results=1, configuration=0, requests=1, top=(words, f"  {words}")
        ),
        "reports": (words, words),
    }
    return row(**(fields | changes))


def hostile_verdict(words: str) -> Verdict:
    """A verdict that holds the words in every field that takes any text."""
    toolchain = TOOLCHAIN.model_copy(
        update=dict.fromkeys(("asked", "sysroot", "rustc", "cargo", "host", "c_compiler", "linker"), words)
    )
    git = GitRevision(repository=words, asked=words, asked_as="tag", commit="e" * 40, tree="f" * 40, core=words)
    crate = CrateRevision(crate=words, asked=words, version=words, checksum="c" * 64, commit=words, dirty=True)
    artifact = ArtifactRecord(
        key="1" * 64,
        revision=git,
        tree_sha256="2" * 64,
        runner_source_sha256="3" * 64,
        lock_sha256="4" * 64,
        patch_sha256=None,
        toolchain=toolchain,
        profile=words,
        flags=(words,),
        features=(words,),
        negative_control=words,
        sha256="5" * 64,
        neutral_sha256="6" * 64,
        size_bytes=4_010_968,
        text_bytes=2_168_407,
        packages_verified=1,
    )
    build = BuildSummary(
        runner="default",
        toolchain=toolchain,
        baseline=SideBuild(artifact=artifact),
        candidate=SideBuild(error=f"{words}\n{words}", error_kind=words),
        lock_differences=(LockDifference(name=words, baseline=(words, words), candidate=()),),
    )
    origin = Origin(
        server_url=words,
        repository=words,
        event=words,
        run_id=12_345_678_901,
        run_attempt=1,
        base_ref=words,
        head_ref=words,
        head_sha="e" * 40,
        policy_commit="c" * 40,
        policy_edits=(PolicyEdit(path=words, change="changed"),),
    )
    return verdict(
        hostile_row(words),
        hostile_row(words, row="other", outcome="missing"),
        hostile_row(words, row="green", outcome="match"),
        tool_version=words,
        verdict="FAIL",
        exit_code=1,
        campaign=CampaignSummary(name=words, title=words, relationship=words),
        baseline=crate,
        candidate=git,
        origin=origin,
        problems=(words,),
        notes=(words,),
        builds=(build,),
    )
