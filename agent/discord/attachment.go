package discord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"
	"github.com/docker/go-units"

	"notebox/agent"
	"notebox/client"
)

// hosts are where attachments may come from.
func hosts(of []string) (out []*url.URL, err error) {
	if len(of) == 0 {
		of = []string{"https://cdn.discordapp.com", "https://media.discordapp.net"}
	}
	for _, text := range of {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("discord: %q is no address of attachments", text)
		}
		out = append(out, u)
	}
	return out, nil
}

// errHost is an attachment that is none of Discord's.
var errHost = errors.New("the attachment is not on a host of Discord")

// isDiscords reports whether an address is one of the hosts', and not one that only
// looks so.
func (b *Bot) isDiscords(u *url.URL) bool {
	return u.User == nil && u.Opaque == "" && slices.ContainsFunc(b.cdn, func(host *url.URL) bool {
		return u.Scheme == host.Scheme && u.Host == host.Host
	})
}

// attachments fetches what a message brings. A refusal is for its author.
func (b *Bot) attachments(ctx context.Context, all []*discordgo.MessageAttachment) (files []agent.File, refusal string, err error) {
	if len(all) > b.limits.Attachments {
		return nil, fmt.Sprintf("I take %d files at a time; these are %d.", b.limits.Attachments, len(all)), nil
	}
	taken := map[string]bool{}
	for _, a := range all {
		name := distinct(fileName(a.Filename), taken)
		if int64(a.Size) > b.limits.Attachment {
			return nil, fmt.Sprintf("%s is too large: I take files of at most %s.", quoted(name), size(b.limits.Attachment)), nil
		}
		content, err := b.fetchAttachment(ctx, a)
		switch {
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		case err != nil:
			b.log.Warn("discord: an attachment", "attachment", a.ID, "error", err)
			return nil, fmt.Sprintf("I could not get %s from Discord. Please attach it again.", quoted(name)), nil
		}
		files = append(files, agent.File{Name: name, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)), nil
		}})
	}
	return files, "", nil
}

func (b *Bot) fetchAttachment(ctx context.Context, a *discordgo.MessageAttachment) ([]byte, error) {
	u, err := url.Parse(a.URL)
	if err != nil {
		return nil, err
	}
	if !b.isDiscords(u) {
		return nil, errHost
	}
	return client.Fetch(ctx, b.fetcher, u.String(), b.limits.Attachment)
}

// fileName is a name without folders and without what a shell or a header would mind.
func fileName(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xFFFD || strings.ContainsRune("\"'`<>|:*?/", r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeft(name, ".")
	if end := path.Ext(name); len(name) > maxFileName {
		end = strings.ToValidUTF8(end[:min(len(end), 16)], "")
		name = strings.ToValidUTF8(name[:maxFileName-len(end)], "") + end
	}
	if strings.TrimSpace(name) == "" || name == "_" {
		return "file"
	}
	return name
}

// distinct is a name that was not taken, which it is then.
func distinct(name string, taken map[string]bool) string {
	out := name
	for i := 2; taken[out]; i++ {
		end := path.Ext(name)
		out = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, end), i, end)
	}
	taken[out] = true
	return out
}

// size is a number of bytes for people.
func size(bytes int64) string {
	return units.CustomSize("%.4g %s", float64(bytes), 1024, []string{"bytes", "KiB", "MiB", "GiB"})
}
