"""A plot by clients that openapi-python-client made of notebox's OpenAPI documents: of the
native API, and of the calls that Dify has. In this folder:

    pip install openapi-python-client==0.29.1 mypy==2.4.1
    openapi-python-client generate --meta none --config config.yml --output-path native --url ${NOTEBOX_URL:-http://127.0.0.1:8080}/openapi.json
    openapi-python-client generate --meta none --config config.yml --output-path dify --url ${NOTEBOX_URL:-http://127.0.0.1:8080}/dify/openapi.json
    mypy --strict plot.py
    python plot.py

NOTEBOX_URL and NOTEBOX_API_KEY say where notebox is.
"""

import os

import dify
import native
from dify.api.dify import create_sandbox, run_code, stop_sandbox
from dify.models import CreateSandboxBody, CreateSandboxResponse200, RunCodeBody, RunCodeResponse200, StopSandboxBody
from native.api.default import execute
from native.models import InputFile, Notebook, Reply, Request

URL = os.environ.get("NOTEBOX_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("NOTEBOX_API_KEY") or "none"  # any word, where notebox has no keys

PLOT = """
import matplotlib.pyplot as plt, pandas as pd
pd.read_csv("rides.csv").plot(x="day", y="rides")
plt.show()
"""


def plot() -> str:
    """Sends code with a file, and returns the plot's name and size."""
    client = native.AuthenticatedClient(base_url=URL, token=KEY)
    file = InputFile(name="rides.csv", text="day,rides\n1,120\n2,150\n3,90\n")
    reply = execute.sync(client=client, body=Request(code=PLOT, files=[file], timeout=60))
    if not isinstance(reply, Reply) or reply.status != "ok":
        raise RuntimeError(f"the run failed: {reply}")
    image = reply.images[0]
    return f"{image.name}, {image.width} x {image.height}"


def notebook() -> str:
    """Sends a notebook, and returns what it printed."""
    client = native.AuthenticatedClient(base_url=URL, token=KEY)
    book = {"nbformat": 4, "cells": [{"cell_type": "code", "source": "print(6 * 7)"}]}
    reply = execute.sync(client=client, body=Request(notebook=Notebook.from_dict(book)))
    if not isinstance(reply, Reply) or reply.status != "ok":
        raise RuntimeError(f"the run failed: {reply}")
    return reply.text.strip()


def plot_in_sandbox() -> str:
    """Does so by the calls that Dify has."""
    client = dify.AuthenticatedClient(base_url=URL, token=KEY)
    sandbox = create_sandbox.sync(client=client, body=CreateSandboxBody())
    if not isinstance(sandbox, CreateSandboxResponse200):
        raise RuntimeError(f"there is no sandbox: {sandbox}")
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"
    ran = run_code.sync(client=client, body=RunCodeBody(sandbox_id=sandbox.sandbox_id, code=code))
    stop_sandbox.sync(client=client, body=StopSandboxBody(sandbox_id=sandbox.sandbox_id))
    if not isinstance(ran, RunCodeResponse200) or ran.error is not None:
        raise RuntimeError(f"the run failed: {ran}")
    return ran.images[0].name


print("native:", plot())
print("notebook:", notebook())
print("dify:", plot_in_sandbox())
