// What all handlers have, and how answers, errors and streams are written.

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/kith-io/kith"
)

// say writes an answer as JSON.
func say(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // no value of ours
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // not every writer has one
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// problem is the answer to a request that failed.
type problem struct {
	Error string `json:"error"`
}

func fail(w http.ResponseWriter, status int, why string) { say(w, status, problem{why}) }

// failed answers with an error of the node.
func failed(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, kith.ErrUnknownMember):
		status = http.StatusNotFound
	case errors.Is(err, kith.ErrNotMember), errors.Is(err, kith.ErrNobodyUp):
		status = http.StatusConflict
	}
	fail(w, status, err.Error())
}

// done is the answer to what was taken.
type done struct {
	Message string `json:"message"`
}

// hex writes the id of a cluster as logs do.
func hex(id uint64) string { return fmt.Sprintf("%016x", id) }

// places are those of the streams that may be open at one time.
type places chan struct{}

// take reports whether there is a place; else the request has been answered.
func (p places) take(w http.ResponseWriter) bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open, which is the bound", cap(p)))
		return false
	}
}

func (p places) free() { <-p }

// begin writes the head of a stream.
func begin(w http.ResponseWriter) *http.ResponseController {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // that of a request is over long before a stream is
	return out
}

// put writes one event, and reports whether the reader has taken it within writeTime.
func put(out *http.ResponseController, w http.ResponseWriter, text []byte) bool {
	_ = out.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := w.Write(text)
	return err == nil && out.Flush() == nil
}

// api is the handlers of one node.
type api struct {
	node    *kith.Node
	streams places
	goOver  func(ctx context.Context, seeds []string) error // Config.Join
}
