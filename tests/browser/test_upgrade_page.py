"""The page of an upgrade in a real browser."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from afd_patchkit.findings.finding import Position
from afd_patchkit.reports.context import Context
from afd_patchkit.reports.upgrade.html import render_upgrade_html
from afd_patchkit.upgrade.result import UpgradeResult
from tests.reports.upgrade_samples import (
    ALL,
    ATTACK,
    CONFLICT,
    EMPTY,
    LATER,
    NEW,
    ODD,
    QUIET,
    REVIEW,
    WITHOUT_BASE,
    entry,
    many,
    ours,
    reason,
)

LIST = "#list .item-name"
OPEN_ALL = """
for (const button of document.querySelectorAll('.fold button')) button.click();
return [...document.querySelectorAll('table.diff tbody tr')].map(tr => [...tr.cells].map(c => [c.className, c.textContent]));
"""


def current(page) -> str | None:
    return page.js("const e = document.querySelector('#list [aria-current=true]'); return e && e.dataset.key")


def selected(page) -> str:
    return page.text(".tab[aria-selected=true]").split()[0]


# ---- finding one's way --------------------------------------------------------------------------------------------


def test_overview_comes_first(show):
    page = show([ALL])
    assert page.text("#title") == "acme 1.0 → 1.1"
    assert page.text("#verdict").startswith("5 entries need a person and 1 entry is to be deleted")
    rows = page.texts(".grid.table tbody tr")
    assert len(rows) == len(ALL.entries) - 1
    assert rows[0].startswith("missing")
    assert "acme_set/slicer.py" in page.text("#detail")
    assert page.driver.title == "acme 1.0 → 1.1"


def test_keys_walk_through_the_entries(show):
    page = show([ALL])
    names = page.texts(LIST)
    assert names[0] == "Runner.old"
    page.press("j")
    assert current(page) == "acme_set/runner.py::Runner.old"
    page.press("j", "j")
    assert current(page) == "acme_set/runner.py::Runner.step"
    assert page.text("#detail h2") == "Runner.step"
    page.press("k", "k", "k", "k")
    assert current(page) == "acme_set/runner.py::Runner.old"
    page.press(*"j" * (len(names) + 3))
    assert current(page) == "acme_set/runner.py::Runner.halves"
    page.press("o")
    assert current(page) is None
    assert page.js("return document.querySelector('#overview-button').getAttribute('aria-current')") == "true"


def test_filters_by_status(show):
    page = show([ALL])
    assert page.texts(".filter")[:3] == ["all 9", "missing 1", "conflict 1"]
    page.click(".filter[data-status=review]")
    assert page.texts(LIST) == ["Runner.step", "Runner.seen"]
    assert page.text("#count") == "2 of 9 entries"
    assert page.js("return document.activeElement.dataset.status") == "review"
    assert page.js("return document.querySelector('[data-status=review]').getAttribute('aria-pressed')") == "true"
    page.press("j", "j", "j")
    assert current(page) == "acme_set/runner.py::Runner.seen"
    page.click(".filter[data-status=review]")
    assert page.text("#count") == "9 entries"


def test_search_finds_names_deltas_and_findings(show):
    from selenium.webdriver.common.keys import Keys

    page = show([ALL])
    page.press("/", *"own rank")
    assert page.texts(LIST) == ["Runner.close"]
    assert page.js("return document.activeElement.id") == "search"
    page.press(Keys.ENTER)
    assert current(page) == "acme_set/runner.py::Runner.close"
    page.press("/", *"OVERLAP defined")
    assert page.texts(LIST) == ["Runner.halves"]
    page.press(Keys.ESCAPE)
    assert page.text("#count") == "9 entries"
    page.press("j")
    assert current(page) is not None


def test_keys_are_letters_while_one_types(show):
    page = show([ALL])
    page.press("/", "j", "o", "?")
    assert page.js("return document.getElementById('search').value") == "jo?"
    assert current(page) is None
    assert page.texts(LIST) == []
    assert page.text("#count") == "0 of 9 entries"


def test_help_opens_and_closes(show):
    from selenium.webdriver.common.keys import Keys

    page = show([ALL])
    page.press("?")
    assert page.js("return document.getElementById('help').open")
    page.press("j")
    assert current(page) is None
    page.press(Keys.ESCAPE)
    assert not page.js("return document.getElementById('help').open")


def test_address_remembers_where_one_is(show):
    page = show([ALL, LATER])
    page.press("]", "j", "j")
    here, fragment = current(page), page.js("return location.hash")
    assert here == "acme_set/runner.py::Runner.step"
    page.open(fragment)
    assert current(page) == here
    assert page.text("#title") == "acme 1.0 → 1.2"


# ---- differences --------------------------------------------------------------------------------------------------


def test_views_by_key_and_by_click(show):
    page = show([replace(ALL, entries=(REVIEW,))])
    page.press("j")
    seen = []
    for key in "123":
        page.press(key)
        seen.append((selected(page), page.texts(".diff thead th")))
    assert seen == [
        ("Upstream", ["upstream, old", "upstream, new"]),
        ("Delta", ["upstream, new", "generated, new"]),
        ("Generated", ["generated, old", "generated, new"]),
    ]
    page.press("4")  # there is none
    assert selected(page) == "Generated"
    page.click("#tab-upstream")
    assert selected(page) == "Upstream"
    from selenium.webdriver.common.keys import Keys

    page.press(Keys.ARROW_RIGHT)
    assert selected(page) == "Delta"
    assert page.js("return document.activeElement.id") == "tab-delta"
    page.press("u")
    assert page.texts(".diff thead th") == ["upstream, new  →  generated, new"]


def test_second_method_is_shown_where_it_differs(show):
    page = show([replace(ALL, entries=(CONFLICT,))])
    page.press("j", "4")
    assert selected(page) == "Second"


def test_changed_words_are_marked(show):
    page = show([replace(ALL, entries=(REVIEW,))])
    page.press("j", "1")
    assert page.texts(".diff .del .x, .diff td.del.code .x") == []
    assert page.texts(".diff .add .x") == [", ranks=self.ranks"]
    assert page.text(".hunks") == "2 changes"


def test_fences_are_marked(show):
    page = show([replace(ALL, entries=(REVIEW,))])
    page.press("j", "2", "u")
    assert [t.strip() for t in page.texts(".diff .fence")] == [
        "# ### PATCH START: ask first", "# ### PATCH END: ask first", "# ### PATCH START: halves", "# ### PATCH END: halves",
    ]  # fmt: skip
    inside = [t.strip() for t in page.texts(".diff .in-fence")]
    assert inside[0] == "if len(batch) > 1 and allowed(batch):"
    assert len(inside) == 5


def test_fences_of_another_prefix(show):
    item = replace(REVIEW, ours_new=ours(NEW).replace("### PATCH", "@@ ours"))
    page = show([replace(ALL, entries=(item,))], marker="@@ ours")
    page.press("j", "2", "u")
    assert len(page.texts(".diff .fence")) == 4


def test_colours_of_code(show):
    long = NEW.replace("Run one step.", "Run one step,\n        and return # if any.\n        ")
    page = show([replace(ALL, entries=(replace(REVIEW, new=long),))])
    page.press("j", "1", "u")
    assert {"def", "if", "return"} <= set(page.texts(".t-kw"))
    assert "        and return # if any." in page.texts(".t-str, .t-str .x")
    assert "# a batch may be large" in page.texts(".t-com")


def test_unchanged_runs_are_folded_and_unfold(show):
    long = "".join(f"line_{n} = {n}\n" for n in range(200))
    item = entry("clean", base=long, new=long.replace("line_100 ", "other_100 "), ours_old=long, ours_new=long)
    page = show([replace(ALL, entries=(item,))])
    page.press("j", "1")
    assert page.texts(".fold") == ["Show 96 unchanged lines", "Show 95 unchanged lines"]
    page.click(".fold button")
    assert page.texts(".fold") == ["Show 95 unchanged lines"]
    assert len(page.texts(".diff tbody tr")) == 96 + 4 + 1 + 4 + 1
    page.press("3")
    assert page.text(".diff-note") == "Both sides are equal."


def test_view_keys_bring_the_differences_into_view(show):
    page = show([replace(ALL, entries=(replace(REVIEW, reasons=REVIEW.deltas[1].reasons * 9),))])
    visible = (
        "const r = document.querySelector('.bar').getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight"
    )
    page.press("j")
    assert not page.js(visible)
    page.press("2")
    assert page.js(visible)


def test_next_and_previous_change(show):
    page = show([replace(ALL, entries=(REVIEW,))])
    page.press("j", "1", "n")
    first = page.text(".at")
    page.press("n", "n")
    assert page.text(".at") != first
    page.press("p")
    assert page.text(".at") == first


def test_what_is_not_at_hand_is_said(show):
    page = show([replace(WITHOUT_BASE, entries=WITHOUT_BASE.entries[2:3])])
    assert "The old upstream is not at hand" in page.text("#detail")
    page.press("j", "1")
    assert "the old upstream is not at hand; the lock's digests decided" in page.text(".diff-note")


def _random_pair(rng: random.Random) -> tuple[str, str]:
    words = ["a", "b", "c(x)", "", "    if d:", "# e", "f = 'g'", '"""', "\tz", "é日"]
    old = [rng.choice(words) for _ in range(rng.randrange(40))]
    new = list(old)
    for _ in range(rng.randrange(12)):
        at = rng.randrange(len(new) + 1)
        what = rng.randrange(4)
        if what == 0:
            new.insert(at, rng.choice(words))
        elif what == 1 and at < len(new):
            del new[at]
        elif what == 2 and at < len(new):
            new[at] += rng.choice(words)
        else:
            new[at:] = new[at:][::-1]
    return "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)


