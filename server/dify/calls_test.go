package dify

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPaths(t *testing.T) {
	for _, c := range []struct{ desc, given, clean string }{
		{"relative", "a.csv", "a.csv"},
		{"in a folder", "out/a.csv", "out/a.csv"},
		{"with a dot", "./a.csv", "a.csv"},
		{"that stays inside", "out/../a.csv", "a.csv"},
		{"doubled slashes", "out//a.csv", "out/a.csv"},
		{"absolute", "/mnt/data/out/a.csv", "out/a.csv"},
		{"of the wrapper", "/workspace/out/a.csv", "out/a.csv"},
		{"through the wrapper's folder", "/workspace/../mnt/data/a.csv", "a.csv"},
		{"a folder of that name", "workspace/a.csv", "workspace/a.csv"},
		{"not of this world", "/tmp/a.csv", ""},
		{"above", "../a.csv", ""},
		{"above the wrapper's", "/workspace/../a.csv", ""},
		{"a longer name of the folder", "/mnt/database/a.csv", ""},
		{"the folder itself", "/mnt/data", ""},
		{"the wrapper's folder itself", "/workspace/", ""},
		{"a folder", "out/", ""},
		{"nothing", "", ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			clean, err := cleanPath("remote_path", c.given)
			require.Equal(t, c.clean, clean)
			if c.clean == "" {
				var refused *InvalidError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, []any{"body", "remote_path"}, refused.Details[0].Loc)
				return
			}
			require.NoError(t, err)
		})
	}
}

func callNamed(t *testing.T, name string) Call {
	t.Helper()
	for _, c := range Calls() {
		if c.Name == name {
			return c
		}
	}
	require.Fail(t, "there is no such call", name)
	return Call{}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		desc, call, body string
		fields           Fields
	}{
		{"all given", "run_code", `{"sandbox_id":"a","code":"1","language":"bash"}`, Fields{"sandbox_id": "a", "code": "1", "language": "bash"}},
		{"defaults", "run_code", `{"sandbox_id":"a","code":"1"}`, Fields{"sandbox_id": "a", "code": "1", "language": ""}},
		{"null is not given", "create_sandbox", `{"conversation_id":null}`, Fields{"conversation_id": "", "language": ""}},
		{"unknown fields are passed over", "create_sandbox", `{"user":{"id":[1]},"conversation_id":"c"}`, Fields{"conversation_id": "c", "language": ""}},
		{"the last of two counts", "create_sandbox", `{"conversation_id":"a","conversation_id":"b"}`, Fields{"conversation_id": "b", "language": ""}},
		{"nothing, where nothing is needed", "create_sandbox", ` `, Fields{"conversation_id": "", "language": ""}},
		{"an empty string is one", "upload_file", `{"sandbox_id":"a","file_url":"u","remote_filename":""}`, Fields{"sandbox_id": "a", "file_url": "u", "remote_filename": ""}},
		{"escapes", "run_code", `{"sandbox_id":"a","code":"\ud83d\ude00\n"}`, Fields{"sandbox_id": "a", "code": "😀\n", "language": ""}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			fields, err := callNamed(t, c.call).Decode([]byte(c.body), true)
			require.NoError(t, err)
			require.Equal(t, c.fields, fields)
		})
	}
}

