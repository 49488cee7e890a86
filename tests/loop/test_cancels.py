"""A cancel at every await: whatever moment it meets, what is left is a whole run and a transcript that can be sent."""

import asyncio
import random

import pytest

from .scenarios import TOOLS, Agent, Heard, Scripted, accepted, cancelling, faults, tasks, three_turns

pytestmark = pytest.mark.anyio


async def probe():
    agent = Agent(Scripted(*three_turns()), tools=TOOLS)
    run = agent.run("hi")
    heard = Heard(run)
    counted = []
    result = await cancelling(run, 0, counted)
    print(len(counted), heard.kinds)
    assert faults(heard.events, result) == []
    return len(counted)


async def test_probe():
    n = await probe()
    bad = {}
    for at in range(1, n + 1):
        run = Agent(Scripted(*three_turns()), tools=TOOLS).run("hi")
        heard = Heard(run)
        try:
            await asyncio.create_task(asyncio.wait_for(cancelling(run, at, []), 5))
            bad[at] = "not cancelled"
        except asyncio.CancelledError:
            pass
        except Exception as e:
            bad[at] = repr(e)
        if tasks():
            bad[at] = ("tasks", tasks())
        try:
            f = faults(heard.events, run.result) + await accepted(run.result.messages)
            if f: bad[at] = f
        except Exception as e:
            bad[at] = repr(e)
    for k, v in bad.items(): print(k, v)
    assert not bad
