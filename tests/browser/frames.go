package browser

import (
	"encoding/json"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// A frame of another origin has a process of its own, of which the protocol tells nothing by
// itself. watchFrames has each such frame, and each that is in one, wait until its requests are
// noted. Messages to a frame and from it are in messages to the frame that it is in.
func (b *Browser) watchFrames() {
	b.T.Helper()
	said := make(chan *target.EventReceivedMessageFromTarget, 10_000) // far more than a test has
	attached := make(chan target.SessionID, 1000)
	require.NoError(b.T, chromedp.Listen(b.Ctx, func(event any) {
		switch e := event.(type) {
		case *target.EventAttachedToTarget:
			attached <- e.SessionID
		case *target.EventReceivedMessageFromTarget:
			said <- e
		}
	}))
	flatten := false
	_, err := chromedp.Call(b.Ctx, target.SetAutoAttach, target.SetAutoAttachParams{AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &flatten})
	require.NoError(b.T, err)
	go func() {
		for {
			select {
			case id := <-attached:
				b.enterFrame(id)
			case e := <-said:
				b.noteFrame(e.Message, e.SessionID)
			case <-b.Ctx.Done():
				return
			}
		}
	}()
}

// enterFrame has a frame tell of its requests, and then go on. The last of within is the frame,
// the others are those that it is in.
func (b *Browser) enterFrame(within ...target.SessionID) {
	for i, call := range []string{
		`"Network.enable"`, `"Target.setAutoAttach", "params": {"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": false}`, `"Runtime.runIfWaitingForDebugger"`,
	} {
		message := `{"id": ` + string(rune('1'+i)) + `, "method": ` + call + `}`
		for j := len(within) - 1; j > 0; j-- {
			params, _ := json.Marshal(map[string]any{"sessionId": within[j], "message": message})
			message = `{"id": 9, "method": "Target.sendMessageToTarget", "params": ` + string(params) + `}`
		}
		// A frame may be gone by now.
		_ = chromedp.FromContext(b.Ctx).Target.Call(b.Ctx, "Target.sendMessageToTarget", map[string]any{"sessionId": within[0], "message": message}, nil)
	}
}

// noteFrame notes what a frame said.
func (b *Browser) noteFrame(message string, within ...target.SessionID) {
	var event struct {
		Method string
		Params json.RawMessage
	}
	if json.Unmarshal([]byte(message), &event) != nil {
		return
	}
	switch event.Method {
	case "Network.requestWillBeSent":
		var e network.EventRequestWillBeSent
		if json.Unmarshal(event.Params, &e) == nil {
			b.note(&e)
		}
	case "Target.attachedToTarget":
		var e target.EventAttachedToTarget
		if json.Unmarshal(event.Params, &e) == nil {
			b.enterFrame(append(within, e.SessionID)...)
		}
	case "Target.receivedMessageFromTarget":
		var e target.EventReceivedMessageFromTarget
		if json.Unmarshal(event.Params, &e) == nil {
			b.noteFrame(e.Message, append(within, e.SessionID)...)
		}
	}
}
