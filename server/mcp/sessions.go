package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"notebox/agent/tool"
)

// toolCall decodes a call's arguments, which the SDK has not looked at, and calls do with the
// caller's Service.
func toolCall[In any](s *server, do func(context.Context, Service, *sdk.CallToolRequest, In) (*sdk.CallToolResult, error)) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in In
		if len(req.Params.Arguments) > 0 {
			decoder := json.NewDecoder(bytes.NewReader(req.Params.Arguments))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&in); err != nil {
				return failure(fmt.Errorf("the arguments are not as the tool's schema says: %w", err)), nil
			}
		}
		of, err := s.of(req)
		if err != nil {
			return failed(ctx, err)
		}
		result, err := do(ctx, of, req, in)
		if err != nil {
			return failed(ctx, err)
		}
		return result, nil
	}
}

// packages are those of a call's dependencies, as models write them.
type packages []string

// UnmarshalJSON implements json.Unmarshaler.
func (p *packages) UnmarshalJSON(raw []byte) (err error) {
	*p, err = tool.ParseDependencies(raw)
	var unread *tool.CallError
	if errors.As(err, &unread) { // its advice is on another tool
		return errors.New(unread.Reason)
	}
	return err
}

func (s *server) addSessions(out *sdk.Server, languages []tool.Language) {
	properties := map[string]any{
		"language": languageOf(languages, "Of the session. Left out: the first that there is a tool for."),
		"ttl":      map[string]any{"type": "number", "exclusiveMinimum": 0, "description": "Seconds after which it ends in any case."},
	}
	install := tool.About{Languages: languages}.DependenciesSchema()
	if install != nil {
		install["description"] = fmt.Sprint(install["description"], " For all runs of the session; none can be added later.")
		properties["dependencies"] = install
	}
	out.AddTool(&sdk.Tool{
		Name: "create_session", Title: "Open a session",
		Description: "Opens a session: a live interpreter with its files in /mnt/data, which stay between runs. Give its id to the other tools. It ends by itself when it is not used for a while.",
		InputSchema: object([]string{}, properties),
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(bool), OpenWorldHint: new(install != nil)},
	}, toolCall(s, func(ctx context.Context, of Service, req *sdk.CallToolRequest, in SessionRequest) (*sdk.CallToolResult, error) {
		p := newProgress(ctx, req) // of installing, which takes its time
		defer p.end()
		opened, err := of.OpenSession(ctx, in)
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{
			Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("session %s is open for %s; it ends at %s, or when it is not used for %v seconds",
				opened.ID, opened.Language, opened.ExpiresAt.Format(time.RFC3339), opened.IdleSeconds)}},
			StructuredContent: opened,
		}, nil
	}))
	out.AddTool(&sdk.Tool{
		Name: "close_session", Title: "Close a session",
		Description: "Ends a session, with its variables and files.",
		InputSchema: object([]string{"session"}, map[string]any{"session": text("Id of the session.")}),
		Annotations: &sdk.ToolAnnotations{OpenWorldHint: new(bool)},
	}, toolCall(s, func(ctx context.Context, of Service, _ *sdk.CallToolRequest, in struct{ Session string }) (*sdk.CallToolResult, error) {
		if err := of.CloseSession(ctx, in.Session); err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "the session is closed"}}}, nil
	}))
}
