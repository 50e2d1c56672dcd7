package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"notebox/agent/tool"
)

// environmentList is what is read of GET /v1/environments.
type environmentList struct {
	Environments []environment
	Limits       struct {
		Timeout    float64 `json:"timeout_seconds"`
		MaxTimeout float64 `json:"max_timeout_seconds"`
		Network    bool
		Sessions   *bool
	}
}

type environment struct {
	Language    string
	Available   *bool
	DisplayName string `json:"display_name"`
	Packages    []struct{ Name string }
	Notes       []string

	Dependencies struct { // no Notation: requests for it have none
		Notation string
		Allowed  []string
	}
}

// about is what a model is told of the service.
func (list environmentList) about() tool.About {
	about := tool.About{
		Timeout: secondsOf(list.Limits.Timeout), MaxTimeout: secondsOf(list.Limits.MaxTimeout), Network: list.Limits.Network,
		Ask: "The tool " + aboutTool + " says what is installed and what else to know of a language.",
	}
	for _, e := range list.Environments {
		if e.available() {
			about.Languages = append(about.Languages, e.language())
		}
	}
	return about
}

// available reports whether e's image is installed; a notebox of before has all.
func (e environment) available() bool { return e.Available == nil || *e.Available }

// language is what a model is told of e.
func (e environment) language() tool.Language {
	l := tool.Language{Name: e.Language, Title: e.DisplayName, Notes: e.Notes, Dependencies: e.Dependencies.Notation, Allowed: e.Dependencies.Allowed}
	for _, p := range e.Packages {
		l.Packages = append(l.Packages, p.Name)
	}
	return l
}

// Options are what a server says of itself.
type Options struct {
	Version string
	Log     *slog.Logger // nil: nothing is logged
	Budget  int          // of a result's text in tokens; 0 is tool.DefaultBudget

	// Execute runs code for the caller whose headers these are, and returns the reply of the
	// native API. said hears what is put out meanwhile. An error is a *Refusal if it is for
	// the model. nil: the API is asked over HTTP.
	Execute Execute

	sessionID func() string // nil: the SDK's
}

// Execute is Options.Execute.
type Execute func(ctx context.Context, head http.Header, e Execution, said func(string)) (reply []byte, err error)

// server makes the tools of one API.
type server struct {
	api    func(*sdk.CallToolRequest) API // of a call: under its caller's key
	direct Execute
	budget int
}

func (s *server) execute(ctx context.Context, req *sdk.CallToolRequest, e Execution, said func(string)) ([]byte, error) {
	if s.direct == nil {
		return s.api(req).execute(ctx, e, said)
	}
	return s.direct(ctx, req.Extra.Header, e, said)
}

// NewServer returns an MCP server with a tool for each language that api has. of gives
// the API of a call; nil is api for all.
func NewServer(ctx context.Context, api API, of func(*sdk.CallToolRequest) API, o Options) (*sdk.Server, error) {
	var list environmentList
	if err := api.call(ctx, "GET", "/v1/environments", nil, &list); err != nil {
		return nil, err
	}
	if of == nil {
		of = func(*sdk.CallToolRequest) API { return api }
	}
	s := &server{api: of, direct: o.Execute, budget: o.Budget}
	out := sdk.NewServer(&sdk.Implementation{Name: "notebox", Title: "notebox", Version: o.Version}, &sdk.ServerOptions{
		Instructions: list.instructions(),
		Logger:       o.Log,
		GetSessionID: o.sessionID,
		Capabilities: &sdk.ServerCapabilities{},
	})
	about := list.about()
	for _, e := range list.Environments {
		if e.available() {
			out.AddTool(s.runTool(e, list))
		}
	}
	addAbout(out, about)
	if list.sessions() {
		s.addSessions(out, about.Languages)
		s.addFiles(out)
	}
	return out, nil
}

// sessions reports whether there are any; a notebox of before has them.
func (list environmentList) sessions() bool {
	return list.Limits.Sessions == nil || *list.Limits.Sessions
}

// instructions are what clients put before the tools' descriptions.
func (list environmentList) instructions() string {
	const always = "Runs code in isolated sandboxes. The tool " + aboutTool + " says what is installed in a language and what else to know of it."
	if !list.sessions() {
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

func (s *server) runTool(e environment, list environmentList) (*sdk.Tool, sdk.ToolHandler) {
	about := list.about()
	about.Languages = []tool.Language{e.language()}
	var after []string
	if list.sessions() {
		after = append(after, "With a session of "+e.Language+" from create_session, variables and files stay for the next run in it.")
	}
	if list.sessions() && e.Language == "bash" {
		after = append(after, "In a session of another language the code is a shell command beside its interpreter, with the same files.")
	}
	properties := map[string]any{
		"code": text("The program, as plain text: no Markdown fence around it."),
		"timeout": map[string]any{"type": "number", "exclusiveMinimum": 0,
			"description": fmt.Sprintf("Seconds after which the run is stopped, at most %v. %v where it is left out.", list.Limits.MaxTimeout, list.Limits.Timeout)},
	}
	if list.sessions() {
		properties["session"] = text("Id of a session in which to run. Left out: a fresh sandbox, which nothing is kept of.")
	}
	install := about.DependenciesSchema()
	if install != nil {
		if list.sessions() {
			install["description"] = fmt.Sprint(install["description"], " Not with session: create_session takes them.")
		}
		properties["dependencies"] = install
	}
	return &sdk.Tool{
		Name: toolName(e.Language), Title: "Run " + e.DisplayName, Description: about.Description(after...),
		InputSchema:  object([]string{"code"}, properties),
		OutputSchema: runSchema,
		Annotations: &sdk.ToolAnnotations{Title: "Run " + e.DisplayName, DestructiveHint: new(bool),
			OpenWorldHint: new(list.Limits.Network || install != nil)}, // a registry is asked for packages
	}, s.run(e.Language)
}

// object is the schema of one whose fields are all known.
func object(required []string, properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func text(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}
