package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolCall decodes a call's arguments, which the SDK has not looked at, into in.
func toolCall[In any](do func(context.Context, *sdk.CallToolRequest, In) (*sdk.CallToolResult, error)) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in In
		if len(req.Params.Arguments) > 0 {
			if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
				return failure(fmt.Errorf("the arguments are not as the tool's schema says: %w", err)), nil
			}
		}
		result, err := do(ctx, req, in)
		if err != nil {
			return failed(ctx, err)
		}
		return result, nil
	}
}

// openedSession is what is told of a session.
type openedSession struct {
	ID          string  `json:"id"`
	Language    string  `json:"language"`
	ExpiresAt   string  `json:"expires_at"`
	IdleSeconds float64 `json:"idle_seconds"`
}

func (s *server) addSessions(out *sdk.Server) {
	out.AddTool(&sdk.Tool{
		Name: "create_session", Title: "Open a session",
		Description: "Opens a session: a live interpreter with its files in /mnt/data, which stay between runs. Give its id to the other tools. It ends by itself when it is not used for a while.",
		InputSchema: object([]string{}, map[string]any{
			"language": text("Of the session. Left out: the first that there is a tool for."),
			"ttl":      map[string]any{"type": "number", "exclusiveMinimum": 0, "description": "Seconds after which it ends in any case."},
		}),
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(bool), OpenWorldHint: new(bool)},
	}, toolCall(func(ctx context.Context, req *sdk.CallToolRequest, in struct {
		Language string  `json:"language,omitempty"`
		TTL      float64 `json:"ttl,omitempty"`
	}) (*sdk.CallToolResult, error) {
		var opened openedSession
		if err := s.api(req).call(ctx, "POST", "/v1/sessions", in, &opened); err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{
			Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("session %s is open for %s; it ends at %s, or when it is not used for %v seconds",
				opened.ID, opened.Language, opened.ExpiresAt, opened.IdleSeconds)}},
			StructuredContent: opened,
		}, nil
	}))
	out.AddTool(&sdk.Tool{
		Name: "close_session", Title: "Close a session",
		Description: "Ends a session, with its variables and files.",
		InputSchema: object([]string{"session"}, map[string]any{"session": text("Id of the session.")}),
		Annotations: &sdk.ToolAnnotations{OpenWorldHint: new(bool)},
	}, toolCall(func(ctx context.Context, req *sdk.CallToolRequest, in struct{ Session string }) (*sdk.CallToolResult, error) {
		if err := s.api(req).call(ctx, "DELETE", "/v1/sessions/"+url.PathEscape(in.Session), nil, nil); err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "the session is closed"}}}, nil
	}))
}
