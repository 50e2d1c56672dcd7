package server

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/tests/browser"
)

// TestManyOutputs: some hundred are shown, and more if a person wants; why the run failed is
// shown at once, here and in a record.
func TestManyOutputs(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var outputs []string
	for i := range 700 {
		outputs = append(outputs, display(map[string]any{"text/plain": fmt.Sprintf("output %d", i)}))
	}
	sharing(s, append(outputs, raised("ValueError", "the end"))...)
	check := func(b *browser.Browser) {
		t.Helper()
		const shown, more = `document.querySelectorAll(".outputs .stream").length`, `document.querySelector(".outputs .gap:not(.stream *)")`
		b.Until(`document.querySelector(".outputs > .error") !== null`)
		require.Contains(t, browser.Eval[string](b, `document.querySelector(".outputs > .error").innerText`), "the end")
		require.Contains(t, browser.Eval[string](b, `document.querySelector("main").innerText`), "b.csv")
		require.Equal(t, 300, browser.Eval[int](b, shown))
		require.Equal(t, "… 400 more outputs Show more", browser.Eval[string](b, more+`.textContent`))
		b.RequireAccessible()
		b.Shoot("many-outputs")
		b.Do(chromedp.Click(chromedp.CSS(".outputs .gap button")))
		b.Until(shown + ` === 600 && document.activeElement.textContent === "output 300"`)
		require.Equal(t, "… 100 more outputs Show more", browser.Eval[string](b, more+`.textContent`))
		b.Do(chromedp.Click(chromedp.CSS(".outputs .gap button")))
		b.Until(shown + ` === 700`)
		require.True(t, browser.Eval[bool](b, more+` === null`))
		require.Equal(t, 1, browser.Eval[int](b, `document.querySelectorAll(".outputs > .error").length`))
	}
	b := openPage(t, s, 0, 0)
	press(b, "run")
	b.Until(`document.querySelector("#stop").hidden && document.querySelector(".outputs > .error") !== null`)
	check(b)
	b.RequireQuiet(s.url)
	visitor := browser.New(t, 0, 0)
	visitor.Do(chromedp.Navigate(s.shared("", s.ran("", `{"code":"x"}`)).URL))
	check(visitor)
}

// TestManyOutputsWithoutAReply: those that are not shown are there all the same, in their order.
func TestManyOutputsWithoutAReply(t *testing.T) {
	t.Parallel()
	s := newService(t)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	s.run = func(_ context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		for i := range 301 {
			events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(display(map[string]any{"text/plain": fmt.Sprintf("output %d", i)}))})
		}
		for _, text := range []string{"a", "b\n"} {
			events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(stdout(text))})
		}
		<-over
		return executed(spec, runner.StatusOK), nil
	}
	b := openPage(t, s, 0, 0)
	press(b, "run")
	b.Until(`document.querySelector(".outputs .gap:not(.stream *)")?.textContent.startsWith("… 2 more outputs")`)
	press(b, "stop")
	untilStatus(b, "Stopping")
	press(b, "stop")
	untilStatus(b, "Stopped.")
	b.Do(chromedp.Click(chromedp.CSS(".outputs .gap:not(.stream *) button")))
	b.Until(`document.querySelectorAll(".outputs .stream").length === 302 && document.querySelector(".outputs").textContent.includes("ab\n")`) // text comes a frame later
	require.Equal(t, []string{"output 299", "output 300", "ab\n"}, browser.Eval[[]string](b, `[...document.querySelectorAll(".outputs .stream")].slice(-3).map((e) => e.textContent)`))
}

// TestOutputLetsItsReaderRead: a stream shows its end as it grows, until somebody scrolls up.
func TestOutputLetsItsReaderRead(t *testing.T) {
	t.Parallel()
	s := newService(t)
	more := make(chan int)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		for from := range more {
			for i := range 100 {
				events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(stdout(fmt.Sprintf("line %d\n", from+i)))})
			}
		}
		return executed(spec, runner.StatusOK, stdout("line 0\n")), nil
	}
	b := openPage(t, s, 0, 0)
	press(b, "run")
	const stream = `document.querySelector(".outputs .stream")`
	atEnd := fmt.Sprintf(`%[1]s.scrollTop + %[1]s.clientHeight >= %[1]s.scrollHeight - 2`, stream)
	more <- 0
	b.Until(stream + `?.textContent.includes("line 99\n")`)
	more <- 100
	b.Until(stream + `.textContent.includes("line 199\n") && ` + atEnd)
	browser.Eval[bool](b, stream+`.scrollTop = 77, true`)
	more <- 200
	b.Until(stream + `.textContent.includes("line 299\n")`)
	require.Equal(t, 77, browser.Eval[int](b, stream+`.scrollTop`))
	browser.Eval[bool](b, stream+`.scrollTop = 1e6, true`)
	more <- 300
	b.Until(stream + `.textContent.includes("line 399\n") && ` + atEnd)
	close(more)
	untilStatus(b, "Done")
}

// TestAFrameSaysWhatItLacks: where what draws a plot cannot be loaded.
func TestAFrameSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusOK, display(map[string]any{"application/vnd.plotly.v1+json": map[string]any{"data": []any{}}})), nil
	}
	b := openPage(t, s, 0, 0)
	browser.Eval[bool](b, `(() => { const real = window.fetch; window.fetch = (what, ...rest) => String(what).includes("plotly.js") ? Promise.reject(new Error("away ".repeat(500))) : real(what, ...rest); return true; })()`)
	press(b, "run")
	untilStatus(b, "Done")
	b.Until(`document.querySelector("iframe")?.clientHeight > 60`) // higher than before it says so

	// What a frame does with it, where it can be looked into.
	b.Do(chromedp.Navigate(s.url + "/page/frame"))
	browser.Eval[bool](b, `postMessage({ problem: "plotly.js is not there <img>" }, "*"), true`)
	b.Until(`document.body?.innerText.includes("This cannot be shown: plotly.js is not there <img>.")`)
}
