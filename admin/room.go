// Room: what a route costs the node, and which share of it its readers get. Nothing that a reader can cause goes to the
// control goroutine but from here.

package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
)

// keeper lets in requests with the token.
type keeper struct {
	token  atomic.Pointer[string] // nil: there is none
	log    *slog.Logger
	counts *counters
}

// want makes the keeper ask for this token from now on; none: nobody has it.
func (d *keeper) want(token string) {
	if token == "" {
		d.token.Store(nil)
		return
	}
	d.token.Store(&token)
}

// open reports whether there is no token.
func (d *keeper) open() bool { return d.token.Load() == nil }

// admits reports whether a request has the token; else it has been answered.
func (d *keeper) admits(w http.ResponseWriter, q *http.Request) bool {
	if d.open() {
		d.counts.tokensRefused.Add(1)
		fail(w, http.StatusForbidden, "this interface is for reading only: no token is configured "+
			"(kith run --admin-token-file, admin.Config.Token)")
		return false
	}
	if !d.knows(q) {
		d.counts.tokensRefused.Add(1)
		d.counts.tell(d.log, "a request without the token was refused", q)
		w.Header().Set("WWW-Authenticate", "Bearer")
		fail(w, http.StatusUnauthorized, "the token is missing or wrong: Authorization: Bearer TOKEN")
		return false
	}
	return true
}

// knows reports whether a request has the token.
func (d *keeper) knows(q *http.Request) bool {
	token := d.token.Load()
	if token == nil {
		return false
	}
	got, is := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	want, have := sha256.Sum256([]byte(*token)), sha256.Sum256([]byte(got))
	return is && subtle.ConstantTimeCompare(want[:], have[:]) == 1
}

// cost is what a request costs the node, and so which room it needs.
type cost uint8

const (
	costProbe  cost = iota // next to nothing
	costLight              // a copy of what is there
	costHeavy              // figures are gathered and written as text: one at a time, with rests
	costWaits              // it waits for others, and works itself
	costStream             // for as long as the reader wants: has places of its own
)

// healthPaths are the routes of probes.
const healthPaths = "/health/"

// paced serves so many requests a second. Probes are counted apart, and requests with the token are not counted.
func (c *counters) paced(k *keeper, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		gate := c.reads
		if strings.HasPrefix(q.URL.Path, healthPaths) {
			gate = c.probes
		}
		if !k.knows(q) && !gate.Pass(q) {
			c.busy(w, "there are too many requests")
			return
		}
		next.ServeHTTP(w, q)
	})
}

// room serves requests of one kind as far as there is room for them. A caller that changes something has the token, or
// is refused.
func (c *counters) room(of cost, serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if of == costProbe || of == costStream || q.Method == http.MethodPost {
			serve(w, q)
			return
		}
		leave, ok := c.reads.Enter(q)
		if !ok {
			c.busy(w, "too many requests are under way")
			return
		}
		defer leave()
		if of == costHeavy {
			done, err := c.reads.Work(q.Context())
			if err != nil { // nobody waits for an answer
				return
			}
			defer done()
			w = &worker{w, done}
		}
		serve(w, q)
	})
}

// busy answers a request for which there is no room.
func (c *counters) busy(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close")
	fail(w, http.StatusServiceUnavailable, why)
}

// worker is the writer of an answer that was worked on until it began to be written: a slow reader holds nobody up.
type worker struct {
	http.ResponseWriter
	done func()
}

// Unwrap is for http.ResponseController.
func (w *worker) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader ends the work.
func (w *worker) WriteHeader(status int) {
	w.done()
	w.ResponseWriter.WriteHeader(status)
}

// Write ends the work.
func (w *worker) Write(p []byte) (int, error) {
	w.done()
	return w.ResponseWriter.Write(p)
}