@pytest.mark.parametrize("split", [True, False])
def test_the_differences_are_right(show, split):
    """Both texts can be read off the table, whatever they are; and unchanged lines are not shown as changed."""
    rng = random.Random(26)
    pairs = [_random_pair(rng) for _ in range(120)]
    items = tuple(entry("clean", f"f{n:03}", base=old, new=new) for n, (old, new) in enumerate(pairs))
    page = show([replace(ALL, entries=items)])
    for number, (old, new) in enumerate(pairs):
        page.press("j")
        if number == 0:
            page.press("1", *([] if split else ["u"]))
        before, after, changed = [], [], 0
        for cells in page.js(OPEN_ALL):
            texts = [text.removesuffix("\u200b") for _, text in cells]
            if split:
                signs, sides = (texts[1], texts[4]), (texts[2], texts[5])
                before += [sides[0]] if texts[0] else []
                after += [sides[1]] if texts[3] else []
                changed += sum(map(bool, signs))
            else:
                before += [texts[3]] if texts[0] else []
                after += [texts[3]] if texts[1] else []
                changed += bool(texts[2])
        assert before == old.split("\n")[:-1], pairs[number]
        assert after == new.split("\n")[:-1], pairs[number]
        assert changed == len(before) + len(after) - 2 * _common(before, after), pairs[number]


