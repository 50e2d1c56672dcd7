package openapitest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// Call is one example of an operation.
type Call struct {
	Method    string
	Path      string // as the document has it, "/v1/executions/{id}"
	Example   string // of the body: its media type and its name, if it has one
	Operation *openapi3.Operation

	doc        *openapi3.T
	item       *openapi3.PathItem
	parameters []parameter
	mediaType  string // of the body; "": it has none
	body       any
}

type parameter struct{ in, name, value string }

// String names the call, for the names of tests.
func (c Call) String() string {
	if c.Example == "" {
		return c.Operation.OperationID
	}
	return c.Operation.OperationID + ", " + c.Example
}

// Load reads a document and checks it: that it is OpenAPI 3.1 as the specification wants it,
// with examples that are of their schemas, and operations that have names, each its own.
func Load(t testing.TB, raw []byte) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(context.Background()))
	require.True(t, doc.IsOpenAPI31OrLater())
	seen := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			require.NotEmpty(t, operation.OperationID, "%s %s", method, path)
			require.False(t, seen[operation.OperationID], "two operations are called %s", operation.OperationID)
			seen[operation.OperationID] = true
		}
	}
	return doc
}

// Calls are all examples of all operations: sorted by path, with what deletes at the end.
func Calls(t testing.TB, doc *openapi3.T) (calls []Call) {
	t.Helper()
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			c := Call{Method: method, Path: path, Operation: operation, doc: doc, item: item}
			for _, list := range []openapi3.Parameters{item.Parameters, operation.Parameters} {
				for _, p := range list {
					value := exampleOf(p.Value)
					require.False(t, value == nil && p.Value.Required, "%s: the parameter %s has no example", c, p.Value.Name)
					if value != nil {
						c.parameters = append(c.parameters, parameter{p.Value.In, p.Value.Name, fmt.Sprint(value)})
					}
				}
			}
			calls = append(calls, withBodies(t, c)...)
		}
	}
	slices.SortFunc(calls, func(a, b Call) int {
		return cmp.Or(order(a)-order(b), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Example, b.Example))
	})
	return calls
}

func order(c Call) int {
	if c.Method == http.MethodDelete {
		return 1
	}
	return 0
}

// exampleOf is nil if there is none.
func exampleOf(p *openapi3.Parameter) any {
	if p.Example != nil {
		return p.Example
	}
	for _, name := range slices.Sorted(maps.Keys(p.Examples)) {
		return p.Examples[name].Value.Value
	}
	if p.Schema != nil {
		return p.Schema.Value.Example
	}
	return nil
}

// withBodies is the call once for each example of its body.
func withBodies(t testing.TB, c Call) (calls []Call) {
	t.Helper()
	if c.Operation.RequestBody == nil {
		return []Call{c}
	}
	for mediaType, content := range c.Operation.RequestBody.Value.Content {
		one := c
		one.Example, one.mediaType, one.body = mediaType, mediaType, content.Example
		if one.body != nil {
			calls = append(calls, one)
			continue
		}
		if content.Extensions["x-language"] != nil {
			continue // of an environment that the document's author did not know
		}
		require.NotEmpty(t, content.Examples, "%s has no example", one)
		for name, example := range content.Examples {
			one.Example, one.body = mediaType+", "+name, example.Value.Value
			calls = append(calls, one)
		}
	}
	return calls
}
