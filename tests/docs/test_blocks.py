"""Every Python block in the documentation runs, as a reader would paste it, on a scripted model.

The blocks of a page share their names, from top to bottom. HTML comments before a block, unseen by readers, say more:
`<!-- fresh -->` starts with no names; `<!-- script: ["Hello.", {"tool": "weather", "arguments": {"city": "Oslo"}}] -->`
says what the model answers, one entry for each request of the block (`Stage` lists the forms). `await` may stand at the
top level; a block without it runs outside of any event loop, so `run_sync` works there.
"""

import ast
import asyncio
import inspect
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace

import pytest

from antiphon import errors
from antiphon.types.request import FinishChunk, ModelInfo, ModelRequest, TextChunk, WholeCall

from .pages import ROOT, Block, blocks, pages, read
from .stage import RESOLVER, Stage, on_stage

NAMESPACE = "documentation_page"


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stage]:
    """No network, no keys, an empty folder to work in, and a model that follows the script."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    with on_stage() as stage:
        yield stage


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """One loop for a page, so that what a block opened is still good in the next."""
    with asyncio.Runner() as runner:
        yield runner


def compiled(block: Block) -> CodeType:
    """The block's code, with the page's own line numbers for tracebacks."""
    tree = ast.parse(block.code, filename=str(block.page))
    ast.increment_lineno(tree, block.line - 1)
    return compile(tree, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def play(page: list[Block], stage: Stage, runner: asyncio.Runner, patch: pytest.MonkeyPatch) -> ModuleType:
    """Run a page from top to bottom; its last namespace."""
    module = ModuleType(NAMESPACE)
    for block in page:
        if block.fresh:
            module = ModuleType(NAMESPACE)
        patch.setitem(sys.modules, NAMESPACE, module)  # annotations in classes are looked up there
        stage.play(block.script)
        code = compiled(block)
        if code.co_flags & inspect.CO_COROUTINE:
            runner.run(eval(code, vars(module)))
        else:
            exec(code, vars(module))
        if stage.unplayed:
            pytest.fail(f"{block.at}: the script has replies that no request asked for: {stage.unplayed}")
    return module


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_python_blocks_of_a_page_run(
    page: Path, stage: Stage, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An example that does not run costs a reader more than no example."""
    play(blocks(page, "python"), stage, runner, monkeypatch)


def test_the_readme_shows_code() -> None:
    """A library's first page without a line of code says nothing about what using it is like."""
    readme = ROOT / "README.md"
    if readme.read_text(encoding="utf-8").strip():
        assert blocks(readme, "python"), "README.md has no python block"


PAGE = """
Text.

```python
import asyncio
x = await asyncio.sleep(0, 1)
```

- A list:

  ```python title="indented"
  class Record:
      y: "int" = x + 1
  ```

````text
```python
raise RuntimeError
```
````

<!-- fresh -->
Text.
~~~python
z = "x" in globals()
~~~
"""


def test_blocks_share_names_until_a_fresh_one(
    stage: Stage, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers go from top to bottom, and so do the names; what quotes a block is not one."""
    page = [block for block in read(Path("page.md"), PAGE) if block.language == "python"]
    assert [block.line for block in page] == [5, 12, 25]
    assert vars(play(page[:2], stage, runner, monkeypatch))["Record"].y == 2
    assert vars(play(page, stage, runner, monkeypatch))["z"] is False


def test_a_failing_block_fails_at_the_line_of_the_page(
    stage: Stage, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traceback is for whoever edits the page."""
    page = list(read(Path("page.md"), "\n\n```python\nx = 1\nassert x == 2\n```\n"))
    with pytest.raises(AssertionError) as caught:
        play(page, stage, runner, monkeypatch)
    assert (caught.traceback[-1].lineno, str(caught.traceback[-1].frame.code.path)) == (4, "page.md")


async def words(stage: Stage) -> list[object]:
    """The deltas of one empty request."""
    return [delta async for delta in stage.stream(ModelRequest(messages=()))]


def test_the_stage_follows_the_script(stage: Stage, runner: asyncio.Runner) -> None:
    """A page is about what the library does with the replies; they must be the page's own."""
    stage.play(
        ["be or be", [{"thinking": "hm"}, {"tool": "weather", "arguments": {"city": "Oslo"}}], {"error": "Dropped"}]
    )
    said = runner.run(words(stage))
    assert said[:3] == [TextChunk("be"), TextChunk(" or"), TextChunk(" be")]
    asked = runner.run(words(stage))
    assert asked[1] == WholeCall("weather", {"city": "Oslo"})
    assert asked[-1] == FinishChunk("tool_calls")
    with pytest.raises(errors.Dropped):
        runner.run(words(stage))
    with pytest.raises(errors.Rejected, match="no reply left"):
        runner.run(words(stage))
    stage.play(None)
    assert runner.run(words(stage))[0] == TextChunk("A")


def test_a_script_must_be_played_to_its_end(
    stage: Stage, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply that nobody asks for is a page that tells of a request which is not made."""
    page = list(read(Path("page.md"), '<!-- script: ["one",\n"two"] -->\n```python\nx = 1\n```\n'))
    with pytest.raises(pytest.fail.Exception, match=r"page\.md:4: .*'one', 'two'"):
        play(page, stage, runner, monkeypatch)


def test_a_script_that_is_no_json_names_its_block() -> None:
    """Found when the page is read, not when its model is silent."""
    with pytest.raises(ValueError, match=r"page\.md:3: the script"):
        list(read(Path("page.md"), "<!-- script: [oops] -->\n```python\nx = 1\n```\n"))


def test_every_name_gives_the_stage_and_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules hold `get_model` under their own names, and some are loaded while a page runs."""
    info = ModelInfo(provider="somebody", id="some-model")

    def get_model(name: str) -> SimpleNamespace:
        if name != "somebody:some-model":
            raise errors.UsageError(name)
        return SimpleNamespace(info=info)

    resolver, before, during = ModuleType(RESOLVER), ModuleType("antiphon.before"), ModuleType("antiphon.during")
    for module in (resolver, before, during):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    vars(resolver)["get_model"] = vars(before)["find"] = get_model
    with on_stage() as stage:
        vars(during)["get_model"] = vars(resolver)["get_model"]
        for find in (vars(before)["find"], vars(during)["get_model"]):
            assert find("somebody:some-model") is stage
        assert stage.info is info
        with pytest.raises(errors.UsageError):
            vars(before)["find"]("nobody:none")
    assert vars(resolver)["get_model"] is vars(before)["find"] is vars(during)["get_model"] is get_model


def test_the_network_is_shut(stage: Stage) -> None:
    """A page that reaches a real server is slow, costs money, and fails on a train."""
    with pytest.raises(OSError, match="asked for 'example'"):
        socket.getaddrinfo("example", 443)
    assert socket.getaddrinfo("127.0.0.1", 80)
