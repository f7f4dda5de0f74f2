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
	"github.com/kith-io/kith/internal/refuse"
)

// say writes an answer as JSON.
func say(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // no value of ours
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
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

// called is what a request has called something, as an answer repeats it.
func called(name string) string { return refuse.Called(name) }

// failed answers with an error of the node.
func failed(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, kith.ErrUnknownMember):
		status = http.StatusNotFound
	case errors.Is(err, kith.ErrBadConfig):
		status = http.StatusBadRequest
	case errors.Is(err, kith.ErrNotMember), errors.Is(err, kith.ErrNobodyUp), errors.Is(err, kith.ErrNobodyTakes),
		errors.Is(err, kith.ErrUndrained), errors.Is(err, kith.ErrLeaving):
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
type places struct {
	counts *counters
	write  time.Duration // for one event to a slow reader
}

// placesFor are as many as a configuration has.
func placesFor(most int, write time.Duration, c *counters) places {
	c.streams = make(chan struct{}, most)
	return places{c, write}
}

// take reports whether there is a place; else the request has been answered, and its connection goes.
func (p places) take(w http.ResponseWriter) bool {
	select {
	case p.counts.streams <- struct{}{}:
		return true
	default:
		p.counts.streamsRefused.Add(1)
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Connection", "close")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open, which is the bound",
			cap(p.counts.streams)))
		return false
	}
}

func (p places) free() { <-p.counts.streams }

// begin writes the head of a stream.
func begin(w http.ResponseWriter) *http.ResponseController {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // those of a request are over long before a stream is
	_ = out.SetWriteDeadline(time.Time{})
	return out
}

// put writes one event, and reports whether the reader has taken it in time. Between two events there is no deadline:
// one that passes then would end a stream of HTTP/2.
func (p places) put(out *http.ResponseController, w http.ResponseWriter, text []byte) bool {
	_ = out.SetWriteDeadline(time.Now().Add(p.write))
	_, err := w.Write(text)
	if err == nil {
		err = out.Flush()
	}
	_ = out.SetWriteDeadline(time.Time{})
	return err == nil
}

// api is the handlers of one node.
type api struct {
	node    *kith.Node
	streams places
	goOver  func(ctx context.Context, seeds []string) error // Config.Join
}