def _common(a: list[str], b: list[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        last = 0
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], last + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def test_large_and_unlike_texts_still_show(show):
    old = "".join(f"a{n} = {n * 7919 % 1000}\n" for n in range(4000))
    new = "".join(f"b{n} = {n * 104729 % 1000}\n" for n in range(4000))
    page = show([replace(ALL, entries=(entry("review", base=old, new=new),))])
    page.press("j", "1")
    assert len(page.texts(".diff tbody tr")) == 4000
    assert page.text(".hunks") == "1 change"


# ---- several releases, many entries -------------------------------------------------------------------------------


def test_matrix_of_several_releases(show):
    page = show([QUIET, ALL, LATER])
    assert page.texts(".matrix thead th") == ["Entry", "1.0.1", "1.1", "1.2"]
    row = next(r for r in page.texts(".matrix tbody tr") if "Runner.step" in r)
    assert row == "Runner.stepacme_set/runner.py\u2013reviewconflict"
    page.click(".matrix td.s-conflict button")
    assert page.text("#title") == "acme 1.0 → 1.1"
    assert current(page) == "acme_set/runner.py::Runner.close"
    page.press("]")
    assert page.text("#title") == "acme 1.0 → 1.2"
    assert current(page) == "acme_set/runner.py::Runner.close"
    page.press("[", "[", "[")
    assert page.js("return document.getElementById('target').value") == "0"
    page.press("m")
    assert page.text("#detail h2") == "Entries over releases"


def test_five_hundred_entries(show):
    page = show([many(500)])
    assert len(page.texts(LIST)) == 500
    assert page.texts("table.diff") == []  # built when an entry is opened
    page.click(".filter[data-status=conflict]")
    assert page.text("#count") == "56 of 500 entries"
    page.press(*"jjjjjjjj")
    assert len(page.texts("table.diff")) == 1
    assert current(page) == page.js("return document.querySelectorAll('#list .item')[7].dataset.key")
    assert page.js(
        "const r = document.querySelector('#list [aria-current=true]').getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight"
    )


@pytest.mark.parametrize("result", [EMPTY, QUIET], ids=["empty", "quiet"])
def test_nothing_to_see(show, result: UpgradeResult):
    page = show([result])
    assert "pstream touched nothing" in page.text("#detail")
    page.press("j", "1", "n", "u")


# ---- safety, theme, size, access ----------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [True, False])
def test_hostile_text_stays_text(show, split):
    page = show([ODD, replace(ODD, new=ATTACK)], marker=ATTACK)
    page.press("m", "]", "[", "j", *("123" if split else "1u23"))
    assert page.js("return window.pwned") is None
    assert page.texts("img") == []
    assert len(page.texts("script")) == 2
    assert f"odd{ATTACK}" in page.text("#detail h2")
    assert "\u202e" not in page.js("return document.body.innerText")


def background(page) -> str:
    return page.js("return getComputedStyle(document.body).backgroundColor")


def test_dark_mode_follows_the_system_and_the_button(show):
    page = show([ALL])
    light = background(page)
    page.prefers("dark")
    dark = background(page)
    assert dark != light
    page.press("d")
    assert background(page) == light
    page.open()  # it is remembered
    assert background(page) == light
    page.click("#theme")
    assert background(page) == dark
    page.prefers("light")
    assert background(page) == dark


CONTRAST = r"""
const lum = (c) => { const v = c.slice(0, 3).map(x => { x /= 255; return x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4; }); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
const rgb = (s) => s.match(/[\d.]+/g).map(Number);
const back = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
const poor = {};
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n; (n = walk.nextNode());) {
  const e = n.parentElement;
  if (!n.data.trim() || !e.checkVisibility() || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(e.tagName)) continue;
  const [a, b] = [lum(rgb(getComputedStyle(e).color)), lum(back(e))].sort((x, y) => y - x);
  const ratio = (a + .05) / (b + .05);
  if (ratio < 4.5) poor[e.tagName + '.' + e.className + ' ' + n.data.trim().slice(0, 30)] = ratio.toFixed(2);
}
return poor;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible(show, scheme):
    page = show([QUIET, ALL], scheme=scheme)
    assert page.js(CONTRAST) == {}
    page.press("]", "o")
    assert page.js(CONTRAST) == {}
    for _ in range(4):
        page.press("j")
        for keys in ("1", "2", "3", "u", "u"):
            page.press(keys)
            assert page.js(CONTRAST) == {}


def test_controls_have_names_and_keys_reach_them(show):
    page = show([QUIET, ALL])
    page.press("]", "j", "j")
    nameless = page.js(
        "return [...document.querySelectorAll('button, select, input, a, table, nav, main')].filter(e =>"
        " !(e.textContent.trim() || e.getAttribute('aria-label') || (e.labels && e.labels.length))).map(e => e.outerHTML)"
    )
    assert nameless == []
    assert page.js("return document.querySelectorAll('[role=tab][tabindex=\"0\"]').length") == 1
    assert page.js("return document.querySelector('#diff').getAttribute('aria-labelledby')") == page.js(
        "return document.querySelector('[role=tab][aria-selected=true]').id"
    )
    assert page.js("return document.documentElement.lang") == "en"
    ids = page.js("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("width", [360, 700, 1100, 1900])
def test_nothing_is_wider_than_the_window(show, width):
    page = show(
        [QUIET, replace(ALL, entries=(*ALL.entries, replace(REVIEW, ref="m.py::" + "long_name_" * 12)))], width=width
    )
    for keys in ("", "]", "o", "jjj", "2", "3"):
        page.press(*keys)
        assert page.js("return document.documentElement.scrollWidth") <= width


def test_narrow_window_shows_one_thing_at_a_time(show):
    page = show([ALL], width=390)
    visible = "return document.querySelector(arguments[0]).checkVisibility()"
    assert page.js(visible, "#detail")
    assert not page.js(visible, ".side")
    page.click(".back")
    assert page.js(visible, ".side")
    assert not page.js(visible, "#detail")
    page.click("#list .item")
    assert page.js(visible, "#detail")
    assert page.text("#detail h2") == "Runner.old"
    page.press("j", "1")
    assert page.texts(".diff thead th") == ["upstream, old  →  upstream, new"]  # unified where there is no room for two


@pytest.fixture
def without_script(browser):
    """The browser with script turned off; what the tests ask of the page is still answered."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    yield
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", [1200, 400])
def test_without_script_everything_stands_open(show, without_script, width):
    page = show([replace(ALL, entries=(*ALL.entries, replace(REVIEW, ref="m.py::" + "long_name_" * 12)))], width=width)
    assert page.js("return document.documentElement.scrollWidth") <= width
    said = page.js("return document.querySelector('noscript').innerText")
    for wanted in (
        "6 entries need a person and 1 entry is to be deleted",
        "a statement next to the delta changed upstream",
        'afd-patchkit accept --pin acme=1.1 step --why "..."',
        "+        desc = self.dispatch(batch, ranks=self.ranks)",
        "acme_set/slicer.py",
    ):
        assert wanted in said
    visible = "return document.querySelector(arguments[0]).checkVisibility()"
    assert [page.js(visible, part) for part in (".panes", ".tools", "h1")] == [False, False, True]
    target = page.js("return document.querySelector('noscript a').getAttribute('href')")
    assert page.js("return document.querySelector(arguments[0]).querySelector('h2').textContent", target).startswith(
        "acme_set/runner.py::Runner.old"
    )
    assert page.js(CONTRAST) == {}


def test_without_script_hostile_text_stays_text(show, without_script):
    page = show([ODD, replace(ODD, new=ATTACK)], marker=ATTACK)
    assert page.texts("img") == []
    assert len(page.texts("script")) == 2
    said = page.js("return document.querySelector('noscript').innerText")
    assert f"odd{ATTACK}" in said
    assert "\u202e" not in said


def test_without_script_findings_are_told(browser, tmp_path, without_script):
    from afd_patchkit.findings.report import Report
    from afd_patchkit.reports.context import Context
    from afd_patchkit.reports.upgrade.html import render_findings_html

    path = tmp_path / "findings.html"
    path.write_text(
        render_findings_html(Report(findings=(reason(f"gone {ATTACK}"),)), Context("upgrade")), encoding="utf-8"
    )
    browser.get(path.as_uri())
    assert f"gone {ATTACK}" in browser.find_element("css selector", "noscript").text


# ---- what was viewed ------------------------------------------------------------------------------------------------


def seen(page) -> list[str]:
    return page.texts("#list .item.seen .item-name")


def test_viewed_marks_are_kept_until_what_is_shown_changes(show):
    page = show([ALL])
    page.press("v")
    assert seen(page) == [], "no entry is open"
    page.press("j", "j", "j", "v")
    assert seen(page) == ["Runner.step"]
    assert page.js("return document.querySelector('#viewed').checked")
    assert page.text("#count") == "9 entries, 1 viewed"
    page.press("j")
    assert not page.js("return document.querySelector('#viewed').checked")
    page.click("#viewed")
    assert seen(page) == ["Runner.step", "Runner.seen"]
    page.press("v")
    page.open()
    assert seen(page) == ["Runner.step"], "it is remembered, and the other mark was taken back"
    changed = replace(REVIEW, new=NEW + "        # one more line\n")
    for item, marks in ((REVIEW, ["Runner.step"]), (changed, []), (REVIEW, ["Runner.step"])):
        text = render_upgrade_html([replace(ALL, entries=(item,))], Context("upgrade"))
        page.path.write_text(text, encoding="utf-8")
        page.open()
        assert seen(page) == marks


@pytest.mark.parametrize("kept", ["{", '"x"', "17", "null"])
def test_what_is_kept_may_be_broken(show, kept):
    page = show([ALL])
    page.js("localStorage.setItem('afd-patchkit.viewed', arguments[0])", kept)
    page.open()
    page.press("j", "v")
    assert len(seen(page)) == 1


# ---- from a finding to its line, and to the command -----------------------------------------------------------------

LONG = (
    "def step(self, batch):\n"
    + "".join(f"    line_{n} = {n}\n" for n in range(40))
    + "    if batch:\n        out = self.run("
    + ", ".join(f"name_{n}=batch.name_{n}" for n in range(30))
    + ")\n    return out\n"
)
PLACED = replace(
    REVIEW, base=LONG, new=LONG.replace("batch.name_7", "batch.other"), file="acme/engine.py", base_lines=((100, 150),),
    new_lines=((200, 250),), reasons=(replace(reason(), upstream=Position("acme/engine.py", 210, 5)),),
)  # fmt: skip


def test_lines_have_the_numbers_of_their_file(show):
    page = show([replace(ALL, entries=(PLACED,))])
    page.press("j", "1")
    numbers = page.js(
        "return [...document.querySelectorAll('table.diff tbody td.no')].map(td => td.textContent).filter(Boolean)"
    )
    assert ("142" in numbers, "242" in numbers, "42" in numbers) == (True, True, False)


def test_a_finding_leads_to_its_line(show):
    page = show([replace(ALL, entries=(PLACED,))])
    page.press("j", "3")
    page.click(".to-line")
    assert page.js(
        "const row = document.querySelector('tr.at'); return [row.dataset.line, row.cells[5].textContent.trim()]"
    ) == ["210", "line_9 = 9"]
    assert selected(page) == "Upstream"


def test_the_command_can_be_copied(show):
    page = show([replace(ALL, entries=(PLACED,))])
    page.press("j")
    assert page.texts(".command code")[0] == 'afd-patchkit accept --pin acme=1.1 step --why "..."'
    assert (
        page.js("return document.querySelector('.copy').dataset.text")
        == 'afd-patchkit accept --pin acme=1.1 step --why "..."'
    )


@pytest.mark.parametrize("width", [1200, 400])
def test_what_does_not_fit_goes_on_further_in(show, width):
    page = show([replace(ALL, entries=(PLACED,))], width=width)
    page.js("document.querySelector('#list .item').click()")
    page.js("document.querySelector('#tab-upstream').click()")
    edges = page.js("""
        const cell = [...document.querySelectorAll('table.diff td.code')].find(td => td.textContent.includes('self.run'));
        const range = document.createRange();
        range.selectNodeContents(cell);
        const first = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        const lefts = new Map();
        for (const box of range.getClientRects()) { const top = Math.round(box.top); lefts.set(top, Math.min(lefts.get(top) ?? 1e9, box.left)); }
        const all = [...lefts.entries()].sort((a, b) => a[0] - b[0]).map(e => e[1]);
        return [all[0], Math.min(...all.slice(1)), document.documentElement.scrollWidth];
    """)
    assert edges[1] > edges[0] + 20
    assert edges[2] <= width
