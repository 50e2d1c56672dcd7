package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"notebox/client"
)

const (
	// maxRead is how much of a text file a result has, in bytes: what a model can read.
	maxRead = 64 << 10
	// maxListed is how many files are named in the text of a list.
	maxListed = 200
)

// writeFile is the name of the tool whose messages may be large.
const writeFile = "write_file"

type fileArguments struct {
	Session  string
	Path     string
	Content  string
	Encoding string
}

func (s *server) addFiles(out *sdk.Server) {
	session, path := text("Id of the session, from create_session."), text("Of the file, below /mnt/data.")
	quiet := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)}
	out.AddTool(&sdk.Tool{
		Name: "list_files", Title: "List files", Description: "Lists the files of a session's /mnt/data.",
		InputSchema: object([]string{"session"}, map[string]any{"session": session, "path": text("A folder below /mnt/data. Left out: all of it.")}),
		Annotations: quiet,
	}, toolCall(s, s.listFiles))
	out.AddTool(&sdk.Tool{
		Name: "read_file", Title: "Read a file",
		Description: fmt.Sprintf("Reads a file of a session: text as text, up to %d bytes, and an image as an image. Other kinds are read with code.", maxRead),
		InputSchema: object([]string{"session", "path"}, map[string]any{"session": session, "path": path}),
		Annotations: quiet,
	}, toolCall(s, s.readFile))
	out.AddTool(&sdk.Tool{
		Name: writeFile, Title: "Write a file", Description: "Writes a file of a session, and replaces one that is there.",
		InputSchema: object([]string{"session", "path", "content"}, map[string]any{
			"session": session, "path": path, "content": text("All of the file."),
			"encoding": map[string]any{"type": "string", "enum": []string{"text", "base64"}, "default": "text", "description": "Of content."},
		}),
		Annotations: &sdk.ToolAnnotations{IdempotentHint: true, OpenWorldHint: new(bool)},
	}, toolCall(s, s.writeFile))
}

func (s *server) listFiles(ctx context.Context, of Service, _ *sdk.CallToolRequest, in fileArguments) (*sdk.CallToolResult, error) {
	list, err := of.ListFiles(ctx, in.Session, in.Path)
	if err != nil {
		return nil, err
	}
	if len(list.Files) > maxListed {
		list.Files, list.More = list.Files[:maxListed], true
	}
	var lines []string
	for _, f := range list.Files {
		lines = append(lines, fmt.Sprintf("%s (%s, %d bytes)", strings.Join(strings.Fields(f.Path), " "), f.Kind, f.Bytes))
	}
	switch {
	case list.More:
		lines = append(lines, "[… there are more …]")
	case len(lines) == 0:
		lines = []string{"there are no files"}
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Join(lines, "\n")}}, StructuredContent: list}, nil
}

func (s *server) readFile(ctx context.Context, of Service, _ *sdk.CallToolRequest, in fileArguments) (*sdk.CallToolResult, error) {
	file, err := of.ReadFile(ctx, in.Session, in.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	image := imageTypes[file.MediaType] && file.Bytes <= maxImageBytes
	most := int64(maxRead)
	if image {
		most = maxImageBytes
	}
	raw, err := io.ReadAll(io.LimitReader(file, min(most, file.Bytes)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrUnread, err)
	}
	if image {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: raw, MIMEType: file.MediaType}}}, nil
	}
	content, cut := string(raw), file.Bytes > int64(len(raw))
	for range utf8.UTFMax {
		if cut && !utf8.ValidString(content) { // half a character at the end
			content = content[:len(content)-1]
		}
	}
	switch {
	case !utf8.ValidString(content):
		return failure(fmt.Errorf("the file is no text (%s, %d bytes): read it with code", file.MediaType, file.Bytes)), nil
	case cut:
		content += fmt.Sprintf("\n[… %d bytes left out …]", file.Bytes-int64(len(content)))
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: content}}}, nil
}

func (s *server) writeFile(ctx context.Context, of Service, _ *sdk.CallToolRequest, in fileArguments) (*sdk.CallToolResult, error) {
	content := in.Content
	switch in.Encoding {
	case "", "text":
	case "base64":
		raw, err := base64.StdEncoding.DecodeString(content)
		if err != nil {
			return failure(errors.New("content is not base64")), nil
		}
		content = string(raw)
	default:
		return failure(errors.New("encoding is text or base64")), nil
	}
	written, err := of.WriteFile(ctx, in.Session, in.Path, content)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("%s is written, %d bytes", written.Path, written.Bytes)}},
		StructuredContent: written,
	}, nil
}
