"""Substitutions are restored always, nest, and report what others have put in the same place; hooks around replays."""

from __future__ import annotations

import contextlib
import itertools
import types
from unittest import mock

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from afd_backports.vllm_v026_mrv2_dbo import scopes
from afd_backports.vllm_v026_mrv2_dbo.host import SilentControl
from afd_backports.vllm_v026_mrv2_dbo.scopes import ForeignPatchError, ReplayHooks, graph_manager_factory, substitute
from vllm.v1.worker.gpu import model_runner
from vllm.v1.worker.gpu.cudagraph_utils import ModelCudaGraphManager

pytestmark = pytest.mark.vllm


def native() -> str:
    return "native"


def replacement() -> str:
    return "replacement"


def foreign() -> str:
    return "foreign"


@pytest.fixture
def owner() -> types.ModuleType:
    module = types.ModuleType("owner")
    module.name = native  # type: ignore[attr-defined]
    return module


def test_a_name_means_something_else_in_the_block_only(owner) -> None:
    with substitute(owner, "name", native, replacement):
        assert owner.name is replacement
    assert owner.name is native
    assert scopes._active == []


def test_an_error_in_the_block_restores_and_passes(owner) -> None:
    error = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught, substitute(owner, "name", native, replacement):
        raise error
    assert caught.value is error
    assert owner.name is native
    assert scopes._active == []


def test_blocks_of_one_name_nest(owner) -> None:
    def other() -> None: ...

    with substitute(owner, "name", native, replacement):
        with substitute(owner, "name", native, other):
            assert owner.name is other
        assert owner.name is replacement
        with pytest.raises(KeyError), substitute(owner, "name", native, replacement):
            raise KeyError
        assert owner.name is replacement
    assert owner.name is native


def test_a_patch_of_others_in_a_block_is_not_taken_for_the_block_s_own(owner) -> None:
    with contextlib.suppress(ForeignPatchError), substitute(owner, "name", native, replacement):  # at its end
        owner.name = foreign
        with pytest.raises(ForeignPatchError, match="native"), substitute(owner, "name", native, replacement):
            pytest.fail("the block is entered")
        assert owner.name is foreign
    assert owner.name is native


def test_blocks_of_one_name_nest_inside_of_a_nested_one(owner) -> None:
    def third() -> None: ...

    with substitute(owner, "name", native, replacement), substitute(owner, "name", native, foreign):
        with substitute(owner, "name", native, third):
            assert owner.name is third
        assert owner.name is foreign
    assert owner.name is native


def test_two_names_of_an_owner_do_not_meet(owner) -> None:
    owner.other = replacement
    with (
        substitute(owner, "name", native, replacement),
        pytest.raises(ForeignPatchError),
        substitute(owner, "other", native, foreign),
    ):
        pytest.fail("the block is entered")
    assert owner.other is replacement


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("patched", [True, False])
def test_a_patch_behind_an_error_of_the_block_is_logged(owner, error: type[BaseException], patched: bool) -> None:
    def fail() -> None:
        with substitute(owner, "name", native, replacement):
            if patched:
                owner.name = foreign
            raise error

    with mock.patch.object(scopes.logger, "error") as logged, pytest.raises(error):
        fail()
    assert [("owner.name is" in str(call), "foreign" in str(call)) for call in logged.mock_calls] == [
        (True, True)
    ] * patched


def test_names_of_two_owners_do_not_meet(owner) -> None:
    other = types.ModuleType("other")
    other.name = replacement  # type: ignore[attr-defined]
    with (
        substitute(owner, "name", native, replacement),
        pytest.raises(ForeignPatchError),
        substitute(other, "name", native, foreign),
    ):
        pass
    assert other.name is replacement  # type: ignore[attr-defined]


def test_a_class_member_is_restored_as_it_was() -> None:
    class Base:
        def method(self) -> str:
            return "native"

    before = dict(vars(Base))
    with substitute(Base, "method", Base.method, lambda self: "replacement"):
        assert Base().method() == "replacement"
    assert dict(vars(Base)) == before


def test_a_foreign_patch_is_reported_and_stays(owner) -> None:
    owner.name = foreign
    with (
        pytest.raises(ForeignPatchError, match=r"owner\.name is .*foreign.*not .*native"),
        substitute(owner, "name", native, replacement),
    ):
        pytest.fail("the block is not entered")
    assert owner.name is foreign
    assert scopes._active == []


def test_a_patch_of_the_block_by_others_is_reported_at_its_end(owner) -> None:
    with pytest.raises(ForeignPatchError, match="foreign"), substitute(owner, "name", native, replacement):
        owner.name = foreign
    assert owner.name is native


def test_it_does_not_hide_the_error_of_the_block(owner) -> None:
    def fail_behind_a_foreign_patch() -> None:
        with substitute(owner, "name", native, replacement):
            owner.name = foreign
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail_behind_a_foreign_patch()
    assert owner.name is native


def test_a_missing_name_is_not_made_up(owner) -> None:
    with pytest.raises(KeyError), substitute(owner, "missing", native, replacement):
        pass
    assert "missing" not in vars(owner)


def test_the_factory_of_graph_managers() -> None:
    calls = []

    def factory(*args: object) -> str:
        calls.append(args)
        return "manager"

    with graph_manager_factory(model_runner, ModelCudaGraphManager, factory):
        assert model_runner.ModelCudaGraphManager(1, 2) == "manager"  # type: ignore[call-arg,arg-type]
    assert model_runner.ModelCudaGraphManager is ModelCudaGraphManager
    assert calls == [(1, 2)]


FLAGS = ("is_warmup", "is_graph_capturing", "is_graph_replaying")
SCOPES = {
    "is_warmup": lambda control: scopes.capturing(control, warmup=True),
    "is_graph_capturing": lambda control: scopes.capturing(control, warmup=False),
    "is_graph_replaying": scopes.replaying,
}


@pytest.mark.parametrize("before", list(itertools.product((False, True), repeat=3)), ids=str)
@pytest.mark.parametrize("flag", FLAGS)
def test_one_flag_is_raised_in_the_block_and_all_are_as_before_after_it(flag: str, before: tuple[bool, ...]) -> None:
    control = SilentControl()
    vars(control).update(zip(FLAGS, before, strict=True))
    scope = SCOPES[flag]
    with scope(control):
        assert [name for name in FLAGS if vars(control)[name]] == [flag]
        with pytest.raises(ValueError, match="mine"), scope(control):
            raise ValueError("mine")
        assert [name for name in FLAGS if vars(control)[name]] == [flag]
    assert tuple(vars(control)[name] for name in FLAGS) == before


def test_replay_hooks_are_entered_in_order_and_left_always() -> None:
    log: list[str] = []

    def hook(name: str):
        @contextlib.contextmanager
        def around(desc: object):
            log.append(f"{name} {desc}")
            try:
                yield
            finally:
                log.append(f"-{name}")

        return around

    hooks = ReplayHooks()

    def replay_fails() -> None:
        with hooks.installed(hook("a")), hooks.installed(hook("b")), hooks.around("desc"):  # type: ignore[arg-type]
            log.append("replay")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        replay_fails()
    assert log == ["a desc", "b desc", "replay", "-b", "-a"]
    with hooks.around("desc"):  # type: ignore[arg-type]
        pass
    assert len(log) == 5
