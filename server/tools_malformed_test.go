package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// chatCall is an entry of tool_calls with these arguments, in which nothing but the
// arguments is broken.
func chatCall(arguments string) string {
	raw, _ := json.Marshal(map[string]any{"id": "call_1", "type": "function", "function": map[string]string{"name": "execute_python", "arguments": arguments}})
	return string(raw)
}

// brokenArguments are what models write in place of {"code": "print(1)"}. What can be
// read is to be run as print(1) alone.
var brokenArguments = []struct {
	arguments string
	runs      bool
}{
	{`print(1)`, true},
	{"print(1)\n", true},
	{"\n\nprint(1)", true},
	{"```python\nprint(1)\n```", true},
	{"```py\nprint(1)\n```", true},
	{"```\nprint(1)\n```", true},
	{"```python\nprint(1)", true},
	{"```python\r\nprint(1)\r\n```", true},
	{"```Python3\nprint(1)\n```", true},
	{"~~~python\nprint(1)\n~~~", true},
	{"````python\nprint(1)\n````", true},
	{"```python print(1)```", true},
	{"```print(1)```", true},
	{"Sure, here it is:\n```python\nprint(1)\n```", true},
	{"Sure:\n\n```python\nprint(1)\n```\n\nThis prints 1.", true},
	{"```json\n{\"code\": \"print(1)\"}\n```", true},
	{"{\"code\": \"```python\\nprint(1)\\n```\"}", true},
	{"{\"code\": \"\\nprint(1)\\n\"}", true},
	{"{\"code\": \"\nprint(1)\n\"}", true},
	{"{\"code\": \"print(1)\r\n\"}", true},
	{"{\"code\": \"print(1)\t\"}", true},
	{`{"code": 'print(1)'}`, true},
	{`{'code': 'print(1)'}`, true},
	{`{'code': "print(1)"}`, true},
	{`{code: "print(1)"}`, true},
	{`{code: 'print(1)',}`, true},
	{"{code: `print(1)`}", true},
	{`{"code": """print(1)"""}`, true},
	{`{"code": '''print(1)'''}`, true},
	{`{"code" = "print(1)"}`, true},
	{`{"code": "print(1)",}`, true},
	{`{"code": "print(1)",,}`, true},
	{`{"code": "print(1)"`, true},
	{`{"code": "print(1)",`, true},
	{`{"arguments": {"code": "print(1)"`, true},
	{`{"input": "print(1)"}`, true},
	{`{"python_code": "print(1)"}`, true},
	{`{"pythonCode": "print(1)"}`, true},
	{`{"python-code": "print(1)"}`, true},
	{`{"script": "print(1)"}`, true},
	{`{"source": "print(1)"}`, true},
	{`{"program": "print(1)"}`, true},
	{`{"Code": "print(1)"}`, true},
	{`{"CODE": "print(1)"}`, true},
	{`{"python": "print(1)"}`, true},
	{`{"content": "print(1)"}`, true},
	{`{"code_block": "print(1)"}`, true},
	{`{"code": ["print(1)"]}`, true},
	{`{"code": ["print(1)\n"]}`, true},
	{`{"cells": ["print(1)"]}`, true},
	{`["print(1)"]`, true},
	{`[{"code": "print(1)"}]`, true},
	{`{"code": {"code": "print(1)"}}`, true},
	{`{"input": {"code": "print(1)"}}`, true},
	{`{"parameters": {"code": "print(1)"}}`, true},
	{`{"kwargs": {"input": {"code": "print(1)"}}}`, true},
	{`{"code": "{\"code\": \"print(1)\"}"}`, true},
	{`"{\"code\": \"print(1)\"}"`, true},
	{`"\"{\\\"code\\\": \\\"print(1)\\\"}\""`, true},
	{`"{"code": "print(1)"}"`, true},
	{`"print(1)"`, true},
	{`'print(1)'`, true},
	{`{"name": "execute_python", "arguments": {"code": "print(1)"}}`, true},
	{`{"name": "python", "arguments": "{\"code\": \"print(1)\"}"}`, true},
	{`<tool_call>{"name": "execute_python", "arguments": {"code": "print(1)"}}</tool_call>`, true},
	{`<tool_call>{"code": "print(1)"}`, true},
	{"<code>print(1)</code>", true},
	{"<python>\nprint(1)\n</python>", true},
	{`execute_python(code="print(1)")`, true},
	{`execute_python("print(1)")`, true},
	{`functions.execute_python({"code": "print(1)"})`, true},
	{"code: |\n  print(1)\n", true},
	{`{"code": "print(1)", "language": "python"}`, true},
	{`{"code": "print(1)", "timeout": "soon"}`, true},
	{`{"code": "print(1)", "code": "print(1)"}`, true},
	{`{"code": "print(1)", "reason": None, "safe": True}`, true},
	{"\ufeff{\"code\": \"print(1)\"}", true},
	{"{\"code\": \"print(1)\"}\n\n", true},
	{`{"code": "print(1)", "x": "\d"}`, true},
	{``, false},
	{`   `, false},
	{`{}`, false},
	{`[]`, false},
	{`null`, true}, // a name that Python does not know: it says so
	{`{"code": null}`, false},
	{`{"code": ""}`, false},
	{`{"code": 1}`, false},
	{`{"code": true}`, false},
	{`{"code": [1]}`, false},
	{`{"query": "print(1)"}`, false},
	{`{"code": "print(`, false},
	{`{"code": "print(1)`, false},
	{`{"code": "a()", "code": "b()"}`, false},
	{`{"script": "a()", "source": "b()"}`, false},
	{"```\na()\n```\n```\nb()\n```", false},
	{`{"code": "ls", "language": "bash"}`, false},
	{`<html></html>`, false},
	{`{"code": "\u0000"}`, false},
	{`{"code": "\ud800"}`, false},
	{strings.Repeat(`[`, 1000), true}, // Python says what it thinks of it
	{strings.Repeat(`{"input":`, 1000), false},
}

