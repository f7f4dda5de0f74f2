// Answers: how they and errors are written.

package admin

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/refuse"
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
		errors.Is(err, kith.ErrDrainCancelled), errors.Is(err, kith.ErrLeaving):
		status = http.StatusConflict
	}
	fail(w, status, err.Error())
}

// done is the answer to what was taken.
type done struct {
	Message string `json:"message"`
}
