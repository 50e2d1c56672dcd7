package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxRead is how much of a text file a result has, in bytes: what a model can read.
	maxRead = 64 << 10
	// maxListed is how many files are named in the text of a list.
	maxListed = 200
)

// listedFile is an entry of a list of files.
type listedFile struct {
	Path       string  `json:"path"`
	Kind       string  `json:"kind"`
	Bytes      int64   `json:"bytes"`
	MediaType  *string `json:"media_type"`
	ModifiedAt string  `json:"modified_at"`
}

type fileArguments struct {
	Session  string
	Path     string
	Content  string
	Encoding string
}

// filePath is where a file of a session is in the API.
func (in fileArguments) filePath() string {
	parts := strings.Split(strings.Trim(strings.TrimPrefix(in.Path, "/mnt/data/"), "/"), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
		if parts[i] == "." || parts[i] == ".." { // for the API to refuse: no client cleans it
			parts[i] = strings.ReplaceAll(parts[i], ".", "%2E")
		}
	}
	return "/v1/sessions/" + url.PathEscape(in.Session) + "/files/" + strings.Join(parts, "/")
}

func (s *server) addFiles(out *sdk.Server) {
	session, path := text("Id of the session, from create_session."), text("Of the file, below /mnt/data.")
	quiet := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)}
	out.AddTool(&sdk.Tool{
		Name: "list_files", Title: "List files", Description: "Lists the files of a session's /mnt/data.",
		InputSchema: object([]string{"session"}, map[string]any{"session": session, "path": text("A folder below /mnt/data. Left out: all of it.")}),
		Annotations: quiet,
	}, toolCall(s.listFiles))
	out.AddTool(&sdk.Tool{
		Name: "read_file", Title: "Read a file",
		Description: fmt.Sprintf("Reads a file of a session: text as text, up to %d bytes, and an image as an image. Other kinds are read with code.", maxRead),
		InputSchema: object([]string{"session", "path"}, map[string]any{"session": session, "path": path}),
		Annotations: quiet,
	}, toolCall(s.readFile))
	out.AddTool(&sdk.Tool{
		Name: "write_file", Title: "Write a file", Description: "Writes a file of a session, and replaces one that is there.",
		InputSchema: object([]string{"session", "path", "content"}, map[string]any{
			"session": session, "path": path, "content": text("All of the file."),
			"encoding": map[string]any{"type": "string", "enum": []string{"text", "base64"}, "default": "text", "description": "Of content."},
		}),
		Annotations: &sdk.ToolAnnotations{IdempotentHint: true, OpenWorldHint: new(bool)},
	}, toolCall(s.writeFile))
}

func (s *server) listFiles(ctx context.Context, req *sdk.CallToolRequest, in fileArguments) (*sdk.CallToolResult, error) {
	var list struct {
		Files []listedFile `json:"files"`
		More  bool         `json:"more"`
	}
	query := url.Values{"recursive": {"true"}}
	if in.Path != "" {
		query.Set("path", in.Path)
	}
	if err := s.api(req).call(ctx, "GET", "/v1/sessions/"+url.PathEscape(in.Session)+"/files?"+query.Encode(), nil, &list); err != nil {
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

func (s *server) readFile(ctx context.Context, req *sdk.CallToolRequest, in fileArguments) (*sdk.CallToolResult, error) {
	resp, err := s.api(req).send(ctx, "GET", in.filePath(), "", nil, "")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if imageTypes[mediaType] && resp.ContentLength <= maxImageBytes {
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxImageBytes))
		if err != nil {
			return nil, errors.Join(errReply, err)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: raw, MIMEType: mediaType}}}, nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxRead))
	if err != nil {
		return nil, errors.Join(errReply, err)
	}
	content, cut := string(raw), resp.ContentLength > int64(len(raw))
	for range utf8.UTFMax {
		if cut && !utf8.ValidString(content) { // half a character at the end
			content = content[:len(content)-1]
		}
	}
	switch {
	case !utf8.ValidString(content):
		return failure(fmt.Errorf("the file is no text (%s, %d bytes): read it with code", mediaType, resp.ContentLength)), nil
	case cut:
		content += fmt.Sprintf("\n[… %d bytes left out …]", resp.ContentLength-int64(len(content)))
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: content}}}, nil
}

func (s *server) writeFile(ctx context.Context, req *sdk.CallToolRequest, in fileArguments) (*sdk.CallToolResult, error) {
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
	resp, err := s.api(req).send(ctx, "PUT", in.filePath(), "application/octet-stream", strings.NewReader(content), "")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var written listedFile
	if err := decode(resp.Body, &written); err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("%s is written, %d bytes", written.Path, written.Bytes)}},
		StructuredContent: written,
	}, nil
}
