"""A model that runs Python: notebox as the function tool of a chat, with OpenAI's
official client. Any endpoint that speaks Chat Completions will do.

    pip install openai==3.54.0
    OPENAI_API_KEY=… python functiontool.py "What is the sum of the first 100 primes?"

OPENAI_BASE_URL, OPENAI_MODEL, NOTEBOX_URL and NOTEBOX_API_KEY say where things are.
"""

import json
import os
import sys
import urllib.request

from openai import OpenAI

MAX_STEPS = 10  # answers of the model to one question


def notebox(path, body=None):
    """Calls notebox's API: a GET, or a POST of JSON."""
    request = urllib.request.Request(
        os.environ.get("NOTEBOX_URL", "http://127.0.0.1:8080") + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    if key := os.environ.get("NOTEBOX_API_KEY"):
        request.add_header("Authorization", f"Bearer {key}")
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def ask(question):
    """Has the model answer a question, and runs what it asks for."""
    client = OpenAI()  # reads OPENAI_API_KEY and OPENAI_BASE_URL
    tools = notebox("/v1/tools?notation=chat_completions")["tools"]["chat_completions"]
    messages = [{"role": "user", "content": question}]
    for _ in range(MAX_STEPS):
        completion = client.chat.completions.create(
            model=os.environ.get("OPENAI_MODEL", "gpt-5.2"), messages=messages, tools=tools
        )
        message = completion.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message)
        for call in message.tool_calls:
            messages.append(notebox("/v1/tools/call", {"call": call.model_dump()})["message"])
    raise RuntimeError(f"no answer after {MAX_STEPS} steps")


if __name__ == "__main__":
    print(ask(" ".join(sys.argv[1:])))
