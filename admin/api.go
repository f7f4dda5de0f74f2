// What all handlers have, and how answers and errors are written.

package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/kith-io/kith"
)

// api is the handlers of one node.
type api struct {
	node    *kith.Node
	streams chan struct{} // as many as may be open
}

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
