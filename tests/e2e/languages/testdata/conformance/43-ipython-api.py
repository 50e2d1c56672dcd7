# get_ipython() and what can be changed by it.
# normalise: connection-file

# %%
ip = get_ipython()
type(ip).__module__, type(ip).__name__, ip.user_ns is globals(), ip.execution_count

# %%
ip.run_cell("nested = 5\nprint('nested run')\nnested + 1").result

# %%
ip.run_line_magic("pwd", "")

# %%
from IPython.core.magic import register_cell_magic, register_line_magic


@register_line_magic
def shout(line):
    return line.upper()


@register_cell_magic
def rows(line, cell):
    print(line, len(cell.splitlines()))


%shout hello

# %%
%%rows counted
a
b

# %%
ip.events.register("post_run_cell", lambda result: print("after cell", result.execution_count, result.success))
1

# %%
1 / 0

# %%
for callback in list(ip.events.callbacks["post_run_cell"]):
    if callback.__name__ == "<lambda>":
        ip.events.unregister("post_run_cell", callback)

# %%
ip.ast_node_interactivity = "all"

# %%
1
"two"
[3]

# %%
ip.ast_node_interactivity = "last_expr"
ip.input_transformers_cleanup.append(lambda lines: [line.replace("ADD", "+") for line in lines])

# %%
1 ADD 2

# %%
ip.set_custom_exc((ZeroDivisionError,), lambda self, etype, value, tb, tb_offset=None: print("handled:", value))

# %%
1 / 0

# %%
ip.set_custom_exc((), None)
ip.set_next_input("the next cell's text")

# %%
ip.colors, ip.xmode, ip.autocall, ip.config

# %%
ip.showtraceback()

# %%
import IPython

IPython.version_info, IPython.get_ipython() is ip, IPython.utils.io.capture_output

# %%
ip.kernel.implementation, ip.kernel.language_info["name"], ip.kernel.banner.splitlines()[0]

# %%
ip.ev("nested"), ip.ex("made = 1"), made, ip.getoutput("echo got")

# %%
ip.showsyntaxerror()

# %%
%xmode Minimal
[][0]

# %%
%xmode Plain
[][0]

# %%
%xmode Verbose
value = {"deep": [1, 2]}
value["none"]

# %%
%xmode Context
%tb

# %%
%colors nocolor
1 / 0

# %%
print(ip.history_manager.hist_file, len(list(ip.history_manager.get_range())) > 3)
%history -g nested
