package mcp

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"notebox/agent/tool"
)

// Options are what a server says of itself.
type Options struct {
	Version string
	Budget  int // of a result's text in tokens; 0 is tool.DefaultBudget

	sessionID func() string // nil: the SDK's
}

// server makes the tools of one caller.
type server struct {
	of     func(*sdk.CallToolRequest) (Service, error) // of a call: under its caller's key
	budget int
}

// NewServer returns an MCP server with a tool for each language that there is for a caller. of
// gives the Service of a call; nil is the caller's for all.
func NewServer(ctx context.Context, caller Service, of func(*sdk.CallToolRequest) (Service, error), o Options) (*sdk.Server, error) {
	about, err := caller.About(ctx)
	if err != nil {
		return nil, err
	}
	about.Ask = "The tool " + aboutTool + " says what is installed and what else to know of a language."
	if of == nil {
		of = func(*sdk.CallToolRequest) (Service, error) { return caller, nil }
	}
	s := &server{of: of, budget: o.Budget}
	// Without a logger: the SDK logs what callers send.
	out := sdk.NewServer(&sdk.Implementation{Name: "notebox", Title: "notebox", Version: o.Version}, &sdk.ServerOptions{
		Instructions: about.instructions(),
		GetSessionID: o.sessionID,
		Capabilities: &sdk.ServerCapabilities{},
	})
	for _, l := range about.Languages {
		out.AddTool(s.runTool(l, about))
	}
	s.addAbout(out, about.About)
	if about.Sessions {
		s.addSessions(out, about.Languages)
		s.addFiles(out)
	}
	return out, nil
}

// instructions are what clients put before the tools' descriptions.
func (about About) instructions() string {
	const always = "Runs code in isolated sandboxes. The tool " + aboutTool + " says what is installed in a language and what else to know of it."
	if !about.Sessions {
		return always + " Each run is alone: nothing is kept between runs."
	}
	return always + " For work in steps, create_session first, and give its id to the other tools: " +
		"variables and files in /mnt/data stay there. Without a session each run is alone."
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// toolName is run_ and the language, as a tool's name may be.
func toolName(language string) string {
	name := notInName.ReplaceAllString(strings.NewReplacer("++", "pp", "#", "sharp").Replace(strings.ToLower(language)), "_")
	return "run_" + strings.Trim(name, "_")
}

func (s *server) runTool(l tool.Language, about About) (*sdk.Tool, sdk.ToolHandler) {
	about.Languages = []tool.Language{l}
	var after []string
	if about.Sessions {
		after = append(after, "With a session of "+l.Name+" from create_session, variables and files stay for the next run in it.")
	}
	if about.Sessions && l.Name == "bash" {
		after = append(after, "In a session of another language the code is a shell command beside its interpreter, with the same files.")
	}
	properties := map[string]any{
		"code": text("The program, as plain text: no Markdown fence around it."),
		"timeout": map[string]any{"type": "number", "exclusiveMinimum": 0,
			"description": fmt.Sprintf("Seconds after which the run is stopped, at most %v. %v where it is left out.", about.MaxTimeout.Seconds(), about.Timeout.Seconds())},
	}
	if about.Sessions {
		properties["session"] = text("Id of a session in which to run. Left out: a fresh sandbox, which nothing is kept of.")
	}
	install := about.DependenciesSchema()
	if install != nil {
		if about.Sessions {
			install["description"] = fmt.Sprint(install["description"], " Not with session: create_session takes them.")
		}
		properties["dependencies"] = install
	}
	return &sdk.Tool{
		Name: toolName(l.Name), Title: "Run " + l.Title, Description: about.Description(after...),
		InputSchema:  object([]string{"code"}, properties),
		OutputSchema: runSchema,
		Annotations: &sdk.ToolAnnotations{Title: "Run " + l.Title, DestructiveHint: new(bool),
			OpenWorldHint: new(about.Network || install != nil)}, // a registry is asked for packages
	}, s.run(l.Name)
}

// object is the schema of one whose fields are all known.
func object(required []string, properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func text(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}
