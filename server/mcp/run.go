package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"notebox/agent/tool"
	"notebox/client"
)

// Bounds on the parts of one result.
const (
	maxImages     = 8       // a model looks at few
	maxImageBytes = 3 << 20 // of one; clients refuse larger messages
	maxLinks      = 30      // resource links
)

// imageTypes are the media types that clients show.
var imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// outcome is the structured content of a run: no base64, and no HTML of the program's.
type outcome struct {
	ID     string         `json:"id"`
	Status string         `json:"status"`
	Text   string         `json:"text"`
	Hint   string         `json:"hint"`
	Error  *raised        `json:"error"`
	Images []linked       `json:"images"`
	Files  []linked       `json:"files"`
	Usage  map[string]any `json:"usage"`
}

type raised struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Line    int    `json:"line"`
}

type linked struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
	URL       string `json:"url"`
}

// runSchema is outcome's.
var runSchema = map[string]any{
	"type": "object",
	"properties": map[string]any{
		"id":     text("Of the run."),
		"status": text("ok, error, timeout, out_of_memory, killed, output_limit or cancelled."),
		"text":   text("What the program put out, with tracebacks."),
		"hint":   text("What to change, where the status is not ok."),
		"error":  map[string]any{"type": []string{"object", "null"}},
		"images": map[string]any{"type": "array", "items": map[string]any{"type": "object"}},
		"files":  map[string]any{"type": "array", "items": map[string]any{"type": "object"}},
		"usage":  map[string]any{"type": []string{"object", "null"}},
	},
	"required": []string{"id", "status", "text", "hint", "error", "images", "files"},
}

// run is the tool of a language.
func (s *server) run(language string) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		e, err := executionOf(language, req.Params.Arguments)
		if err != nil {
			return failure(err), nil
		}
		of, err := s.of(req)
		if err != nil {
			return failed(ctx, err)
		}
		p := newProgress(ctx, req)
		raw, err := of.Run(ctx, e, p.said)
		p.end()
		if err != nil {
			return failed(ctx, err)
		}
		return s.result(raw)
	}
}

// executionOf reads the arguments. Those of Python as models break them, too.
func executionOf(language string, raw json.RawMessage) (Execution, error) {
	var given struct {
		Code         json.RawMessage
		Session      string
		Timeout      float64
		Dependencies json.RawMessage
	}
	err := json.Unmarshal(raw, &given)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && strings.EqualFold(wrong.Field, "session") { // it would run elsewhere
		return Execution{}, errors.New("session is a string: the id that create_session gave")
	}
	e := Execution{Session: given.Session, Timeout: given.Timeout, Language: language}
	if language == "python" {
		a, err := tool.ParseArguments(string(raw))
		e.Code, e.Dependencies = a.Code, a.Dependencies
		if e.Timeout == 0 {
			e.Timeout = a.Timeout.Seconds()
		}
		if err == nil && a.About {
			return e, errors.New("nothing was run: ask the tool " + aboutTool)
		}
		var unread *tool.CallError
		if errors.As(err, &unread) { // the tool has another name here
			return e, errors.New(unread.Told(toolName(language)))
		}
		return e, err
	}
	if err != nil || json.Unmarshal(given.Code, &e.Code) != nil || strings.TrimSpace(e.Code) == "" {
		return e, errors.New("code is missing: it is the program, as one string")
	}
	if given.Dependencies == nil {
		return e, nil
	}
	return e, (*packages)(&e.Dependencies).UnmarshalJSON(given.Dependencies)
}

// failed is the answer to a call that did not run. What the API refused is told to the
// model, which may act on it; a call that was cancelled has no answer.
func failed(ctx context.Context, err error) (*sdk.CallToolResult, error) {
	var refused *Refusal
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return failure(errors.New("there is no such session or file; create_session opens a session, list_files lists files")), nil
	case errors.As(err, &refused) && refused.Status == http.StatusGone:
		return failure(fmt.Errorf("%s; create_session opens another", refused.Detail)), nil
	}
	return failure(err), nil
}

func failure(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}
}

// result makes the parts of a reply.
func (s *server) result(raw []byte) (*sdk.CallToolResult, error) {
	r, err := tool.ReadResult(raw)
	if err != nil {
		return nil, err
	}
	var o outcome
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrUnread, err)
	}
	o.Text = tool.Text(r, tool.Options{Budget: s.budget})
	content := []sdk.Content{&sdk.TextContent{Text: o.Text}}
	for _, i := range r.Images {
		if len(content) <= maxImages && imageTypes[i.MediaType] && len(i.Data) > 0 && len(i.Data) <= maxImageBytes {
			content = append(content, &sdk.ImageContent{Data: i.Data, MIMEType: i.MediaType})
		}
	}
	links := 0
	for _, l := range append(append([]linked{}, o.Images...), o.Files...) {
		if l.URL != "" && links < maxLinks {
			size := l.Bytes
			content = append(content, &sdk.ResourceLink{URI: l.URL, Name: l.Name, MIMEType: l.MediaType, Size: &size})
			links++
		}
	}
	return &sdk.CallToolResult{Content: content, StructuredContent: o, IsError: r.Failed()}, nil
}
