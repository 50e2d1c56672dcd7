package tool

import "strings"

// Call is a model's call of the tool.
type Call struct {
	Notation Notation // in which it is written, and answered
	ID       string   // that the model's provider gave it; may be empty
	Name     string   // as the model wrote it; may be empty
	Arguments

	parser parser
	free   bool // a tool whose input is text and not JSON, which has a result of its own kind
}

// names are those that the tool answers to, as plainName leaves them: its own, and
// those that models and older programs have for it.
var names = map[string]bool{
	"executepython": true, "executepythoninnotebook": true, "executepythoncode": true, "python": true,
	"runpython": true, "pythonexec": true, "codeinterpreter": true,
}

// isName accepts names of the tool, also with a namespace before them.
func isName(name string) bool {
	if i := strings.LastIndexAny(name, ".:/"); i >= 0 {
		name = name[i+1:]
	}
	return names[plainName(name)]
}

// Parse reads a whole call as the model emitted it: an entry of tool_calls of Chat
// Completions, a function_call or custom_tool_call item of Responses, a tool_use block
// of Anthropic, a part with a functionCall of Gemini, or {name, arguments}. A list
// of one call is that call, and a message with one in it too. want is the notation of
// the answer; "" is the call's own, or ChatCompletions if it does not tell. languages
// are as of ParseArguments.
//
// An error is a *CallError, beside which the Call has what is known of it, so that
// Refusal can answer it.
func Parse(raw []byte, want Notation, languages ...Language) (Call, error) {
	c := Call{Notation: want, parser: parserOf(languages)}
	var v value
	var err error
	if len(raw) > MaxArguments {
		err = unreadable("it is longer than %d bytes", MaxArguments)
	} else if v, err = readLoose(string(raw), nil); err != nil {
		err = unreadable("it is not valid JSON")
	}
	if err == nil {
		err = c.read(v, 0)
	}
	if !c.Notation.Known() {
		c.Notation = ChatCompletions
	}
	if c.Name != "" && !isName(c.Name) { // whatever its arguments are
		err = unreadable("there is no tool %s here", told(c.Name))
	}
	if err != nil {
		c.Arguments = Arguments{}
	}
	return c, err
}

func (c *Call) read(v value, depth int) error {
	switch {
	case depth > maxWrappers:
		return unreadable("it is wrapped more than %d times", maxWrappers)
	case v.kind == isList && len(v.items) == 1:
		return c.read(v.items[0], depth+1)
	case v.kind == isList:
		return unreadable("there are %d calls in it, and one is read at a time", len(v.items))
	case v.kind == isString:
		return c.arguments(&v)
	case v.kind != isObject:
		return unreadable("it is no object")
	}
	if m := v.object("message"); m != nil {
		return c.read(*m, depth+1)
	}
	for _, list := range []string{"tool_calls", "parts", "content", "output"} {
		if m := v.member(list); m != nil && m.kind == isList {
			return c.read(m.calls(), depth+1)
		}
	}
	switch kind := v.str("type"); {
	case kind == "tool_use":
		return c.one(v, Anthropic, "id", "input")
	case kind == "function_call":
		return c.one(v, Responses, "call_id", "arguments")
	case kind == "custom_tool_call":
		c.free = true
		return c.one(v, Responses, "call_id", "input")
	case v.object("functionCall") != nil:
		return c.one(*v.object("functionCall"), Gemini, "id", "args")
	case v.object("function") != nil:
		c.ID = v.str("id")
		return c.one(*v.object("function"), ChatCompletions, "", "arguments")
	case v.object("custom") != nil:
		c.ID = v.str("id")
		return c.one(*v.object("custom"), ChatCompletions, "", "input")
	case v.object("function_call") != nil:
		return c.one(*v.object("function_call"), ChatCompletions, "id", "arguments")
	case v.member("args") != nil && v.member("name") != nil:
		return c.one(v, Gemini, "id", "args")
	case v.member("call_id") != nil:
		return c.one(v, Responses, "call_id", "arguments")
	case v.member("name") != nil || v.member("arguments") != nil:
		return c.one(v, "", "id", "arguments")
	}
	return c.arguments(&v)
}

// one reads the object that has a call's name and arguments.
func (c *Call) one(v value, own Notation, id, arguments string) error {
	if c.Notation == "" {
		c.Notation = own
	}
	if id != "" {
		c.ID = v.str(id)
	}
	c.Name = v.str("name")
	for _, name := range []string{arguments, "arguments", "input", "args", "parameters"} {
		if m := v.member(name); m != nil && m.kind != isNull {
			return c.arguments(m)
		}
	}
	return unreadable("it has no arguments")
}

func (c *Call) arguments(v *value) (err error) {
	if v.kind == isString {
		c.Arguments, err = c.parser.arguments(v.text)
	} else {
		c.Arguments, err = checked(c.parser.fromValue(*v, 0))
	}
	return err
}

// member is that of a name, nil if there is none. Of several the last counts, as
// for most readers of JSON.
func (v value) member(name string) *value {
	for i := len(v.members) - 1; i >= 0; i-- {
		if v.members[i].name == name {
			return &v.members[i].value
		}
	}
	return nil
}

func (v value) object(name string) *value {
	if m := v.member(name); m != nil && m.kind == isObject {
		return m
	}
	return nil
}

// str is a member that is a string, "" if it is none.
func (v value) str(name string) string {
	if m := v.member(name); m != nil && m.kind == isString {
		return m.text
	}
	return ""
}

// calls leaves of a message's parts those that are calls, or all if none is.
func (v value) calls() value {
	out := value{kind: isList}
	for _, item := range v.items {
		switch item.str("type") {
		case "tool_use", "function_call", "custom_tool_call", "function":
			out.items = append(out.items, item)
		default:
			if item.object("functionCall") != nil {
				out.items = append(out.items, item)
			}
		}
	}
	if len(out.items) == 0 {
		return v
	}
	return out
}
