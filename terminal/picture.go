package terminal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // decoded
	_ "image/jpeg" // decoded
	"image/png"
	"io"

	"github.com/mattn/go-sixel"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // decoded
)

// Pictures is a way in which a terminal is given images.
type Pictures string

// The ways.
const (
	PicturesOff    Pictures = "off"
	PicturesKitty  Pictures = "kitty"  // https://sw.kovidgoyal.net/kitty/graphics-protocol/
	PicturesITerm2 Pictures = "iterm2" // https://iterm2.com/documentation-images.html
	PicturesSixel  Pictures = "sixel"  // DEC's, https://vt100.net/docs/vt3xx-gp/chapter14.html
)

// MaxPicture bounds an image of a sandbox as it comes, in bytes: a large plot has one MiB.
const MaxPicture = 16 << 20

const (
	maxPicturePixels = 24_000_000 // decoded: a photograph's
	maxPictureWidth  = 800        // shown: pixels of about 100 columns
	maxPictureHeight = 600        // shown: pixels of about 30 lines
	kittyChunk       = 4096       // bytes of one sequence, which the protocol bounds
)

// Write writes an image to a terminal. It is decoded and encoded again, so that
// nothing of the bytes that came reaches the terminal's own decoder.
func (p Pictures) Write(w io.Writer, raw []byte) error {
	img, err := decode(raw)
	if err != nil {
		return err
	}
	if p == PicturesSixel {
		var out bytes.Buffer
		if err := sixel.NewEncoder(&out).Encode(img); err != nil {
			return fmt.Errorf("sixel: %w", err)
		}
		_, err = fmt.Fprintf(w, "%s\n", out.Bytes())
		return err
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	switch p {
	case PicturesKitty:
		return writeKitty(w, out.Bytes())
	case PicturesITerm2:
		return writeITerm2(w, out.Bytes())
	}
	return fmt.Errorf("there are no pictures by %q", p)
}

var errTooLarge = errors.New("the image is too large to be shown")

// decode reads an image and makes it fit.
func decode(raw []byte) (image.Image, error) {
	config, _, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("the image cannot be read: %w", err)
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > maxPicturePixels/config.Height {
		return nil, errTooLarge
	}
	img, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("the image cannot be read: %w", err)
	}
	width, height := fit(img.Bounds().Dx(), img.Bounds().Dy())
	small := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.CatmullRom.Scale(small, small.Bounds(), img, img.Bounds(), draw.Src, nil)
	return small, nil
}

// fit makes a size smaller, never larger.
func fit(width, height int) (int, int) {
	if width > maxPictureWidth {
		width, height = maxPictureWidth, height*maxPictureWidth/width
	}
	if height > maxPictureHeight {
		width, height = width*maxPictureHeight/height, maxPictureHeight
	}
	return max(width, 1), max(height, 1)
}

// writeKitty sends a PNG (f=100) to be shown at once (a=T), without an answer (q=2).
func writeKitty(w io.Writer, raw []byte) error {
	data := base64.StdEncoding.EncodeToString(raw)
	control := "a=T,f=100,q=2,"
	for len(data) > 0 {
		chunk := data[:min(len(data), kittyChunk)]
		data = data[len(chunk):]
		more := 0
		if len(data) > 0 {
			more = 1
		}
		if _, err := fmt.Fprintf(w, "\x1b_G%sm=%d;%s\x1b\\", control, more, chunk); err != nil {
			return err
		}
		control = "q=2,"
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func writeITerm2(w io.Writer, raw []byte) error {
	_, err := fmt.Fprintf(w, "\x1b]1337;File=inline=1;size=%d;preserveAspectRatio=1:%s\a\n", len(raw), base64.StdEncoding.EncodeToString(raw))
	return err
}
