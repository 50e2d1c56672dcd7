# await at the top level, tasks, errors in them.
# normalise: addresses, pids, as-a-script

# %%
import asyncio

await asyncio.sleep(0.01)
print("slept")

# %%
async def answer(n):
    await asyncio.sleep(0)
    return n * 2


await answer(21)

# %%
await asyncio.gather(*(answer(n) for n in range(5)))

# %%
async def fail():
    await asyncio.sleep(0)
    raise OSError("in a coroutine")


await fail()

# %%
async with asyncio.timeout(0.05):
    await asyncio.sleep(10)

# %%
async with asyncio.TaskGroup() as group:
    group.create_task(fail())

# %%
# as a script
asyncio.run(answer(1))

# %%
answer(1)

# %%
[x async for x in (i async for i in aiter_of(3))]

# %%
async def aiter_of(n):
    for i in range(n):
        yield i

[x async for x in aiter_of(3)]

# %%
task = asyncio.create_task(answer(5))
print(task.done())

# %%
await task

# %%
type(asyncio.get_running_loop()).__name__

# %%
process = await asyncio.create_subprocess_shell("echo from a subprocess", stdout=asyncio.subprocess.PIPE)
(await process.communicate())[0]
