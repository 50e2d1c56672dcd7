package protocols

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/tests/browser"
)

// TestASharedLink: a run of the page is shared, seen in a fresh browser with its plot and its
// text, its file saved, and revoked.
func TestASharedLink(t *testing.T) {
	t.Parallel()
	b := openPage(t, "# Three squares\nimport matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()\nprint('the text')\nopen('out.csv', 'w').write('a,b\\n')")
	click(b, "run")
	untilStatus(b, "Done")
	click(b, "share-button")
	b.Do(chromedp.Click(chromedp.CSS("dialog .primary")))
	b.Until(`document.querySelector("#share-link") !== null`)
	link := browser.Eval[string](b, `document.querySelector("#share-link").value`)

	visitor := browser.New(t, 1000, 1000)
	visitor.Do(chromedp.Navigate(link))
	visitor.Until(`document.querySelector(".outputs img")?.naturalWidth > 100`)
	require.Equal(t, "the text\n", browser.Eval[string](visitor, `document.querySelector(".stream").textContent`))
	require.Equal(t, "Three squares", browser.Eval[string](visitor, `document.title`))
	require.Empty(t, visitor.Complaints())
	folder := t.TempDir()
	_, err := chromedp.Call(visitor.Ctx, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: "allow", DownloadPath: folder})
	require.NoError(t, err)
	visitor.Do(chromedp.Click(chromedp.CSS("main li a")))
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(filepath.Join(folder, "out.csv"))
		return err == nil && string(raw) == "a,b\n"
	}, 20*time.Second, 100*time.Millisecond)

	click(b, "share-revoke")
	b.Until(`document.querySelector("dialog").textContent.includes("does not work any more")`)
	for _, path := range []string{"", "/files/out.csv", "/images/image_0.png"} {
		answer, err := http.Get(strings.Replace(link, "?", path+"?", 1))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusNotFound, answer.StatusCode)
	}
}