// brokenCalls are calls of which more than the arguments is broken.
var brokenCalls = []struct {
	call string
	runs bool
}{
	{`"print(1)"`, true},
	{`{"code":"print(1)"}`, true},
	{`[{"name":"execute_python","arguments":"print(1)"}]`, true},
	{`{"name":"executePythonInNotebook","arguments":{"code":"print(1)"}}`, true},
	{`{"name":"execute_python_code","arguments":{"code":"print(1)"}}`, true},
	{`{"name":"python","parameters":{"code":"print(1)"}}`, true},
	{`{"type":"tool_use","name":"execute_python","input":"print(1)"}`, true},
	{`{"functionCall":{"args":{"python_code":"print(1)"}}}`, true},
	{`{"role":"assistant","tool_calls":[{"function":{"name":"python","arguments":"print(1)"}}]}`, true},
	{`7`, false},
	{`[]`, false},
	{`true`, false},
	{`{}`, false},
	{`{"name":"search","arguments":{"code":"x"}}`, false},
	{`{"type":"function","function":{"name":"execute_python"}}`, false},
	{`{"type":"function","function":{}}`, false},
	{`{"name":"python","arguments":"print('` + "\xff" + `')"}`, false},
	{`{"name":"python","arguments":{"code":"a()","code":"b()"}}`, false},
	{`{"name":"python","arguments":{"code":"\ud800"}}`, false},
	{`[{"name":"python","arguments":"a()"},{"name":"python","arguments":"b()"}]`, false},
}

// TestMalformedToolCalls sends more than a hundred: each is run as what it can only
// mean, or is answered with what a model can act on, and none is an error of HTTP.
func TestMalformedToolCalls(t *testing.T) {
	type one struct {
		call string
		runs bool
	}
	var all []one
	for _, c := range brokenArguments {
		all = append(all, one{chatCall(c.arguments), c.runs})
	}
	for _, c := range brokenCalls {
		all = append(all, one{c.call, c.runs})
	}
	distinct := map[string]bool{}
	for _, c := range all {
		distinct[c.call] = true
	}
	require.GreaterOrEqual(t, len(distinct), 100)

	s := newService(t)
	for i, c := range all {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s.t = t
			before := len(s.started())
			a := s.callTool(`{"call":` + c.call + `}`)
			require.Equal(t, c.runs, a.Ran, "%.300s: %v", c.call, a.Message)
			if a.Ran {
				require.Len(t, s.started(), before+1)
				require.NotNil(t, a.Result)
				if strings.Contains(c.call, "print(1)") {
					require.Equal(t, "print(1)", strings.TrimSpace(a.Code))
				}
				return
			}
			require.Len(t, s.started(), before, "nothing is run that cannot be read")
			text := fmt.Sprint(a.Message)
			require.Contains(t, text, "could not be read: ")
			require.Contains(t, text, `{"code": "import math\nprint(math.pi)"}`, "the form that is wanted")
			require.Less(t, len(text), 1000)
		})
	}
	s.requireNoFiles()
}
