# The shell: lines, captured lines, script cells, errors of commands.
# normalise: stream-order

# %%
!echo one; echo two >&2; echo three

# %%
files = !printf 'a\nb\n'
files

# %%
word = "expanded"
!echo {word} $word "$HOME"

# %%
!exit 3

# %%
_exit_code

# %%
%%bash
for i in 1 2 3; do echo "line $i"; done
echo "to stderr" >&2

# %%
%%bash
echo "before the failure"
exit 4

# %%
%%bash --out out --err err --no-raise-error
echo kept; echo lost >&2; exit 5

# %%
out, err

# %%
%%script python3
print("another interpreter", 1 + 1)

# %%
%%sh
no_such_command

# %%
!no_such_command_either

# %%
%system echo system

# %%
!!echo list

# %%
!printf '\033[32mgreen\033[0m\n'

# %%
!seq 1 1000 | tail -2

# %%
!printf 'no newline'
