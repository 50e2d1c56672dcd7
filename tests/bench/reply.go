package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// pngSignature begins every PNG (RFC 2083, 3.1).
var pngSignature = []byte("\x89PNG\r\n\x1a\n")

// reply is what is checked of notebox's answer.
type reply struct {
	Status string `json:"status"`
	Text   string `json:"text"`
	Images []struct {
		Bytes int    `json:"bytes"`
		Width int    `json:"width"`
		Data  []byte `json:"data"` // base64 in JSON
	} `json:"images"`
	Files []struct {
		Name   string `json:"name"`
		Bytes  int64  `json:"bytes"`
		SHA256 string `json:"sha256"`
		URL    string `json:"url"`
	} `json:"files"`
}

// checkReply says what is wrong with an answer of notebox's to c's code.
func (c benchCase) checkReply(raw []byte) error {
	var r reply
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("%s: the reply: %w", c.name, err)
	}
	if r.Status != "ok" {
		return fmt.Errorf("%s: status %q: %s", c.name, r.Status, r.Text)
	}
	if err := c.checkText(r.Text); err != nil {
		return err
	}
	if c.image {
		if len(r.Images) != 1 {
			return fmt.Errorf("%s: %d images, not 1", c.name, len(r.Images))
		}
		if i := r.Images[0]; !bytes.HasPrefix(i.Data, pngSignature) || i.Bytes != len(i.Data) || i.Width == 0 {
			return fmt.Errorf("%s: the image is no PNG of %d bytes", c.name, i.Bytes)
		}
	}
	if c.file != nil {
		if len(r.Files) != 1 {
			return fmt.Errorf("%s: %d files, not 1", c.name, len(r.Files))
		}
		if f := r.Files[0]; f.Name != c.file.name || f.Bytes != c.file.bytes || f.SHA256 != c.file.sha256 {
			return fmt.Errorf("%s: the file came back as %s, %d bytes, sha256 %s", c.name, f.Name, f.Bytes, f.SHA256)
		}
	}
	return nil
}

func (c benchCase) checkText(text string) error {
	for _, want := range c.text {
		if !strings.Contains(text, want) {
			return fmt.Errorf("%s: %q is not in the text: %.500s", c.name, want, text)
		}
	}
	return nil
}

// executedNotebook is what is checked of what jupyter nbconvert wrote (nbformat 4).
type executedNotebook struct {
	Cells []struct {
		Outputs []struct {
			Type string                     `json:"output_type"`
			Text multiline                  `json:"text"`
			Data map[string]json.RawMessage `json:"data"`
		} `json:"outputs"`
	} `json:"cells"`
}

// multiline is nbformat's text: one string or a list of them.
type multiline string

func (m *multiline) UnmarshalJSON(raw []byte) error {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		*m = multiline(strings.Join(list, ""))
		return nil
	}
	return json.Unmarshal(raw, (*string)(m))
}

// checkNotebook says what is wrong with the executed notebook of c's code.
func (c benchCase) checkNotebook(raw []byte) error {
	var nb executedNotebook
	if err := json.Unmarshal(raw, &nb); err != nil {
		return fmt.Errorf("%s: the executed notebook: %w", c.name, err)
	}
	text, images := "", 0
	for _, cell := range nb.Cells {
		for _, o := range cell.Outputs {
			if o.Type == "error" {
				return fmt.Errorf("%s: the code failed", c.name)
			}
			text += string(o.Text)
			var png []byte
			if data, ok := o.Data["image/png"]; ok {
				if err := json.Unmarshal(compactBase64(data), &png); err != nil {
					return fmt.Errorf("%s: the image: %w", c.name, err)
				}
				if bytes.HasPrefix(png, pngSignature) {
					images++
				}
			}
		}
	}
	if c.image && images != 1 {
		return fmt.Errorf("%s: %d images, not 1", c.name, images)
	}
	return c.checkText(text)
}

// compactBase64 takes out the line ends that Jupyter puts into base64.
func compactBase64(data []byte) []byte { return bytes.ReplaceAll(data, []byte(`\n`), nil) }
