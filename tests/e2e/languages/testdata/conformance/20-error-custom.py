# Exceptions of one's own: notes, groups, fields, empty and long messages.
# normalise: pids, write-frame

# %%
class AppError(Exception):
    def __init__(self, code, **fields):
        super().__init__(code, fields)
        self.code = code

    def __str__(self):
        return f"code {self.code}\nsecond line"


raise AppError(7, a=1)

# %%
e = AppError(8)
e.add_note("a note")
e.add_note("another\nnote")
raise e

# %%
raise ExceptionGroup("several", [ValueError("one"), ExceptionGroup("nested", [TypeError("two")])])

# %%
class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


raise Unprintable

# %%
raise ValueError

# %%
raise ValueError("")

# %%
raise ValueError("long " * 2000)

# %%
raise ValueError("ü 日本 🎉 \x1b[31mred\x1b[0m \x00 <b>")

# %%
class Traced(Exception):
    def _render_traceback_(self):
        return ["a traceback", "of its own"]


raise Traced("custom")

# %%
raise BaseException("not even an Exception")

# %%
raise "a string"

# %%
class Local(ValueError):
    __module__ = "elsewhere.mod"


raise Local({"a": 1})

# %%
import math

math.sqrt(-1)
