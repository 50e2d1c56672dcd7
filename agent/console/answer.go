package console

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"notebox/agent"
	"notebox/client"
)

// issued takes the links of an answer, which may stand in those after it too.
func (c *Console) issued(a *agent.Answer) {
	for _, i := range a.Images {
		c.links.add(i.URL)
	}
	for _, f := range a.Files {
		c.links.add(f.URL)
	}
}

// show writes an answer to a terminal, with what belongs to it.
func (c *Console) show(ctx context.Context, a *agent.Answer) {
	c.write(c.o.Theme.render(a.Text, c.links, c.columns()) + plain + "\n")
	if len(a.Images)+len(a.Files) > 0 {
		c.write("\n")
	}
	for _, i := range a.Images {
		c.picture(ctx, i.URL)
		c.named("image", i.Name, "", i.URL, i.Error)
	}
	for _, f := range a.Files {
		c.named("file", f.Path, size(f.Bytes), f.URL, f.Error)
	}
	c.write("\n")
}

// named writes where an image or a file is.
func (c *Console) named(kind, name, size, address, lost string) {
	line := fmt.Sprintf("%s%s %s%s", bold, kind, defuseLine(name), plain)
	if size != "" {
		line += " " + dim + size + plain
	}
	switch {
	case c.links[address]:
		line += "  " + link(address) + cyan + address + plain + ansi.ResetHyperlink()
	case lost != "":
		line += "  " + red + defuseLine(lost) + plain
	}
	c.write(line + "\n")
}

// fetchTime bounds the wait for one image.
const fetchTime = 20 * time.Second

// picture shows an image where the terminal can.
func (c *Console) picture(ctx context.Context, address string) {
	if c.o.Pictures == PicturesOff || c.o.Pictures == "" || !c.links[address] {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	raw, err := client.Fetch(ctx, c.o.Client, address, maxPictureBytes)
	if err == nil {
		err = c.o.Pictures.write(c.o.Out, raw)
	}
	if err != nil {
		c.write(dim + "(not shown: " + defuseLine(err.Error()) + ")" + plain + "\n")
	}
}

// plainAnswer is an answer for programs: the Markdown, and the links that it does not
// have.
func plainAnswer(a *agent.Answer) string {
	var out strings.Builder
	out.WriteString(strings.TrimSpace(Defuse(a.Text)) + "\n")
	add := func(kind, name, address string) {
		if safeAddress(address) && !strings.Contains(a.Text, address) {
			fmt.Fprintf(&out, "%s: %s %s\n", kind, defuseLine(name), address)
		}
	}
	for _, i := range a.Images {
		add("image", i.Name, i.URL)
	}
	for _, f := range a.Files {
		add("file", f.Path, f.URL)
	}
	return out.String()
}
