package server

import (
	"net/http"
	"strings"
	"testing"

	"notebox/server/web"

	"github.com/stretchr/testify/require"
)

// TestManyRangesAreTheWholeFile: each range is a request to a cloud's store.
func TestManyRangesAreTheWholeFile(t *testing.T) {
	s := newService(t)
	content := strings.Repeat("0123456789", 1000)
	link := s.produce(map[string]string{"out.csv": content})["out.csv"]
	for _, c := range []struct {
		desc   string
		ranges int
		status int
	}{
		{"as many as a reader of documents asks for", web.MaxRanges, http.StatusPartialContent},
		{"one more", web.MaxRanges + 1, http.StatusOK},
		{"as many as a header holds", 5000, http.StatusOK},
	} {
		t.Run(c.desc, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodGet, link, nil)
			require.NoError(t, err)
			r.Header.Set("Range", "bytes="+strings.TrimSuffix(strings.Repeat("7-7,", c.ranges), ","))
			a := s.do(r)
			require.Equal(t, c.status, a.StatusCode)
			require.Equal(t, c.status == http.StatusOK, content == string(a.body))
		})
	}
}
