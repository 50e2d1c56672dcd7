package tool_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/agent/tool"
)

func TestArgumentsThatAreMended(t *testing.T) {
	const two = "import math\nprint(math.pi)"
	for _, c := range []struct{ desc, arguments, code string }{
		{"JSON", `{"code": "import math\nprint(math.pi)"}`, two},
		{"other characters", `{"code": "print('\u00e9 \ud83d\ude00 ä')"}`, "print('é 😀 ä')"},
		{"bare code", two, two},
		{"bare line", `print("a\nb")`, `print("a\nb")`},
		{"fenced code", "```python\n" + two + "\n```", two},
		{"fence without a language", "```\n" + two + "\n```\n", two},
		{"fence without an end", "```py\n" + two, two},
		{"fence in one line", "```python print(1)```", "print(1)"},
		{"fence in talk", "Here is the code:\n\n```python\n" + two + "\n```\nIt prints pi.", two},
		{"tildes", "~~~python\n" + two + "\n~~~", two},
		{"fenced JSON", "```json\n{\"code\": \"print(1)\"}\n```", "print(1)"},
		{"fenced in JSON", `{"code": "` + "```python\\nimport math\\nprint(math.pi)\\n```" + `"}`, two},
		{"raw line breaks", "{\"code\": \"import math\nprint(math.pi)\"}", two},
		{"raw tab", "{\"code\": \"if 1:\n\tprint(1)\"}", "if 1:\n\tprint(1)"},
		{"escaped single quote", `{"code": "print(\'a\')"}`, "print('a')"},
		{"backslash of a pattern", `{"code": "re.sub(r'\d+\s', '', x)"}`, `re.sub(r'\d+\s', '', x)`},
		{"single quotes", `{'code': 'print("a")'}`, `print("a")`},
		{"no quotes around the name", `{code: "print(1)"}`, "print(1)"},
		{"trailing comma", `{"code": "print(1)",}`, "print(1)"},
		{"no end of the object", `{"code": "print(1)"`, "print(1)"},
		{"no end of two objects", `{"arguments": {"code": "print(1)"`, "print(1)"},
		{"triple quotes", "{\"code\": \"\"\"import math\nprint(math.pi)\"\"\"}", two},
		{"backticks", "{\"code\": `import math\nprint(math.pi)`}", two},
		{"quotes not escaped", `{"code": "print("a", "b")"}`, `print("a", "b")`},
		{"quotes not escaped, dict", `{"code": "d = {"a": 1}\nprint(d["a"])"}`, "d = {\"a\": 1}\nprint(d[\"a\"])"},
		{"quotes not escaped, one more field", `{"code": "print("a")", "timeout": 5}`, `print("a")`},
		{"a string of JSON", `"{\"code\": \"print(1)\"}"`, "print(1)"},
		{"a string of a string of JSON", `"\"{\\\"code\\\": \\\"print(1)\\\"}\""`, "print(1)"},
		{"quotes around the object", `"{"code": "print(1)"}"`, "print(1)"},
		{"a string of code", `"import math\nprint(math.pi)"`, two},
		{"JSON in the code", `{"code": "{\"code\": \"print(1)\"}"}`, "print(1)"},
		{"lines", `{"code": ["import math", "print(math.pi)"]}`, two},
		{"lines with their ends", `{"code": ["import math\n", "print(math.pi)\n"]}`, two},
		{"a list of lines alone", `["import math", "print(math.pi)"]`, two},
		{"a list of one object", `[{"code": "print(1)"}]`, "print(1)"},
		{"input", `{"input": "print(1)"}`, "print(1)"},
		{"python_code", `{"python_code": "print(1)"}`, "print(1)"},
		{"pythonCode", `{"pythonCode": "print(1)"}`, "print(1)"},
		{"script", `{"script": "print(1)"}`, "print(1)"},
		{"Code", `{"Code": "print(1)"}`, "print(1)"},
		{"code and another", `{"code": "print(1)", "input": "5"}`, "print(1)"},
		{"twice the same", `{"code": "print(1)", "code": "print(1)"}`, "print(1)"},
		{"an object in the object", `{"input": {"code": "print(1)"}}`, "print(1)"},
		{"a call in the arguments", `{"name": "execute_python", "arguments": {"code": "print(1)"}}`, "print(1)"},
		{"a call in the arguments, twice encoded", `{"name": "execute_python", "arguments": "{\"code\": \"print(1)\"}"}`, "print(1)"},
		{"a tag", `<tool_call>{"name": "execute_python", "arguments": {"code": "print(1)"}}</tool_call>`, "print(1)"},
		{"a tag of code", "<code>\nprint(1)\n</code>", "print(1)"},
		{"call syntax", `execute_python(code="print(1)")`, "print(1)"},
		{"call syntax with text", `execute_python("print('a')")`, "print('a')"},
		{"call syntax with JSON", `execute_python({"code": "print(1)"})`, "print(1)"},
		{"YAML", "code: |\n  if 1:\n    print(1)", "if 1:\n  print(1)"},
		{"escaped twice", `{"code": "import math\\nprint(math.pi)"}`, two},
		{"escaped twice, with quotes", `{"code": "print(\\\"a\\\")\\nprint(\\\"b\\\\n\\\")"}`, "print(\"a\")\nprint(\"b\\n\")"},
		{"line breaks escaped twice", `{"code": "print(\"a\\n\")\\nprint(1)"}`, "print(\"a\\n\")\nprint(1)"},
		{"quotes escaped in bare code", `print(\"a\")`, `print("a")`},
		{"a comment first, escaped twice", `{"code": "# it's pi\\nprint(1)"}`, "# it's pi\nprint(1)"},
		{"escaped strings stay", `{"code": "print('a\\nb')"}`, `print('a\nb')`},
		{"continued lines stay", "x = 1 + \\\n  2", "x = 1 + \\\n  2"},
		{"comments stay", `{"code": "x = 1  # by \\n"}`, `x = 1  # by \n`},
		{"a set", "{i for i in range(3)}", "{i for i in range(3)}"},
		{"a comprehension", "[i for i in range(3)]", "[i for i in range(3)]"},
		{"a doc string first", "\"\"\"Pi.\"\"\"\n" + two, "\"\"\"Pi.\"\"\"\n" + two},
		{"Markdown that the program writes", "x = \"\"\"\n```\na\n```\n\"\"\"\nprint(x)", "x = \"\"\"\n```\na\n```\n\"\"\"\nprint(x)"},
		{"a byte order mark", "\ufeff{\"code\": \"print(1)\"}", "print(1)"},
		{"packages of the program, quotes not escaped", `{"code": "d = {"name": "x", "packages": ["y"]}"}`, `d = {"name": "x", "packages": ["y"]}`},
		{"packages of a call of the program, quotes not escaped", `{"code": "setup(name="x", packages=["y"], requirements="z")"}`, `setup(name="x", packages=["y"], requirements="z")`},
		{"packages of a JSON that the program writes", `{"code": "{\"dependencies\": {\"six\": \"*\"}, \"name\": \"x\"}"}`, `{"dependencies": {"six": "*"}, "name": "x"}`},
		{"packages of a dict that is the program", `{"code": "{\"content\": 1, \"packages\": [\"y\"]}"}`, `{"content": 1, "packages": ["y"]}`},
		{"True and None", `{"code": "print(1)", "verbose": True, "x": None}`, "print(1)"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			a, err := tool.ParseArguments(c.arguments)
			require.NoError(t, err)
			require.Equal(t, c.code, strings.TrimSpace(a.Code))
			require.Empty(t, a.Dependencies)
		})
	}
}

