package console

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"notebox/agent"
	"notebox/client"
	"notebox/terminal"
)

// issued takes the links of an answer, which may stand in those after it too.
func (c *Console) issued(a *agent.Answer) {
	for _, i := range a.Images {
		c.links.Add(i.URL)
	}
	for _, f := range a.Files {
		c.links.Add(f.URL)
	}
}

// show writes an answer to a terminal, with what belongs to it.
func (c *Console) show(ctx context.Context, a *agent.Answer) {
	c.write(render(c.o.Theme, a.Text, c.links, c.columns()) + terminal.Plain + "\n")
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
	line := fmt.Sprintf("%s%s %s%s", terminal.Bold, kind, terminal.DefuseLine(name), terminal.Plain)
	if size != "" {
		line += " " + terminal.Dim + size + terminal.Plain
	}
	switch {
	case c.links[address]:
		line += "  " + terminal.Link(address) + terminal.Cyan + address + terminal.Plain + ansi.ResetHyperlink()
	case lost != "":
		line += "  " + terminal.Red + terminal.DefuseLine(lost) + terminal.Plain
	}
	c.write(line + "\n")
}

// fetchTime bounds the wait for one image.
const fetchTime = 20 * time.Second

// picture shows an image where the terminal can.
func (c *Console) picture(ctx context.Context, address string) {
	if c.o.Pictures == terminal.PicturesOff || c.o.Pictures == "" || !c.links[address] {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	raw, err := client.Fetch(ctx, c.o.Client, address, terminal.MaxPicture)
	if err == nil {
		err = c.o.Pictures.Write(c.o.Out, raw)
	}
	if err != nil {
		c.write(terminal.Dim + "(not shown: " + terminal.DefuseLine(err.Error()) + ")" + terminal.Plain + "\n")
	}
}

// plainAnswer is an answer for programs: the Markdown, and the links that it does not
// have.
func plainAnswer(a *agent.Answer) string {
	var out strings.Builder
	out.WriteString(strings.TrimSpace(terminal.Defuse(a.Text)) + "\n")
	add := func(kind, name, address string) {
		if terminal.SafeAddress(address) && !strings.Contains(a.Text, address) {
			fmt.Fprintf(&out, "%s: %s %s\n", kind, terminal.DefuseLine(name), address)
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
