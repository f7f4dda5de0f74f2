// Package refuse says which requests over HTTP are refused before a route sees them, with status and reason: those with
// a query or body that cannot be read, and those that no route is for.
package refuse

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

// maxCalled bounds what an answer repeats of a request, in bytes.
const maxCalled = 64

// Called is what a request has called something, as an answer repeats it: escaped, and not all of it when it is long.
func Called(name string) string { return fmt.Sprintf("%.*q", maxCalled, name) }

// Query returns status and reason of a request with a query that cannot be read; zero: it can.
func Query(q *http.Request) (status int, why string) {
	if _, err := url.ParseQuery(q.URL.RawQuery); err != nil {
		return http.StatusBadRequest, "the query cannot be read: " + err.Error()
	}
	return 0, ""
}

// Body reads the body of a request, of at most so many bytes, or returns status and reason when it cannot be read.
func Body(w http.ResponseWriter, q *http.Request, most int64) (body []byte, status int, why string) {
	if q.ContentLength == 0 {
		return nil, 0, ""
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, most))
	large := (*http.MaxBytesError)(nil)
	switch {
	case err == nil:
		return body, 0, ""
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, "the body did not come in time"
	}
	return nil, http.StatusBadRequest, "the body cannot be read"
}

// Unrouted returns status and reason of a request that mux has no route for, zero: it has one. What the answer's header
// needs then, as Allow, is set.
func Unrouted(mux *http.ServeMux, w http.ResponseWriter, q *http.Request) (status int, why string) {
	h, pattern := mux.Handler(q)
	if pattern != "" {
		return 0, ""
	}
	v := verdict{header: w.Header()}
	h.ServeHTTP(&v, q)
	if v.status < http.StatusBadRequest {
		return 0, ""
	}
	return v.status, fmt.Sprintf("%s %s: %s", q.Method, Called(q.URL.Path), http.StatusText(v.status))
}

// verdict takes the status of an answer and lets the rest go.
type verdict struct {
	header http.Header
	status int
}

// Header returns the header of the answer that is written in place of this one.
func (v *verdict) Header() http.Header { return v.header }

// WriteHeader takes the status.
func (v *verdict) WriteHeader(status int) { v.status = status }

// Write lets the text go.
func (v *verdict) Write(b []byte) (int, error) { return len(b), nil }
