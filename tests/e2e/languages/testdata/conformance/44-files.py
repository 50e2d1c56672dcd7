# Files in the folder of the run, of several formats.

# %%
import pathlib
import sqlite3
import zipfile

pathlib.Path("note.txt").write_text("one\ntwo\n")
print(open("note.txt").read(), end="")

# %%
with sqlite3.connect("db.sqlite") as db:
    db.execute("create table t (a integer, b text)")
    db.executemany("insert into t values (?, ?)", [(1, "x"), (2, "y")])
db.execute("select * from t").fetchall()

# %%
import pandas as pd

df = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
df.to_excel("t.xlsx", index=False)
df.to_parquet("t.parquet")
df.to_json("t.json")
pd.read_excel("t.xlsx").equals(pd.read_parquet("t.parquet")), pathlib.Path("t.json").read_text()

# %%
with zipfile.ZipFile("all.zip", "w") as z:
    z.write("note.txt")
    z.writestr("inner/made.txt", "made")
zipfile.ZipFile("all.zip").namelist()

# %%
sorted(str(p) for p in pathlib.Path().rglob("*"))

# %%
import os
import shutil

os.makedirs("deep/er")
shutil.move("note.txt", "deep/er")
os.chdir("deep")
os.getcwd(), os.listdir()

# %%
open("/mnt/data/deep/er/note.txt").read(), os.stat("er").st_mode, os.access("/", os.W_OK)

# %%
open("/etc/written", "w")

# %%
open("/etc/shadow")

# %%
f = open("unclosed.txt", "w")
f.write("kept in a buffer")