// TestDecodeRefuses holds the details against what FastAPI answers for the same body.
func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		desc, body string
		form       bool // the Content-Type is another
		details    string
	}{
		{"one is missing", `{"sandbox_id":"a"}`, false, `[{"loc":["body","code"],"msg":"Field required","type":"missing","input":{"sandbox_id":"a"}}]`},
		{"two are missing", `{}`, false, `[{"loc":["body","sandbox_id"],"msg":"Field required","type":"missing","input":{}},{"loc":["body","code"],"msg":"Field required","type":"missing","input":{}}]`},
		{"not a string", `{"sandbox_id":"a","code":5}`, false, `[{"loc":["body","code"],"msg":"Input should be a valid string","type":"string_type","input":5}]`},
		{"null where it is needed", `{"sandbox_id":null,"code":"x"}`, false, `[{"loc":["body","sandbox_id"],"msg":"Input should be a valid string","type":"string_type","input":null}]`},
		{"a long one is not repeated", `{"sandbox_id":"a","code":["` + strings.Repeat("x", maxEchoed) + `"]}`, false, `[{"loc":["body","code"],"msg":"Input should be a valid string","type":"string_type"}]`},
		{"no body", ``, false, `[{"loc":["body"],"msg":"Field required","type":"missing"}]`},
		{"a list", `[]`, false, `[{"loc":["body"],"msg":"Input should be a JSON object","type":"model_attributes_type"}]`},
		{"null", `null`, false, `[{"loc":["body"],"msg":"Input should be a JSON object","type":"model_attributes_type"}]`},
		{"a form", `{"sandbox_id":"a","code":"1"}`, true, `[{"loc":["body"],"msg":"Input should be a JSON object, sent with the Content-Type application/json","type":"model_attributes_type"}]`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := callNamed(t, "run_code").Decode([]byte(c.body), !c.form)
			var refused *InvalidError
			require.ErrorAs(t, err, &refused)
			raw, err := json.Marshal(refused.Details)
			require.NoError(t, err)
			require.JSONEq(t, c.details, string(raw))
		})
	}
	for _, body := range []string{`{"sandbox_id":`, `{"sandbox_id":"a","code":"x"} y`, `{"sandbox_id":"a","code":"` + "\xff" + `"}`, `{"sandbox_id":"a","code":"\ud83d"}`} {
		_, err := callNamed(t, "run_code").Decode([]byte(body), true)
		var refused *InvalidError
		require.ErrorAs(t, err, &refused, body)
		require.Equal(t, typeJSON, refused.Details[0].Type, body)
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range []string{`{"sandbox_id":"a","code":"1"}`, `{}`, `[`, `{"code":null}`, `{"sandbox_id":"\u0000"}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, c := range Calls() {
			fields, err := c.Decode(body, true)
			var refused *InvalidError
			if err == nil {
				require.Len(t, fields, len(c.params))
				continue
			}
			require.ErrorAs(t, err, &refused)
			_, failure := Failure(http.StatusUnprocessableEntity, "", "", refused)
			_, err = json.Marshal(failure)
			require.NoError(t, err)
		}
	})
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		desc        string
		status      int
		field, text string
		want        int
		body        string
	}{
		{"not found", 404, "", "no such sandbox", 404, `{"detail":"no such sandbox"}`},
		{"gone is not found", 410, "", "it is over", 404, `{"detail":"it is over"}`},
		{"a field", 503, "remote_path", "busy", 503, `{"detail":"remote_path: busy"}`},
		{"malformed is unprocessable", 400, "", "no", 422, `{"detail":[{"loc":["body"],"msg":"no","type":"value_error"}]}`},
		{"unprocessable", 422, "file_url", "is no URL", 422, `{"detail":[{"loc":["body","file_url"],"msg":"is no URL","type":"value_error"}]}`},
		{"a conflict is unprocessable", 409, "remote_path", "is a folder", 422, `{"detail":[{"loc":["body","remote_path"],"msg":"is a folder","type":"value_error"}]}`},
		{"ours", 500, "", "failed", 500, `{"detail":"failed"}`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			status, body := Failure(c.status, c.field, c.text, nil)
			raw, err := json.Marshal(body)
			require.NoError(t, err)
			require.Equal(t, c.want, status)
			require.JSONEq(t, c.body, string(raw))
		})
	}
}

func TestToldSaysWhatHappened(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, c := range []struct {
		desc   string
		result Reply
		output string // contained
		status string
	}{
		{"well", Reply{Output: "1\n"}, "1\n", ""},
		{"nothing printed", Reply{}, "", ""},
		{"a command's failure, which is there", Reply{Output: "[exit code 2]\n", ExitCode: code(2), Error: &Error{Status: "error", Name: "CommandFailed"}}, "[exit code 2]\n", "error"},
		{"an exception, whose traceback is there", Reply{Output: "ValueError: x\n", Error: &Error{Status: "error", Name: "ValueError", Hint: "correct it"}}, "ValueError: x\n", "error"},
		{"an end without a traceback", Reply{Output: "1", Error: &Error{Status: "out_of_memory", Hint: "use less"}}, "1\n[use less]\n", "out_of_memory"},
		{"an end of which the traceback says only that there was an interrupt", Reply{Output: "KeyboardInterrupt:\n", Error: &Error{Status: "cancelled", Name: "KeyboardInterrupt", Hint: "the sandbox is over"}}, "KeyboardInterrupt:\n[the sandbox is over]\n", "cancelled"},
		{"interrupted", Reply{Output: "1\n", end: EndInterrupted, Error: &Error{Status: "cancelled"}}, "1\n[The run was interrupted after 55 seconds", "timeout"},
		{"interrupted, where a run may take less", Reply{end: EndInterrupted, limit: 9 * time.Second}, "after 9 seconds", "timeout"},
		{"no turn", Reply{end: EndNotBegun}, "[This was not run: it waited 55 seconds", "timeout"},
		{"open", Reply{Output: "1\n", end: EndOpen}, "is being ended", "timeout"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			a := told(c.result, 55*time.Second)
			require.Contains(t, a.Output, c.output)
			require.NotNil(t, a.Images)
			require.NotNil(t, a.Files)
			if c.status == "" {
				require.Equal(t, c.output, a.Output)
				require.Nil(t, a.Error)
				return
			}
			require.Equal(t, c.status, a.Error.Status)
		})
	}
}
