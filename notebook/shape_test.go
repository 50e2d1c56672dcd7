package notebook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

func TestShape(t *testing.T) {
	deep := 2 * notebook.MaxDepth
	for _, c := range []struct {
		desc, raw string
		want      notebook.Shape
	}{
		{"a number", `1`, notebook.Shape{Depth: 0, Values: 0, Names: 0}},
		{"a list", `[1,[2],3]`, notebook.Shape{Depth: 2, Values: 4, Names: 0}},
		{"an object", `{"a":1,"b":[{}]}`, notebook.Shape{Depth: 3, Values: 6, Names: 2}},
		{"objects after each other", `[{"a":1,"b":2},{"c":3}]`, notebook.Shape{Depth: 2, Values: 8, Names: 2}},
		{"objects in each other", `{"a":{"b":{"c":1}},"d":2}`, notebook.Shape{Depth: 3, Values: 8, Names: 3}},
		{"what looks so in a string", `"{[:,\"{[:,"`, notebook.Shape{}},
		{"more ends than beginnings", `}}]]{"a":1`, notebook.Shape{Depth: 0, Values: 2, Names: 0}},
		{"too deep", strings.Repeat(`{"a":`, deep), notebook.Shape{Depth: deep, Values: 2 * deep, Names: notebook.MaxDepth + 1}},
	} {
		t.Run(c.desc, func(t *testing.T) { require.Equal(t, c.want, notebook.ShapeOf([]byte(c.raw))) })
	}
}
