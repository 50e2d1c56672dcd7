package protocols

import (
	"flag"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

var update = flag.Bool("update", false, "rewrite the names that the page completes; scripts/page.sh makes an asset of them")

// TestThePagesMembers: the names of members that the page has are those of Python's image, and
// their packages have the versions that the service tells.
func TestThePagesMembers(t *testing.T) {
	t.Parallel()
	const members = "../../../server/page/source/members/"
	program, err := os.ReadFile(members + "list.py")
	require.NoError(t, err)
	a := service.Ask(t, http.MethodPost, shared.URL+"/v1/execute?timeout=300", string(program))
	reply := a.Reply(t)
	require.Equal(t, "ok", reply.Status, reply.Text)
	list := reply.Text
	if *update {
		require.NoError(t, os.WriteFile(members+"python.json", []byte(list), 0o644))
	}
	kept, err := os.ReadFile(members + "python.json")
	require.NoError(t, err)
	require.True(t, string(kept) == list, "the image has other names: run make update-golden pages")

	b := openPage(t, "")
	b.Press("Enter")
	b.Type("import pandas as pd\npd.read_parq")
	b.Until(`[...document.querySelector(".editor").shadowRoot.querySelectorAll(".cm-completionLabel")].some((e) => e.textContent === "read_parquet")`)
	time.Sleep(200 * time.Millisecond) // the editor takes nothing that came up just now
	b.Shoot("page-members")
	b.Press("Tab")
	b.Until(`[...document.querySelector(".editor").shadowRoot.querySelectorAll(".cm-line")].at(-1).textContent === "pd.read_parquet"`)
	b.RequireQuiet(shared.URL)
}