func TestArgumentsThatNobodyCanRead(t *testing.T) {
	for _, c := range []struct{ desc, arguments, reason string }{
		{"nothing", "", "empty"},
		{"blanks", " \n", "empty"},
		{"an empty object", "{}", "no field code"},
		{"an empty program", `{"code": " \n"}`, "empty"},
		{"null", "{\"code\": null}", "no field code"},
		{"a number", `{"code": 7}`, "a number"},
		{"another field", `{"url": "https://example.org"}`, `"url"`},
		{"two programs", `{"script": "a()", "source": "b()"}`, "more than one program"},
		{"one name twice", `{"code": "a()", "code": "b()"}`, "more than one program"},
		{"two fences", "```\na()\n```\n```\nb()\n```", "more than one code block"},
		{"cut off", `{"code": "import os\nos.remove(`, "cut off"},
		{"cut off in a string of JSON", `"{\"code\": \"print(`, "cut off"},
		{"two ways to read it", `{"code": "d = {"k": "a", "code": 2}"}`, "more than one way"},
		{"half a character", `{"code": "print('\ud800')"}`, "JSON"},
		{"invalid UTF-8", "print('\xff')", "UTF-8"},
		{"NUL", `{"code": "a\u0000b"}`, "NUL"},
		{"another language", `{"language": "bash", "code": "ls"}`, "bash"},
		{"an unknown tag", "<html>", "tag"},
		{"numbers", `{"code": [1, 2]}`, "lines"},
		{"deep", strings.Repeat(`{"input":`, 12) + `{"code":"x"}` + strings.Repeat("}", 12), "wrapped"},
		{"deeper", strings.Repeat(`{"input":`, 100_000), "JSON"},
		{"long", strings.Repeat("x", tool.MaxArguments+1), "longer"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			a, err := tool.ParseArguments(c.arguments)
			var invalid *tool.CallError
			require.ErrorAs(t, err, &invalid, "%q", a.Code)
			require.Contains(t, invalid.Reason, c.reason)
			require.Contains(t, err.Error(), `{"code": `)
			require.Less(t, len(err.Error()), 1000)
		})
	}
}

func TestTimeouts(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, `"2.5"`: 2500 * time.Millisecond, "-1": 0, "null": 0, `"soon"`: 0, "1e999": 24 * time.Hour, "1e-9": time.Millisecond,
	} {
		a, err := tool.ParseArguments(`{"code": "x", "timeout": ` + text + `}`)
		require.NoError(t, err, text)
		require.Equal(t, want, a.Timeout, text)
	}
}

// TestReadingIsLinear sends what makes naive readers look ahead again and again: four times
// the text takes some four times the time, and not sixteen.
func TestReadingIsLinear(t *testing.T) {
	took := func(text string) time.Duration {
		began := time.Now()
		_, _ = tool.ParseArguments(text)
		return time.Since(began)
	}
	for _, part := range []string{`"`, `" `, `"}`, "\\", "```\n", `{"`, `\n`, "#", `#\n`, `",a`, `",code:`, "'", `"""`, `\"`, "\n{", "~~~\n", `","dependencies":["`, `","packages":['`, `","packages":["a",`} {
		for _, before := range []string{"", `{"code": "`, "x = 1\n"} {
			text := (before + strings.Repeat(part, tool.MaxArguments))[:tool.MaxArguments]
			if whole := took(text); whole > time.Second {
				require.Less(t, whole, 10*took(text[:len(text)/4]), "%q after %q", part, before)
			}
		}
	}
}
