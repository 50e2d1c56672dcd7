package share

import (
	"fmt"
	"html"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"notebox/executor"
)

// head is what is added to the head of a shared page: Open Graph (https://ogp.me), by which
// chats show a link, and whose page it is. All that is of the run is escaped.
func (s *handler) head(c echo.Context, shared *executor.Share) string {
	var b strings.Builder
	meta := func(kind, name, value string) {
		fmt.Fprintf(&b, "<meta %s=\"%s\" content=\"%s\">\n", kind, name, html.EscapeString(value))
	}
	base, query := s.Base(c.Request())+Prefix+shared.ID, own(c.QueryParams())
	meta("name", "robots", robots)
	meta("name", "notebox-run", shared.ID) // record.ts makes links of it
	meta("name", "description", shared.Summary)
	meta("property", "og:type", "article")
	meta("property", "og:site_name", "notebox")
	meta("property", "og:title", shared.Title)
	meta("property", "og:description", shared.Summary)
	meta("property", "og:url", base+"?"+query)
	card := "summary"
	if p := shared.Picture; p != nil {
		card = "summary_large_image"
		meta("property", "og:image", base+"/images/"+url.PathEscape(p.Name)+"?"+query)
		meta("property", "og:image:type", p.MediaType)
		meta("property", "og:image:alt", "What the run drew")
		if p.Width > 0 && p.Height > 0 {
			meta("property", "og:image:width", fmt.Sprint(p.Width))
			meta("property", "og:image:height", fmt.Sprint(p.Height))
		}
	}
	meta("name", "twitter:card", card)
	return b.String()
}
