// One request: its path, its time, its key, its body; the call; the answer.

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/door"
	"github.com/kith-io/kith/internal/base/refuse"
	"github.com/kith-io/kith/route"
)

// ServeHTTP serves one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.URL.Path == "/v1/openapi.json" {
		g.describe(w, q)
		return
	}
	c, t, f := g.route(w, q)
	if f == nil {
		f = g.serve(w, q, c, t)
	}
	if f == nil {
		return
	}
	if q.ContentLength != 0 && (c == nil || c.Payload == nil) {
		w.Header().Set("Connection", "close") // of what was not read nobody waits for the rest
	}
	f.write(w)
}

// route returns what a request's path calls.
func (g *Gateway) route(w http.ResponseWriter, q *http.Request) (*Call, *Type, *Failure) {
	parts := strings.Split(strings.TrimPrefix(q.URL.EscapedPath(), "/"), "/") // an id may hold a slash, escaped
	for i, p := range parts {
		name, err := url.PathUnescape(p)
		if err != nil {
			return nil, nil, refused(http.StatusBadRequest, "bad-path", "the path cannot be read")
		}
		parts[i] = name
	}
	if len(parts) != 4 || parts[0] != "v1" || parts[1] != "ask" && parts[1] != "tell" {
		return nil, nil, refused(http.StatusNotFound, "not-found", "no such path")
	}
	c := &Call{Type: parts[2], ID: parts[3], Ask: parts[1] == "ask"}
	t := g.types[c.Type]
	if t == nil || c.Ask && !t.Ask || !c.Ask && !t.Tell {
		return nil, nil, refused(http.StatusNotFound, "not-found", "no such path")
	}
	if q.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, nil, refused(http.StatusMethodNotAllowed, "bad-method", "use POST")
	}
	return c, t, nil
}

// serve carries out a call and answers it, or returns why not.
func (g *Gateway) serve(w http.ResponseWriter, q *http.Request, c *Call, t *Type) *Failure {
	leave, all := g.room.enter(g.whose(q))
	switch {
	case leave != nil:
		defer leave()
	case all:
		return refused(http.StatusServiceUnavailable, "busy", "as many calls are under way as may be")
	default:
		return refused(http.StatusTooManyRequests, "busy", "as many calls of this address are under way as may be")
	}
	limit, f := g.limit(q)
	if f == nil {
		f = g.key(q, c, t)
	}
	if f != nil {
		return f
	}
	c.Headers = g.appendHeaders(q)
	if g.cfg.Authorize != nil {
		if err := g.cfg.Authorize(q, c); err != nil {
			return denied(err)
		}
	}
	if f := g.body(w, q, c); f != nil {
		return f
	}
	ctx, end := context.WithTimeout(q.Context(), limit)
	defer end()
	reply, err := do(ctx, c, t)
	switch {
	case err != nil:
		return failure(err, t.Errors)
	case !c.Ask:
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	w.Header().Set("Content-Type", t.MediaType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(time.Now().Add(g.cfg.BodyTime)) // a client that does not read keeps no place
	if _, err := w.Write(reply); err == nil && conn.Flush() == nil {
		_ = conn.SetWriteDeadline(time.Time{})
	} // else the client is gone
	return nil
}

// do asks or tells.
func do(ctx context.Context, c *Call, t *Type) ([]byte, error) {
	switch r := t.Region.With(c.Headers); {
	case !c.Ask:
		return nil, route.NotRun(r.Tell(c.ID, c.Payload)) // an error says that it was not accepted
	case c.Key != "":
		return t.Once(ctx, c)
	case t.AskBy != nil:
		return t.AskBy(ctx, c)
	default:
		return r.Ask(ctx, c.ID, c.Payload)
	}
}

// whose names the client whose share a request uses.
func (g *Gateway) whose(q *http.Request) string {
	if g.cfg.Address != nil {
		return g.cfg.Address(q)
	}
	return door.Asker(q).String()
}

// appendHeaders writes the allowed headers of a request, each as a line of its own: name, colon, space, value, newline.
// Values hold no line breaks: net/http refuses such requests.
func (g *Gateway) appendHeaders(q *http.Request) []byte {
	var b []byte
	for _, name := range g.headers {
		for _, value := range q.Header[name] {
			b = append(append(append(append(b, name...), ": "...), value...), '\n')
		}
	}
	return b
}

// limit is how long a call may take.
func (g *Gateway) limit(q *http.Request) (time.Duration, *Failure) {
	bad := func(text string) (time.Duration, *Failure) {
		return 0, refused(http.StatusBadRequest, "bad-timeout", text)
	}
	if status, why := refuse.Query(q); status != 0 {
		return 0, refused(status, "bad-query", why)
	}
	said := q.Header.Get(TimeoutHeader)
	if said == "" {
		said = q.URL.Query().Get("timeout")
	}
	if said == "" {
		return g.cfg.Timeout, nil
	}
	d, err := time.ParseDuration(said)
	switch {
	case err != nil:
		return bad("the timeout is no duration such as 500ms or 1.5s: " + refuse.Called(said))
	case d <= 0 || d > g.cfg.MaxTimeout:
		return bad(fmt.Sprintf("the timeout is %v, must be above 0 and at most %v", d, g.cfg.MaxTimeout))
	}
	return d, nil
}

// key reads the key of an ask that may be repeated.
func (g *Gateway) key(q *http.Request, c *Call, t *Type) *Failure {
	keys := q.Header.Values(KeyHeader)
	bad := func(text string) *Failure { return refused(http.StatusBadRequest, "bad-key", text) }
	switch {
	case len(keys) == 0:
		return nil
	case len(keys) > 1:
		return bad("there are several keys")
	case !c.Ask || t.Once == nil:
		return bad("calls of this kind heed no key")
	case keys[0] == "" || len(keys[0]) > MaxKey:
		return bad(fmt.Sprintf("the key has %d bytes, must have 1 to %d", len(keys[0]), MaxKey))
	}
	for _, b := range []byte(keys[0]) {
		if b < ' ' || b > '~' {
			return bad("the key must be of printable ASCII characters")
		}
	}
	c.Key = keys[0]
	return nil
}

// denied is the failure of a call that Authorize does not let in.
func denied(err error) *Failure {
	f := &Failure{"denied", kith.KindDenied.String(), "not allowed", false, http.StatusForbidden}
	if named := (*kith.Error)(nil); errors.As(err, &named) {
		f = failure(named, nil)
		f.MayHaveRun = false
	}
	return f
}

// body reads the message. One with a length that is too long is not read at all.
func (g *Gateway) body(w http.ResponseWriter, q *http.Request, c *Call) *Failure {
	if q.ContentLength > g.cfg.MaxBody {
		return refused(http.StatusRequestEntityTooLarge, "too-large",
			fmt.Sprintf("the body has %d bytes, may have %d", q.ContentLength, g.cfg.MaxBody))
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(g.cfg.BodyTime)) // it may be a connection without deadlines
	b, status, why := refuse.Body(w, q, g.cfg.MaxBody)
	if status != 0 {
		code := map[int]string{http.StatusRequestEntityTooLarge: "too-large", http.StatusRequestTimeout: "slow-body"}[status]
		if code == "" {
			code = "bad-body"
		}
		return refused(status, code, why)
	}
	_ = conn.SetReadDeadline(time.Time{})
	c.Payload = b
	return nil
}
