package server

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent/tool"
	"notebox/environments"
	"notebox/server/dify"
)

// maxInstructions is where Claude Code cuts what an MCP server says of itself.
const maxInstructions = 2048

// requireShort checks every description within v: those of arguments, and those of tools, which
// have a name.
func requireShort(t *testing.T, v any, most int) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			requireShort(t, one, most)
		}
	case map[string]any:
		for name, one := range v {
			if text, ok := one.(string); ok && name == "description" {
				require.LessOrEqual(t, len(text), most, text)
				require.NotEmpty(t, text)
			}
			within := most
			if name == "properties" {
				within = tool.MaxParameter
			}
			requireShort(t, one, within)
		}
	}
}

// TestDescriptionsAreShort: providers refuse longer ones, or cut them. All settings that
// change them are tried with each other.
func TestDescriptionsAreShort(t *testing.T) {
	built, err := environments.Load("")
	require.NoError(t, err)
	require.Greater(t, len(built), 5)
	many := append([]environments.Environment{}, built...)
	for i := range 60 {
		e := rLang
		e.Name, e.Language = fmt.Sprint("more", i), fmt.Sprint("language-with-a-long-name-", i)
		e.DisplayName = e.Language + " (with a display name that goes on and on)"
		many = append(many, e)
	}
	var settings []string
	for mask := range 16 {
		for name, all := range map[string][]environments.Environment{"Python": built[:1], "all": built, "many": many} {
			offered := fmt.Sprintf("%s, sessions %v, dependencies %v, network %v, one timeout %v", name, mask&1 > 0, mask&2 > 0, mask&4 > 0, mask&8 > 0)
			settings = append(settings, offered)
			t.Run(offered, func(t *testing.T) {
				s := newService(t, func(c *Config) {
					c.Environments = all
					if mask&1 > 0 {
						c.Sessions = newSessions(t)
					}
					if mask&2 > 0 {
						c.Dependencies = &fakePackages{}
					}
					if mask&4 > 0 {
						c.Network = noNetwork{}
					}
					if mask&8 > 0 {
						c.MaxTimeout = c.Limits.Timeout
					}
				})
				for _, query := range []string{"", "?session=true", "?language=" + all[len(all)-1].Language} {
					var listed any
					a := s.get("/v1/tools" + query)
					require.NoError(t, json.Unmarshal(a.body, &listed), "%s", a.body)
					requireShort(t, listed, tool.MaxDescription)
				}
				client := s.mcpClient("", nil)
				require.LessOrEqual(t, len(client.InitializeResult().Instructions), maxInstructions)
				listed, err := client.ListTools(context.Background(), nil)
				require.NoError(t, err)
				requireShort(t, decoded(t, mcpJSON(t, listed)), tool.MaxDescription)
			})
		}
	}
	require.Len(t, settings, 48)
	for desc, raw := range map[string][]byte{"Dify": dify.OpenAPI, "native": openAPI} {
		for path, item := range loadOpenAPI(t, raw).Paths.Map() {
			if desc == "Dify" || path == "/run" || path == "/foo" {
				body := item.Post.RequestBody.Value.Content["application/json"].Schema
				requireShort(t, decoded(t, mcpJSON(t, map[string]any{"description": item.Post.Description, "body": body.Value.Properties})), tool.MaxDescription)
			}
		}
	}
}
