# Line and cell magics of IPython.

# %%
alpha, beta = 1, "two"
%who

# %%
%whos

# %%
%who_ls int

# %%
%pwd

# %%
%mkdir sub
%cd sub
%cd -
%cd -q /tmp
%pwd

# %%
%env NEW=value
%env NEW

# %%
%precision 3
3.14159265

# %%
%%capture kept --no-stderr
print("captured")
display("captured too")

# %%
kept.show()
kept.stdout, len(kept.outputs)

# %%
%history -n 1-3

# %%
%xdel alpha
alpha

# %%
%pinfo beta

# %%
%psearch bet*

# %%
%nosuchmagic

# %%
%%nosuchcellmagic
x

# %%
%lsmagic

# %%
%alias_magic t timeit
%pprint

# %%
%config

# %%
%load_ext no_such_extension

# %%
%reset -f
"beta" in globals()

# %%
%automagic
pwd

# %%
%macro
%bookmark -l

# %%
print("an error before a cell magic")
1 / 0

# %%
%%sh
echo "cell magic after an error"
