package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"notebox/agent/tool"
)

// aboutTool tells what the descriptions of the tools leave out.
const aboutTool = "about"

func (s *server) addAbout(out *sdk.Server, about tool.About) {
	quiet := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)}
	out.AddTool(&sdk.Tool{
		Name: aboutTool, Title: "What there is",
		Description: "Says what is installed in a language, how packages get there, what limits hold, and what else to know of it. Runs nothing.",
		InputSchema: object([]string{}, map[string]any{"language": languageOf(about.Languages, "Left out: the first that there is a tool for.")}),
		Annotations: quiet,
	}, toolCall(s, func(_ context.Context, _ Service, _ *sdk.CallToolRequest, in struct{ Language string }) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: about.Tell(in.Language)}}}, nil
	}))
}

// languageOf is the schema of an argument that is one of the languages.
func languageOf(languages []tool.Language, description string) map[string]any {
	schema := text(description)
	var names []string
	for _, l := range languages {
		names = append(names, l.Name)
	}
	if len(names) > 0 {
		schema["enum"] = names
	}
	return schema
}
