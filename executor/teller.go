package executor

import (
	"context"
	"sync"
	"sync/atomic"

	"notebox/notebook"
	"notebox/runner"
	"notebox/storage"
)

// tellAhead is how many events may wait for images before them to be stored:
// what a busy run puts out in 20 s, as its kernel sends 50 pieces of text a
// second, and a store has 5 s. What waits is bounded in bytes by the run's limit
// of output.
const tellAhead = 1000

// teller tells a listener of a run, in order: each event when the images in it
// are stored, so that it names their URLs. The run does not wait for the store.
//
// An image that is cleared or replaced later stays in the store, as all does:
// whoever was told of it may still show it.
type teller struct {
	ctx     context.Context // of the run
	slow    atomic.Bool     // the store has not taken an image in time: no more until the end
	decoder *notebook.Decoder
	keeper  *keeper
	to      Listener
	ids     map[string]bool // of the displays so far
	storing chan struct{}   // a place for each image that is stored at one time
	queue   chan func()     // calls of the listener; each waits for its images
	ended   chan struct{}
	close   sync.Once
	urls    map[string]string // by name, of what was stored; to be read after ended
}

func newTeller(ctx context.Context, d *notebook.Decoder, k *keeper, to Listener) *teller {
	t := &teller{
		ctx: ctx, decoder: d, keeper: k, to: to,
		ids:     map[string]bool{},
		storing: make(chan struct{}, storeAtOnce),
		queue:   make(chan func(), tellAhead),
		ended:   make(chan struct{}),
		urls:    map[string]string{},
	}
	go func() {
		defer close(t.ended)
		for tell := range t.queue {
			tell()
		}
	}()
	return t
}

// end returns when everything was told.
func (t *teller) end() {
	t.close.Do(func() { close(t.queue) })
	<-t.ended
}

// file takes a file that is stored.
func (t *teller) file(entry File) {
	t.tell(func() { t.to.File(entry) })
}

// tell has a call of the listener made in its turn. A run that was ended waits for
// nobody.
func (t *teller) tell(call func()) {
	select {
	case t.queue <- call:
		return
	default:
	}
	select {
	case t.queue <- call:
	case <-t.ctx.Done():
	}
}

// event takes one event of the run, which is hostile.
func (t *teller) event(e runner.Event) {
	switch e.Kind {
	case runner.EventClear:
		t.decoder.Clear(e.Cell)
		t.tell(func() { t.to.Clear(e.Cell) })
	case runner.EventUpdate:
		if out, ok := t.decoder.Update(e.Cell, e.Output); ok {
			t.output(out, true)
		}
	default:
		if out, ok := t.decoder.Output(e.Cell, e.Output); ok {
			t.output(out, false)
		}
	}
}

func (t *teller) output(out notebook.Output, update bool) {
	again := t.ids[out.DisplayID]
	if out.DisplayID != "" {
		t.ids[out.DisplayID] = true
	}
	blobs := blobsOf(out)
	links := make([]string, len(blobs))
	var stored sync.WaitGroup
	for i, b := range blobs {
		stored.Go(func() {
			t.storing <- struct{}{}
			defer func() { <-t.storing }()
			if t.slow.Load() || t.ctx.Err() != nil {
				return // the end of the run stores it
			}
			links[i], _ = t.keeper.keep(context.WithoutCancel(t.ctx), storeLiveTime, storage.KindImage, b.Name, b.Bytes)
			t.slow.CompareAndSwap(false, links[i] == "")
		})
	}
	t.tell(func() {
		stored.Wait()
		for i, b := range blobs {
			t.urls[b.Name] = links[i]
		}
		// Executing a notebook, nbclient takes what is displayed under an id that
		// is there for an update, too.
		if update || again {
			t.to.Output(outputOf(out, t.urls, true))
		}
		if !update {
			t.to.Output(outputOf(out, t.urls, false))
		}
	})
}
