// Guard: what every request passes before it reaches its route.

package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/kith-io/kith/internal/localname"
)

// byName serves those who ask by a name of this interface.
func byName(names localname.Names, cfg Config, c *counters, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if names.Has(q.Host) {
			next.ServeHTTP(w, q)
			return
		}
		c.hostsRefused.Add(1)
		c.tell(cfg.Logger, "a request by another name was refused", q)
		fail(w, http.StatusMisdirectedRequest, "this interface does not answer as "+called(q.Host)+
			": ask by an IP address, as localhost, or by a name of its configuration (Hosts, --admin-hosts)")
	})
}

// checked serves what mux does, to readers that take an answer within a time. What cannot be read is refused before;
// what mux refuses by itself is said as all errors are.
func checked(c *counters, write time.Duration, mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(write)) // not every writer has one
		if status, why := unreadable(w, q); status != 0 {
			c.badRequests.Add(1)
			w.Header().Set("Connection", "close")
			fail(w, status, why)
			return
		}
		if h, pattern := mux.Handler(q); pattern == "" {
			v := verdict{header: w.Header()}
			h.ServeHTTP(&v, q)
			if v.status >= http.StatusBadRequest {
				c.badRequests.Add(1)
				fail(w, v.status, fmt.Sprintf("%s %s: %s", q.Method, called(q.URL.Path), http.StatusText(v.status)))
				return
			}
		}
		mux.ServeHTTP(w, q)
	})
}

// unreadable returns status and reason of a request whose query or body cannot be read; zero: it can. No route wants a
// body, so what there is of one is read here and let go.
func unreadable(w http.ResponseWriter, q *http.Request) (status int, why string) {
	if _, err := url.ParseQuery(q.URL.RawQuery); err != nil {
		return http.StatusBadRequest, "the query cannot be read: " + err.Error()
	}
	if q.ContentLength == 0 {
		return 0, ""
	}
	large := (*http.MaxBytesError)(nil)
	_, err := io.Copy(io.Discard, http.MaxBytesReader(w, q.Body, maxBody))
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, "the body did not come in time"
	}
	return http.StatusBadRequest, "the body cannot be read"
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
