package discord

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/bwmarrin/discordgo"

	"notebox/agent/tool"
	"notebox/client"
)

// message is one that is sent.
type message struct {
	text  string
	files []attached
}

// attached is a file of a message.
type attached struct {
	name, mediaType string
	content         []byte
	url             string // of the same file; "": there is none
}

func (a attached) file() *discordgo.File {
	return &discordgo.File{Name: a.name, ContentType: a.mediaType, Reader: bytes.NewReader(a.content)}
}

// body is what an answer says.
type body struct {
	// text is Discord's Markdown, given the links that may lead somewhere and those that
	// are attached.
	text func(l *links, attached map[string]bool) string
	// most bounds its messages; if they are more, all of it is attached as whole.
	most  int
	whole attached
}

// compose makes the messages of an answer.
func (b *Bot) compose(ctx context.Context, r *room, text string, images []tool.Image, files []tool.File) []message {
	whole := attached{name: "answer.md", mediaType: "text/markdown", content: []byte(text)}
	say := func(l *links, attached map[string]bool) string { return render(text, l, attached) }
	return b.composeBody(ctx, r, body{say, b.limits.Messages, whole}, images, files)
}

func (b *Bot) composeBody(ctx context.Context, r *room, said body, images []tool.Image, files []tool.File) []message {
	got, notes := b.gather(ctx, r, images, files)
	is := map[string]bool{}
	for _, a := range got {
		is[a.url] = true
	}
	text := said.text(&r.links, is)
	for _, n := range notes {
		if n.url == "" || !strings.Contains(text, n.url) {
			text += "\n" + n.text
		}
	}
	parts := Split(strings.TrimSpace(text), maxContent)
	if len(parts) > said.most {
		parts = append(parts[:said.most-1], "… This is not all: the whole is attached as "+quoted(said.whole.name)+".")
		got = append([]attached{said.whole}, got...)
	}
	groups := b.groups(got)
	var out []message
	for _, p := range parts {
		out = append(out, message{text: p})
	}
	switch {
	case len(groups) == 0:
	case len(out) == 0:
		out = append(out, message{files: groups[0]})
	default:
		out[len(out)-1].files = groups[0]
	}
	for i := 1; i < len(groups); i++ {
		out = append(out, message{files: groups[i]})
	}
	return out
}

// groups are the files of one message each: the limit is understood as one of all files
// of a message, which is the stricter way to read it.
func (b *Bot) groups(files []attached) (out [][]attached) {
	var sum int64
	for _, f := range files {
		n := int64(len(f.content))
		if last := len(out) - 1; last < 0 || len(out[last]) == maxAttached || sum+n > b.config.UploadLimit {
			out, sum = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], f)
		sum += n
	}
	return out
}

// note is a line about what could not be attached.
type note struct{ text, url string }

// gather fetches what a run left. Names are of an untrusted program.
func (b *Bot) gather(ctx context.Context, r *room, images []tool.Image, files []tool.File) (got []attached, notes []note) {
	var sum int64
	take := func(name, mediaType, url, failed string, known int64) {
		name = fileName(name)
		if failed != "" || url == "" {
			notes = append(notes, note{text: fmt.Sprintf("%s was not kept: %s", quoted(name), quoted(failed))})
			return
		}
		r.links.issue(url)
		most := min(b.config.UploadLimit, b.config.UploadLimit*uploads-sum)
		link := note{fmt.Sprintf("[%s](<%s>)", plainName(name), url), url}
		if len(got) == maxFiles || known > most {
			if known > 0 {
				link.text += " (" + size(known) + ")"
			}
			notes = append(notes, link)
			return
		}
		content, err := client.Fetch(ctx, b.config.Files, url, most)
		if err != nil {
			b.log.Warn("discord: a file is sent as a link", "name", name, "error", err)
			notes = append(notes, link)
			return
		}
		sum += int64(len(content))
		got = append(got, attached{name, mediaType, content, url})
	}
	for _, i := range images {
		take(i.Name, i.MediaType, i.URL, i.Error, 0)
	}
	for _, f := range files {
		take(path.Base(f.Path), "", f.URL, f.Error, f.Bytes)
	}
	return got, notes
}

// plainName is a name as a link's text, which nothing in it ends.
func plainName(name string) string {
	return inert(strings.NewReplacer("[", "(", "]", ")", "`", "'", `\`, "_").Replace(name))
}
