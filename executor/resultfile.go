package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"notebox/storage"
)

// resultFile is result.json, which stands beside what a run left, for people who look
// into the store, and for shares: the reply, and when, in what language and whose the run
// was. Images are in their folder, so their bytes are left out. Its links end as those of the
// reply do.
type resultFile struct {
	Started  time.Time `json:"started"`
	Language string    `json:"language"`
	Owner    string    `json:"owner"` // "" without keys
	*Result
}

// keepResult stores an execution's result.json, after its client has the reply: nobody
// waits for it, except for the end of the service.
func (x *Executor) keepResult(e *execution) {
	if e.answer == nil || e.ending.problem != nil {
		return
	}
	told := *e.answer
	told.Images = append([]Image{}, told.Images...)
	for i := range told.Images {
		told.Images[i].Data = nil
	}
	raw, err := EncodeJSON(resultFile{e.plan.started.UTC(), e.plan.environment.Language, e.owner, &told})
	if err != nil {
		x.log.Error("result.json is not made", "run", e.id, "error", err)
		return
	}
	k := told.keeper
	if k.impatient() {
		return // the store was given up for this run, which the log says
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), storeTime) // of the same trace
	defer cancel()
	key := storage.RunKey(k.started, k.run, storage.KindResult, "")
	if _, err := k.store.Put(ctx, key, bytes.NewReader(raw), string(storage.KindResult)); err != nil {
		x.log.ErrorContext(ctx, "not stored", "run", k.run, "kind", string(storage.KindResult), "error", err)
	}
}

// EncodeJSON writes JSON as answers have it, and a line end.
func EncodeJSON(v any) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // nosniff and the media type hold; "<" is easier to read
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return body.Bytes(), nil
}
