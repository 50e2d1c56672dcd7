package protocols

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// streamed is the data of an output event.
type streamed struct {
	service.Output
	ReplacedLines int    `json:"replaced_lines"`
	DisplayID     string `json:"display_id"`
	Update        bool   `json:"update"`
}

// TestPrintsArriveAsTheyHappen is not parallel to others, as it takes the time. What
// else the machine does may hold one print up, but not one of each three times.
func TestPrintsArriveAsTheyHappen(t *testing.T) {
	latest := time.Hour
	for range 3 {
		if latest = min(latest, latestPrint(t)); latest < 100*time.Millisecond {
			return
		}
	}
	require.Fail(t, "prints arrive late", "%v", latest)
}

// latestPrint has five prints streamed, a second apart, and returns how long the one
// that took longest was under way.
func latestPrint(t *testing.T) (latest time.Duration) {
	e := shared.Stream(context.Background(), t, map[string]any{"code": "import time\nfor i in range(5):\n    print(i, time.time())\n    time.sleep(1)"})
	text, seen := "", 0
	for {
		next, ok := e.Next()
		require.True(t, ok)
		if next.Name == "done" {
			break
		}
		if next.Name != "output" {
			continue
		}
		var out streamed
		service.Decode(t, []byte(next.Data), &out)
		if text += out.Text; !strings.HasSuffix(text, "\n") {
			continue
		}
		lines := strings.Split(text, "\n")
		number, printed, _ := strings.Cut(lines[len(lines)-2], " ")
		require.Equal(t, strconv.Itoa(seen), number)
		seconds, err := strconv.ParseFloat(printed, 64)
		require.NoError(t, err)
		took := next.At.Sub(time.Unix(0, int64(seconds*1e9)))
		t.Logf("print %d arrived after %v", seen, took)
		latest = max(latest, took)
		seen++
	}
	require.Equal(t, 5, seen)
	return latest
}

// shown is what a client that follows the events has on its screen.
type shown struct {
	outputs []streamed
}

// take does what the README's table says.
func (s *shown) take(out streamed) {
	if out.Update {
		for i := range s.outputs {
			if s.outputs[i].DisplayID == out.DisplayID {
				s.outputs[i].Data = out.Data
			}
		}
		return
	}
	if last := len(s.outputs) - 1; out.Type == "stream" && last >= 0 && s.outputs[last].Type == "stream" &&
		s.outputs[last].Cell == out.Cell && s.outputs[last].Name == out.Name {
		lines := strings.SplitAfter(s.outputs[last].Text, "\n")
		s.outputs[last].Text = strings.Join(lines[:len(lines)-out.ReplacedLines], "") + out.Text
		return
	}
	s.outputs = append(s.outputs, out)
}

func (s *shown) clear(cell int) {
	var left []streamed
	for _, out := range s.outputs {
		if out.Cell != cell {
			left = append(left, out)
		}
	}
	s.outputs = left
}

// TestWhoFollowsEventsEndsAtTheReply with clears, updates, progress bars and images.
func TestWhoFollowsEventsEndsAtTheReply(t *testing.T) {
	t.Parallel()
	e := shared.Stream(context.Background(), t, map[string]any{"stop_on_error": false, "timeout": 60, "cells": []string{
		"import time\nfrom IPython.display import clear_output, display",
		"import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nplt.plot([2, 1])\nplt.show()",
		"print('gone', flush=True)\ntime.sleep(.2)\nclear_output()\nprint('stays')",
		"print('gone too', flush=True)\ntime.sleep(.2)\nclear_output(wait=True)\ntime.sleep(.2)\nprint('stays too')",
		"print('cleared by nothing')\nclear_output(wait=True)",
		"bar = display('1%', display_id=True)\nprint('beside it')\ntime.sleep(.1)\nbar.update('2%')\nbar.display('2%')\ntime.sleep(.1)",
		"bar.update('100%')",
		"for i in range(4):\n    print(f'\\r{i}/3 ', end='', flush=True)\n    time.sleep(.1)\nprint()",
		"import sys\nfrom tqdm import tqdm\nfor i in tqdm(range(4)): time.sleep(.2)\nprint('out')\nprint('err', file=sys.stderr)",
		"open('a.txt', 'w').write('x')\n1 / 0",
	}})
	var screen shown
	var files []service.File
	images := map[string][]byte{} // by URL, as served when they were told of
	count := map[string]int{}
	for {
		next, ok := e.Next()
		require.True(t, ok, "%v", count)
		count[next.Name]++
		switch next.Name {
		case "output":
			var out streamed
			service.Decode(t, []byte(next.Data), &out)
			if out.Update {
				count["update"]++
				require.NotEmpty(t, out.DisplayID)
			}
			if out.ReplacedLines > 0 {
				count["replaced"]++
			}
			if raw, ok := out.Data["image/png"]; ok {
				var link struct{ Name, URL string }
				service.Decode(t, raw, &link)
				status, served := service.Get(t, link.URL)
				require.Equal(t, http.StatusOK, status)
				images[link.URL] = served
			}
			screen.take(out)
		case "clear":
			var clear struct{ Cell int }
			service.Decode(t, []byte(next.Data), &clear)
			screen.clear(clear.Cell)
		case "file":
			var f service.File
			service.Decode(t, []byte(next.Data), &f)
			files = append(files, f)
		}
		if next.Name != "done" {
			continue
		}
		var r service.Reply
		service.Decode(t, []byte(next.Data), &r)
		require.Equal(t, "error", r.Status)
		require.Equal(t, "ZeroDivisionError", r.Error.Name)
		var followed []service.Output
		for _, out := range screen.outputs {
			followed = append(followed, out.Output)
		}
		require.Equal(t, r.Outputs, followed)
		require.Equal(t, r.Files, files)
		require.Len(t, r.Images, 2)
		for _, image := range r.Images {
			require.Equal(t, image.Data, images[image.URL], "the URL that was told")
		}
		require.NotContains(t, r.Text, "gone")
		require.Contains(t, r.Text, "stays\nstays too\ncleared by nothing\n")
		require.Contains(t, r.Text, "100%")
		require.Contains(t, r.Text, "3/3")
		require.NotContains(t, r.Text, "2/3")
		break
	}
	_, more := e.Next()
	require.False(t, more, "done is the last event")
	require.Equal(t, 1, count["started"])
	require.GreaterOrEqual(t, count["update"], 2)
	require.GreaterOrEqual(t, count["clear"], 2)
	require.GreaterOrEqual(t, count["replaced"], 3)
}

func TestSilentRunIsKeptAlive(t *testing.T) {
	t.Parallel()
	e := shared.Stream(context.Background(), t, map[string]any{"code": "import time\ntime.sleep(11)"})
	var names []string
	for next, ok := e.Next(); ok; next, ok = e.Next() {
		names = append(names, next.Name)
	}
	require.Equal(t, "started", names[0])
	require.Contains(t, names, "", "a comment")
	require.Equal(t, "done", names[len(names)-1])
}

func TestStreamThatIsLeftIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(context.Background())
	e := shared.Stream(ctx, t, map[string]any{"code": "import time\nprint('begun', flush=True)\ntime.sleep(25)"})
	var started struct{ ID string }
	next, _ := e.Next()
	service.Decode(t, []byte(next.Data), &started)
	next, _ = e.Next()
	require.Equal(t, "output", next.Name)
	leave()
	ended := regexp.MustCompile(fmt.Sprintf(`msg=run run=%s .*status=cancelled`, started.ID))
	require.Eventually(t, func() bool {
		return ended.MatchString(shared.Logged())
	}, 5*time.Second, 50*time.Millisecond)
}
