"""The page of verdicts, and what is read from it for the next run."""

from __future__ import annotations

from pathlib import Path

from afd_patchkit.findings.finding import Position
from tools.mutation.code import code_mutations
from tools.mutation.deltas import Mutation, mutations, own_code
from tools.mutation.judge import Verdict
from tools.mutation.page import code_page, page, read_code_page, read_page, read_reasons, with_part

VERDICTS = [
    (
        Mutation("set/a.py", "set/a.py::f", "one | two", Position("a.yaml", 3)),
        Verdict("killed", "tests/dbo/test_a.py::test_x[a|b]", "assert"),
    ),
    (
        Mutation("set/a.py", "set/a.py::A.g", "three", Position("a.yaml", 9)),
        Verdict("refused", "PK203 PK232", "no match"),
    ),
    (Mutation("set/b.py", "set/b.py::h", "four", Position("b.yaml", 9)), Verdict("survived", said="7 test files pass")),
    (
        Mutation("set/b.py", "set/b.py::h", "five", Position("b.yaml", 19)),
        Verdict("timeout", "tests/dbo/test_b.py", "not done within 5 s"),
    ),
]


def test_the_page_says_who_noticed():
    text = page(VERDICTS, vllm="0.26.0", ascend=False)
    assert "| a | 2 | 1 | 1 | 0 |" in text
    assert "| b | 2 | 0 | 0 | 2 |" in text
    assert "| all | 4 | 1 | 1 | 2 |" in text
    assert "| `f` | one \\| two | `tests/dbo/test_a.py::test_x[a\\|b]` |" in text
    assert "| `A.g` | three | `regen`: PK203 PK232 |" in text
    assert "| `h` | four | **survived**: 7 test files pass |" in text
    assert "| `h` | five | **timeout**: not done within 5 s |" in text
    assert "vllm-ascend was not there" in text


def test_the_page_is_read_back():
    assert read_page(page(VERDICTS, vllm="0.26.0", ascend=True)) == {
        "a.py::f/one | two": Verdict("killed", "tests/dbo/test_a.py::test_x[a|b]"), "a.py::A.g/three": Verdict("refused", "PK203 PK232"),
        "b.py::h/four": Verdict("survived"), "b.py::h/five": Verdict("survived"),
    }  # fmt: skip


def test_the_committed_page_has_every_delta_and_each_is_noticed(root: Path):
    files = sorted((root / "manifests/vllm_v026_mrv2_dbo").glob("*.yaml"))
    deltas = [m.name for file in files for m in mutations(file.read_bytes(), file.name)]
    text = (root / "docs/mutations.md").read_text(encoding="utf-8")
    assert list(read_page(text)) == deltas, "run tools/mutate --write"
    assert "**survived**" not in text
    assert "**timeout**" not in text


def test_the_two_parts_are_written_one_at_a_time():
    first, code = (
        page(VERDICTS, vllm="0.26.0", ascend=True),
        code_mutations("def f(a):\n    return a == 1\n", "afd_backports/set/a.py"),
    )
    verdicts = [(code[0], Verdict("killed", "t")), (code[1], Verdict("survived", said="2 tests pass"))]
    second = code_page(verdicts, {code[1].name: "a | b"}, ascend=True, all_of={"a": 2}, own={"a": "12ab"})
    assert "| `f` | `return a == 1 => return a == 2` | a \\| b |" in second
    both = with_part(with_part("", first), second)
    assert both == with_part(with_part(with_part("", second), first), second) == with_part(both, first)
    assert read_page(both) == read_page(first)


def test_reasons_are_of_lines_that_are_there(root: Path):
    texts = {
        path.stem: " ".join(path.read_text(encoding="utf-8").split())
        for folder in ("vllm_v026_mrv2_dbo", "vllm_v026_mrv2_dbo/parts") for path in (root / "manifests" / folder).iterdir() if path.suffix == ".py"
    }  # fmt: skip
    for name in read_reasons():
        module, _, rest = name.partition(".py::")
        line = rest.partition(": ")[2].partition(" => ")[0]
        assert " ".join(line.removesuffix(" ...").split()) in texts[module], f"run tools/mutate --code, and see {name}"


def test_modules_are_judged_one_by_one():
    code = [
        *code_mutations("def f(a):\n    return a == 1\n", "afd_backports/set/a.py"),
        *code_mutations("def f(a):\n    return -a\n", "afd_backports/set/b.py"),
    ]
    in_b = code_mutations("def g(a):\n    return a + 1\n", "afd_backports/set/b.py")
    all_of, own = {"a": 2, "b": 2, "c": 5}, {"a": "aa1", "b": "bb2", "c": "cc3"}
    assert len(code) == len(in_b) == 2
    of = {"ascend": True, "all_of": all_of, "own": own}
    first = code_page([(m, Verdict("survived", said="2 tests pass")) for m in code], {}, **of)
    assert (
        "| a | 2 | 0 | 2 | `aa1` |\n| b | 2 | - | - | `bb2` |\n| c | 5 | - | - | `cc3` |\n| all | 9 | 0 | 2 |  |\n"
        in first
    )
    verdicts = [(in_b[0], Verdict("killed", "t")), (in_b[1], Verdict("survived"))]
    second = code_page(verdicts, {in_b[1].name: "why"}, **of, old=first)
    assert (
        "| a | 2 | 0 | 2 | `aa1` |\n| b | 2 | 1 | 1 | `bb2` |\n| c | 5 | - | - | `cc3` |\n| all | 9 | 1 | 3 |  |\n"
        in second
    )
    assert second.count("**survived**: 2 tests pass") == 2
    assert second.endswith("| why |\n")
    assert {name: judged.code for name, judged in read_code_page(second).items()} == {"a": "aa1", "b": "bb2"}
    again = code_page(verdicts, {in_b[1].name: "why"}, **of, old=second)
    assert again == second
    for changed in ({"all_of": {**all_of, "a": 3}}, {"own": {**own, "a": "aa2"}}):
        more = code_page(verdicts, {}, **{**of, **changed}, old=second)
        assert f"| a | {3 if 'all_of' in changed else 2} | - | - |" in more, (
            "what was judged is not what is there any more"
        )
        assert "2 tests pass" not in more


def test_the_committed_page_judges_the_code_that_is_there(root: Path):
    judged = read_code_page((root / "docs/mutations.md").read_text(encoding="utf-8"))
    folder = root / "manifests/vllm_v026_mrv2_dbo"
    own = dict(own_code(path.read_bytes(), path.name, folder) for path in folder.glob("*.yaml"))
    codes = {Path(module).stem: code for module, code in own.items() if code}
    stale = {module for module, code in codes.items() if module not in judged or judged[module].code != code}
    assert codes.keys() >= judged.keys()
    assert not stale, "run tools/mutate --code --write --module with each of these"


def test_the_committed_page_has_no_survivor_without_a_reason(root: Path):
    judged = read_code_page((root / "docs/mutations.md").read_text(encoding="utf-8"))
    assert judged, "run tools/mutate --code --write"
    rows = [line for module in judged.values() for line in module.section if line.startswith("| `")]
    assert len(rows) == sum(module.counts[2] for module in judged.values())
    reasons = [
        reason.replace("|", "\\|") for name, reason in read_reasons().items() if name.partition(".py::")[0] in judged
    ]
    assert sorted(row.rpartition("` | ")[2].removesuffix(" |") for row in rows) == sorted(reasons), (
        "each survivor has its reason, and each reason its survivor"
    )
