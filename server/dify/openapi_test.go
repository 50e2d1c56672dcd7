package dify

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExampleIsTheDocument: what people paste is what the service serves.
func TestExampleIsTheDocument(t *testing.T) {
	example, err := os.ReadFile("../../examples/dify/openapi.json")
	require.NoError(t, err)
	require.Equal(t, string(OpenAPI), string(example), "cp server/dify/openapi.json examples/dify/")
}

func TestDocumentHasTheServicesAddress(t *testing.T) {
	raw, err := Document(`https://code.example.org/"x`)
	require.NoError(t, err)
	var doc struct{ Servers []struct{ URL string } }
	require.NoError(t, json.Unmarshal(raw, &doc))
	require.Len(t, doc.Servers, 1)
	require.Equal(t, `https://code.example.org/"x`, doc.Servers[0].URL)
	require.NotContains(t, string(raw), placeholder)
}

// imported is what Dify's importer reads of an operation (its api/core/tools/utils/parser.py):
// the operationId, the description, and, of the JSON body's schema, the properties with their
// type, description and default, and which are required. A field that is not here is one
// that it would read as something else, or not at all.
type imported struct {
	OperationID string `json:"operationId"`
	Description string
	Parameters  []any
	RequestBody struct {
		Content map[string]struct {
			Schema struct {
				Ref        string `json:"$ref"`
				Type       string
				Required   []string
				Properties map[string]struct {
					Ref         string `json:"$ref"`
					Type        string // a list would not be read
					Description string
					Default     any
					AnyOf       []any `json:"anyOf"`
				}
			}
		}
	} `json:"requestBody"`
}

// toolName is what Dify takes as the name of a tool.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// TestDifyImports holds the document against the calls, as Dify's importer reads it.
func TestDifyImports(t *testing.T) {
	var doc struct {
		Info  struct{ Description string }
		Paths map[string]map[string]imported
	}
	require.NoError(t, json.Unmarshal(OpenAPI, &doc))
	require.NotEmpty(t, doc.Info.Description)
	require.Len(t, doc.Paths, len(Calls()))
	for _, call := range Calls() {
		t.Run(call.Name, func(t *testing.T) {
			require.Len(t, doc.Paths[call.Path()], 1)
			op := doc.Paths[call.Path()]["post"]
			require.Equal(t, call.Name, op.OperationID)
			require.Regexp(t, toolName, op.OperationID)
			require.NotEmpty(t, op.Description)
			require.Empty(t, op.Parameters)
			require.Len(t, op.RequestBody.Content, 1)
			schema := op.RequestBody.Content["application/json"].Schema
			require.Empty(t, schema.Ref)
			require.Equal(t, "object", schema.Type)
			require.Len(t, schema.Properties, len(call.params))
			var required []string
			for _, p := range call.params {
				property := schema.Properties[p.name]
				require.Empty(t, property.Ref)
				require.Empty(t, property.AnyOf)
				require.Equal(t, "string", property.Type, p.name)
				require.NotEmpty(t, property.Description, p.name)
				if p.required {
					required = append(required, p.name)
					require.Nil(t, property.Default, p.name)
				} else {
					require.Equal(t, p.fallback, property.Default, p.name)
				}
			}
			require.Equal(t, required, schema.Required)
		})
	}
}
