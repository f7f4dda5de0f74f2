// Guard: what every request passes before it reaches its route.

package admin

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/kith-io/kith/internal/base/localname"
	"github.com/kith-io/kith/internal/base/refuse"
)

// byName serves requests by a name of this interface.
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
// what mux refuses by itself is said as all errors are. A body is read here, all of it or none: the route is given what
// came.
func checked(c *counters, write time.Duration, mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(write)) // not every writer has one
		status, why := refuse.Query(q)
		if status == 0 {
			var body []byte
			body, status, why = refuse.Body(w, q, maxBody)
			q.Body = io.NopCloser(bytes.NewReader(body))
		}
		if status != 0 {
			c.badRequests.Add(1)
			w.Header().Set("Connection", "close")
			fail(w, status, why)
			return
		}
		if status, why := refuse.Unrouted(mux, w, q); status != 0 {
			c.badRequests.Add(1)
			fail(w, status, why)
			return
		}
		mux.ServeHTTP(w, q)
	})
}
