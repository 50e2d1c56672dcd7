package tool_test

import (
	"encoding/json"
	"fmt"

	"notebox/agent/tool"
)

// A model forgot to escape its quotes. The call is read all the same, and its result
// goes back in the notation of its provider.
func Example() {
	call, err := tool.Parse([]byte(`{"id": "call_1", "type": "function", "function": {"name": "execute_python",
		"arguments": "{\"code\": \"print(\"hello\")\"}"}}`), "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(call.Code)
	message, _ := json.Marshal(tool.Message(call, tool.Result{Status: "ok", Text: "hello\n"}, tool.Options{}))
	fmt.Println(string(message))
	// Output:
	// print("hello")
	// {"content":"hello","role":"tool","tool_call_id":"call_1"}
}
