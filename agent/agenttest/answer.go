package agenttest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

var errNoKey = errors.New("you didn't provide an API key")

// protocol is one way of speaking to a model.
type protocol interface {
	// read decodes a request.
	read(r *http.Request, body []byte) (*Request, error)
	// whole is the answer as one JSON object.
	whole(a *answer) any
	// events are the answer in pieces.
	events(a *answer) []event
	// failure is the JSON of an error, and its event within a stream.
	failure(f Fault) (any, event)
}

func protocolOf(path string) protocol {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	case strings.HasSuffix(path, "/messages"):
		return messages{}
	}
	return nil
}

// event is one server-sent event; data that is a string is sent as it is.
type event struct {
	name string
	data any
}

// object is a JSON object.
type object = map[string]any

// answer is a turn with its ids.
type answer struct {
	req       *Request
	turn      *Turn
	text      string
	calls     []call
	id        func(prefix string) string
	in, out   int // tokens, by the length of the texts
	createdAt int64
}

type call struct{ id, name, arguments string }

// pieceRunes is how much of a text is sent at a time: about what a token is, twice.
const pieceRunes = 8

// bytesPerToken is a rough mean of English text and code.
const bytesPerToken = 4

func (s *Server) answer(w http.ResponseWriter, r *http.Request, p protocol, req *Request, turn *Turn, fault *Fault) {
	if fault != nil && fault.Hang {
		<-r.Context().Done()
		return
	}
	if fault != nil && fault.Status != 0 {
		writeError(w, p, *fault)
		return
	}
	last := ""
	if results := req.ToolResults(); len(results) > 0 {
		last = results[len(results)-1]
	}
	text, err := say(turn.Text, last)
	if err != nil {
		s.refuse(w, p, err)
		return
	}
	a := &answer{req: req, turn: turn, text: text, id: s.id, in: len(req.Body)/bytesPerToken + 1, out: len(text)/bytesPerToken + 1, createdAt: time.Now().Unix()}
	prefix := "call_"
	if req.Protocol == "messages" {
		prefix = "toolu_"
	}
	for _, c := range turn.Calls {
		a.calls = append(a.calls, call{s.id(prefix), c.Name, string(c.Arguments)})
		a.out += len(c.Arguments)/bytesPerToken + 1
	}
	if !req.Stream {
		s.send(w, p, a, fault)
		return
	}
	stream(w, p, a, fault)
}

func (s *Server) send(w http.ResponseWriter, p protocol, a *answer, fault *Fault) {
	raw, err := json.Marshal(p.whole(a))
	if err != nil { // arguments that are no JSON, where the protocol has them as a value
		s.refuse(w, p, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if fault != nil { // cut
		_, _ = w.Write(raw[:len(raw)/2])
		cut(w)
	}
	_, _ = w.Write(raw)
}

func stream(w http.ResponseWriter, p protocol, a *answer, fault *Fault) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	all := p.events(a)
	for i, e := range all {
		if fault != nil && i == len(all)/2 {
			if fault.InStream {
				_, e := p.failure(*fault)
				write(w, e)
				return
			}
			cut(w)
		}
		write(w, e)
	}
}

func write(w http.ResponseWriter, e event) {
	data, isText := e.data.(string)
	if !isText {
		raw, err := json.Marshal(e.data)
		if err != nil { // all are made here
			panic(err)
		}
		data = string(raw)
	}
	head := ""
	if e.name != "" {
		head = "event: " + e.name + "\n"
	}
	_, _ = w.Write([]byte(head + "data: " + data + "\n\n"))
	_ = http.NewResponseController(w).Flush()
}

// cut ends the connection as it is; net/http does that where a handler panics so.
func cut(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func writeError(w http.ResponseWriter, p protocol, f Fault) {
	if f.Message == "" {
		f.Message = "The scripted model fails with " + http.StatusText(f.Status)
	}
	w.Header().Set("Content-Type", "application/json")
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.WriteHeader(f.Status)
	body, _ := p.failure(f)
	_ = json.NewEncoder(w).Encode(body)
}

// pieces cuts a text as a stream does.
func pieces(text string) []string {
	var out []string
	for text != "" {
		end, n := 0, 0
		for end < len(text) && n < pieceRunes {
			_, size := utf8.DecodeRuneInString(text[end:])
			end, n = end+size, n+1
		}
		out, text = append(out, text[:end]), text[end:]
	}
	return out
}

// textOf is the text of a content that is a string, or a list of typed parts.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // null, and what is unknown, has no text
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// bearer checks for a key as OpenAI wants it.
func bearer(r *http.Request) error {
	if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || key == "" {
		return errNoKey
	}
	return nil
}
