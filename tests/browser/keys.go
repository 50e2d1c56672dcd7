package browser

import (
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Modifiers of a key.
const (
	Alt   = 1
	Ctrl  = 2
	Shift = 8
)

// named are the keys that have another name than their letter: their codes and their text.
var named = map[string]struct {
	code int64
	text string
}{
	"Enter": {13, "\r"}, "Escape": {27, ""}, "Tab": {9, ""}, "ArrowDown": {40, ""}, "ArrowUp": {38, ""}, " ": {32, " "},
}

// Press presses a key as a keyboard does: what a page makes of it is all that happens.
// chromedp.KeyEvent sends its text by itself, also where the page has used the key already.
func (b *Browser) Press(key string, modifiers ...int64) {
	b.T.Helper()
	down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Code: "Key" + strings.ToUpper(key), Text: key}
	if special, ok := named[key]; ok {
		down.Code, down.Text, down.WindowsVirtualKeyCode = key, special.text, special.code
	} else {
		down.WindowsVirtualKeyCode = int64(strings.ToUpper(key)[0])
	}
	for _, m := range modifiers {
		down.Modifiers |= m
	}
	if down.Text == "" {
		down.Type = input.DispatchKeyEventTypeRawKeyDown
	}
	up := down
	up.Type, up.Text = input.DispatchKeyEventTypeKeyUp, ""
	for _, event := range []input.DispatchKeyEventParams{down, up} {
		_, err := chromedp.Call(b.Ctx, input.DispatchKeyEvent, event)
		require.NoError(b.T, err)
	}
}

// Type writes a text, a line after another.
func (b *Browser) Type(text string) {
	b.T.Helper()
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.Press("Enter")
		}
		_, err := chromedp.Call(b.Ctx, input.InsertText, input.InsertTextParams{Text: line})
		require.NoError(b.T, err)
	}
}

// TabTo presses Tab, or Shift and Tab, until what a selector names has the focus.
func (b *Browser) TabTo(selector string, modifiers ...int64) {
	b.T.Helper()
	const most = 40 // more than any view has
	has := fmt.Sprintf(`document.activeElement?.matches(%q) === true`, selector)
	for range most {
		if Eval[bool](b, has) {
			return
		}
		b.Press("Tab", modifiers...)
	}
	require.Fail(b.T, "no Tab leads there", "%s; the focus is on %s", selector, Eval[string](b, `document.activeElement.outerHTML.slice(0, 200)`))
}

// Drop drags files over the middle of the page, waits for a condition, and drops them.
func (b *Browser) Drop(while string, paths ...string) {
	b.T.Helper()
	for _, step := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		if step == input.DispatchDragEventTypeDrop {
			b.Until(while)
		}
		_, err := chromedp.Call(b.Ctx, input.DispatchDragEvent, input.DispatchDragEventParams{
			Type: step, X: 300, Y: 300, Data: &input.DragData{Items: []*input.DragDataItem{}, Files: paths, DragOperationsMask: 1},
		})
		require.NoError(b.T, err)
	}
}
