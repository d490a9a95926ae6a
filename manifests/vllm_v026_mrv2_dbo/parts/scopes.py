"""Names of other modules that mean something else for a while, and what is done around each replay."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType

from afd_backports.vllm_v026_mrv2_dbo.host import AFDControl
from vllm.logger import init_logger
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor

logger = init_logger(__name__)


class ForeignPatchError(RuntimeError):
    """Somebody else has replaced what is substituted here."""


@dataclass(frozen=True)
class _Substitution:
    owner: ModuleType | type
    name: str
    replacement: object

    def stands(self) -> bool:
        return vars(self.owner)[self.name] is self.replacement


_active: list[_Substitution] = []


@contextmanager
def substitute(owner: ModuleType | type, name: str, native: object, replacement: object) -> Iterator[None]:
    """Let a name mean something else in the block.

    The name means what it meant before when the block ends, however it ends. Blocks may be nested, of the same name too.

    Args:
        owner: the module or class that holds the name.
        name: it.
        native: what it has to mean before.
        replacement: what it means in the block.

    Raises:
        ForeignPatchError: it means something else, before the block or at its end.
    """
    found = vars(owner)[name]
    if found is not native and not any(s.owner is owner and s.name == name and found is s.replacement for s in _active):
        raise ForeignPatchError(_message(owner, name, native, found))
    substitution = _Substitution(owner, name, replacement)
    _active.append(substitution)
    setattr(owner, name, replacement)
    try:
        yield
    except BaseException:
        if not substitution.stands():  # the error of the block is the one to raise
            logger.error("%s", _message(owner, name, replacement, vars(owner)[name]))
        raise
    else:
        if not substitution.stands():
            raise ForeignPatchError(_message(owner, name, replacement, vars(owner)[name]))
    finally:
        _active.remove(substitution)
        setattr(owner, name, found)


def _message(owner: ModuleType | type, name: str, expected: object, found: object) -> str:
    return (
        f"{owner.__name__}.{name} is {found!r} of {inspect.getmodule(found)}, not {expected!r} of "
        f"{inspect.getmodule(expected)}: somebody else has replaced it. Remove that patch, or apply it outside of this block."
    )


def graph_manager_factory(
    owner: ModuleType, native: type, factory: Callable[..., object]
) -> AbstractContextManager[None]:
    """Let the runners of a module make another graph manager in the block.

    Args:
        owner: the module whose global is called: the native runner's, or vLLM-Ascend's where its own wrapper calls it.
        native: the class that is called there.
        factory: what is called instead, with the same arguments.
    """
    return substitute(owner, native.__name__, native, factory)


@contextmanager
def _telling(control: AFDControl, warmup: bool, capture: bool, replay: bool) -> Iterator[None]:
    """All flags are lowered but one: those that a plugin has raised around the step would contradict it."""
    before = control.is_warmup, control.is_graph_capturing, control.is_graph_replaying
    control.is_warmup, control.is_graph_capturing, control.is_graph_replaying = warmup, capture, replay
    try:
        yield
    finally:
        control.is_warmup, control.is_graph_capturing, control.is_graph_replaying = before


def replaying(control: AFDControl) -> AbstractContextManager[None]:
    """Let the control plane say in the block that a graph is replayed, and nothing else."""
    return _telling(control, warmup=False, capture=False, replay=True)


def capturing(control: AFDControl, warmup: bool) -> AbstractContextManager[None]:
    """Let the control plane say in the block that a graph is warmed up, or captured, and nothing else."""
    return _telling(control, warmup=warmup, capture=not warmup, replay=False)


ReplayHook = Callable[[BatchExecutionDescriptor], AbstractContextManager[object]]


class ReplayHooks:
    """What is done around each replay of a graph."""

    def __init__(self) -> None:
        self._hooks: list[ReplayHook] = []

    @contextmanager
    def installed(self, hook: ReplayHook) -> Iterator[None]:
        """Use a hook in the block: inside of those that are used already."""
        self._hooks.append(hook)
        try:
            yield
        finally:
            self._hooks.remove(hook)

    @contextmanager
    def around(self, desc: BatchExecutionDescriptor) -> Iterator[None]:
        """Enter all hooks for the block, which replays the graph of `desc`."""
        with ExitStack() as stack:
            for hook in self._hooks:
                stack.enter_context(hook(desc))
            yield
