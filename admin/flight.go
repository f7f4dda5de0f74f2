// The flight record of a node, to whoever has the token: it may hold users' messages.

package admin

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/kith-io/kith"
)

// flightRecord answers with the record as a file.
func (a *views) flightRecord(w http.ResponseWriter, q *http.Request) {
	var b bytes.Buffer // a record is bounded, and whoever fails gets an error instead of half of one
	switch err := a.node.WriteFlightRecord(q.Context(), &b); {
	case errors.Is(err, kith.ErrNoFlightRecord):
		fail(w, http.StatusConflict, err.Error())
		return
	case err != nil:
		failed(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(b.Bytes())
}
