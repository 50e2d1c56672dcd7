# What a terminal would act upon: colours, carriage returns, backspaces.

# %%
print("\x1b[31mred\x1b[0m \x1b[1;38;5;208mbold orange\x1b[m \x1b[4munderlined\x1b[24m")

# %%
import time

for i in range(5):
    print(f"\rprogress {i * 25}%", end="", flush=True)
    time.sleep(0.05)
print()

# %%
print("one\rtwo\rthree")
print("abc\b\bX\n\b")
print("windows\r\nline\r\n", end="")
print("clear\x1b[2K\rline", "up\x1b[1A")

# %%
import sys

for i in range(3):
    sys.stderr.write(f"\r{i}/3")
    sys.stderr.flush()

# %%
"\x1b[31mred in a result\x1b[0m"

# %%
display({"text/plain": "\x1b[32mgreen in a bundle\x1b[0m"}, raw=True)
