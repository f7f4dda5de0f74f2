// Tests of the admin interface over real connections: what it serves is what openapi.json says, to those that may have
// it.

package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/core/flight"
)

const token = "0123456789abcdef"

// start starts a node with one type, and serves it.
func start(t *testing.T, cfg Config, seeds ...string) (*kith.Node, *Server) {
	t.Helper()
	n, err := kith.Start(t.Context(), kith.Config{Seeds: seeds})
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	_, err = n.Register(kith.EntityType{Name: "orders", Shards: 8, Mode: kith.Inline,
		New: func(string, kith.Fence) kith.Handler { return handler{} }})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, n.Ready(ctx))
	cfg.Listen = "127.0.0.1:0"
	s, err := Start(n, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return n, s
}

type handler struct{}

func (handler) Receive(c *kith.Context, payload []byte) error { return c.Reply(payload) }
func (handler) Stop(*kith.Context)                            {}

// call asks for something and returns the answer's status and body.
func call(t *testing.T, s *Server, method, path, auth string) (int, []byte, http.Header) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, nil)
	require.NoError(t, err)
	if auth != "" {
		q.Header.Set("Authorization", auth)
	}
	a, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return a.StatusCode, body, a.Header
}

// document is what the tests need of openapi.json.
type document struct {
	Paths map[string]map[string]struct {
		Security  []any
		Responses map[string]struct {
			Content map[string]struct{ Schema map[string]any }
		}
	}
	Components struct{ Schemas map[string]map[string]any }
}

func described(t *testing.T) (d document) {
	t.Helper()
	require.NoError(t, json.Unmarshal(openAPI, &d))
	return d
}

// holds demands that a value is as a schema says: no field more, none less, of the right type.
func (d document) holds(t *testing.T, where string, schema map[string]any, v any) {
	t.Helper()
	if ref, is := schema["$ref"].(string); is {
		schema = d.Components.Schemas[ref[strings.LastIndexByte(ref, '/')+1:]]
		require.NotNil(t, schema, "%s: %s", where, ref)
	}
	switch schema["type"] {
	case "object":
		o, is := v.(map[string]any)
		require.True(t, is, "%s is %T", where, v)
		props, _ := schema["properties"].(map[string]any)
		for name, value := range o {
			p, known := props[name].(map[string]any)
			if schema["additionalProperties"] == false {
				require.True(t, known, "%s has %s, which is not described", where, name)
			}
			if known {
				d.holds(t, where+"."+name, p, value)
			}
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			require.Contains(t, o, name, where)
		}
	case "array":
		list, is := v.([]any)
		require.True(t, is, "%s is %T", where, v)
		for _, value := range list {
			d.holds(t, where+"[]", schema["items"].(map[string]any), value)
		}
	case "string":
		require.IsType(t, "", v, where)
	case "boolean":
		require.IsType(t, true, v, where)
	case "integer", "number":
		require.IsType(t, 1.5, v, where)
	default:
		require.Fail(t, "a schema without a type", where)
	}
}

// answers demands that an answer is as the description says, and returns it.
func (d document) answers(t *testing.T, s *Server, method, path, described, auth string, want int) any {
	t.Helper()
	status, body, head := call(t, s, method, path, auth)
	require.Equal(t, want, status, "%s %s: %s", method, path, body)
	require.Equal(t, "application/json", head.Get("Content-Type"))
	r, is := d.Paths[described][strings.ToLower(method)].Responses[fmt.Sprint(status)]
	require.True(t, is, "%s %s: %d is not described", method, described, status)
	var v any
	require.NoError(t, json.Unmarshal(body, &v))
	spelt(t, method+" "+path, v)
	if schema := r.Content["application/json"].Schema; schema != nil {
		d.holds(t, method+" "+path, schema, v)
	}
	return v
}

var (
	anyName = regexp.MustCompile(`^[a-z][a-z0-9]*([_-][a-z0-9]+)*$`)
	anyTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT`)
)

// spelt demands names in snake case, or words of enumerations, and moments by RFC 3339, in all of an answer.
func spelt(t *testing.T, where string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			require.Regexp(t, anyName, name, where)
			spelt(t, where+"."+name, value)
		}
	case []any:
		for _, value := range v {
			spelt(t, where+"[]", value)
		}
	case string:
		if anyTime.MatchString(v) {
			at, err := time.Parse(time.RFC3339, v)
			require.NoError(t, err, where)
			require.False(t, at.IsZero(), "%s: what never was is absent", where)
		}
	}
}

// Counters are given in the names and units of all other answers (OPS-1).
func TestSpelling(t *testing.T) {
	for name, want := range map[string]string{"Uptime": "uptime", "BytesIn": "bytes_in", "TLSReloads": "tls_reloads",
		"TLSStaleCRLs": "tls_stale_crls", "TimersLateP50": "timers_late_p50", "OverLimit": "over_limit"} {
		require.Equal(t, want, snake(name))
	}
	type inner struct{ ShortName int }
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	text, err := json.Marshal(spelled(struct {
		inner
		Took         time.Duration
		Since, Never time.Time
		List         []inner
		ByReason     map[string]uint64
		hidden       int
		None         *inner
	}{inner{1}, 1500 * time.Millisecond, at, time.Time{}, []inner{{2}}, map[string]uint64{"mailbox-full": 3}, 4, nil}))
	require.NoError(t, err)
	require.JSONEq(t, `{"short_name":1,"took_s":1.5,"since":"2026-01-02T02:04:05Z","list":[{"short_name":2}],
		"by_reason":{"mailbox-full":3},"none":null}`, string(text))
}

// Every route is described, nothing else is, and those that change something want the token.
func TestDescriptionHasTheRoutes(t *testing.T) {
	d := described(t)
	have := map[string]bool{"GET /metrics": true} // where it is configured
	for _, r := range routes {
		op, is := d.Paths[r.path][strings.ToLower(r.method)]
		require.True(t, is, "%s %s is not described", r.method, r.path)
		require.Equal(t, r.changes, len(op.Security) > 0, r.path)
		have[r.method+" "+r.path] = true
	}
	for path, ops := range d.Paths {
		for method := range ops {
			require.True(t, have[strings.ToUpper(method)+" "+path], "%s %s is not served", method, path)
		}
	}
}

// What is served is what the description says, good and bad.
func TestAnswers(t *testing.T) {
	a, _ := start(t, Config{})
	n, s := start(t, Config{Token: token}, a.Addr().String())
	d := described(t)
	self := n.Addr().String()
	for _, r := range n.Regions() {
		_, err := r.Ask(t.Context(), "x", []byte("y"))
		require.NoError(t, err)
	}
	list := d.answers(t, s, "GET", "/v1/members", "/v1/members", "", 200).(map[string]any)
	require.Len(t, list["members"], 2)
	require.Equal(t, n.ID().String(), list["self"])
	for _, name := range []string{self, n.ID().String()} {
		one := d.answers(t, s, "GET", "/v1/members/"+strings.ReplaceAll(name, "#", "%23"), "/v1/members/{addr}", "", 200)
		require.Equal(t, self, one.(map[string]any)["addr"])
	}
	d.answers(t, s, "GET", "/v1/members/10.0.0.1:1", "/v1/members/{addr}", "", 404)
	for _, path := range []string{"/health/started", "/health/ready", "/health/alive", "/v1/convergence", "/v1/decisions",
		"/v1/types", "/v1/partitions", "/v1/stats", "/v1/peers", "/v1/snapshot"} {
		d.answers(t, s, "GET", path, path, "", 200)
	}
	rep := d.answers(t, s, "GET", "/v1/types/orders?shards=true&timeout=2s", "/v1/types/{name}", "", 200).(map[string]any)
	require.EqualValues(t, 1, rep["homed"])
	require.Empty(t, rep["missing"])
	d.answers(t, s, "GET", "/v1/types/none", "/v1/types/{name}", "", 404)
	for _, bad := range []string{"timeout=1h", "timeout=-1s", "timeout=x", "shards=7"} {
		d.answers(t, s, "GET", "/v1/types/orders?"+bad, "/v1/types/{name}", "", 400)
	}
	bearer := "Bearer " + token
	d.answers(t, s, "POST", "/v1/rebalancing/pause", "/v1/rebalancing/pause", bearer, 200)
	d.answers(t, s, "POST", "/v1/rebalancing/resume", "/v1/rebalancing/resume", bearer, 200)
	shard := fmt.Sprint(n.Regions()[0].Shard("x"))
	home := rep["nodes"].([]any)
	to := a.Addr().String()
	for _, o := range home {
		if o.(map[string]any)["shards"].(float64) == 0 {
			to = o.(map[string]any)["node"].(string)
		}
	}
	to = strings.ReplaceAll(to, "#", "%23")
	path := "/v1/types/orders/move"
	for bad, status := range map[string]int{"": 400, "?shard=8&to=" + to: 400, "?shard=-1&to=" + to: 400,
		"?shard=" + shard + "&to=10.0.0.1:1": 404} {
		d.answers(t, s, "POST", path+bad, "/v1/types/{name}/move", bearer, status)
	}
	d.answers(t, s, "POST", "/v1/types/none/move", "/v1/types/{name}/move", bearer, 404)
	long := strings.Replace(to, "127.0.0.1:", "[::ffff:127.0.0.1]:", 1)
	d.answers(t, s, "POST", path+"?shard="+shard+"&to="+long, "/v1/types/{name}/move", bearer, 202)
	require.Eventually(t, func() bool {
		status, _, _ := call(t, s, "POST", path+"?shard="+shard+"&to="+to, bearer)
		return status == 409 // it moves, or is there
	}, time.Minute, time.Millisecond)
	d.answers(t, s, "POST", "/v1/drain", "/v1/drain", bearer, 202)
	require.Eventually(t, func() bool { return n.Stats().Types[0].Hosted == 0 }, time.Minute, time.Millisecond)
	drains := d.answers(t, s, "GET", "/health/ready", "/health/ready", "", 200).(map[string]any)
	require.Equal(t, true, drains["draining"])
	d.answers(t, s, "POST", "/v1/drain", "/v1/drain", bearer, 202) // twice is once
	d.answers(t, s, "POST", "/v1/undrain", "/v1/undrain", bearer, 200)
	d.answers(t, s, "POST", "/v1/members/10.0.0.1:1/down", "/v1/members/{addr}/down", "Bearer "+token, 404)
	d.answers(t, s, "POST", "/v1/refound", "/v1/refound", "Bearer "+token, 409) // it has no tenure
	d.answers(t, s, "POST", "/v1/leave", "/v1/leave", "Bearer "+token, 202)
	<-n.Done()
	d.answers(t, s, "GET", "/health/alive", "/health/alive", "", 503)
	d.answers(t, s, "GET", "/health/ready", "/health/ready", "", 503)
	d.answers(t, s, "GET", "/v1/convergence", "/v1/convergence", "", 503)
	d.answers(t, s, "GET", "/v1/peers", "/v1/peers", "", 503)
	over := d.answers(t, s, "GET", "/v1/snapshot", "/v1/snapshot", "", 200).(map[string]any)
	require.Equal(t, "ended", over["health"].(map[string]any)["state"])
	d.answers(t, s, "GET", "/v1/types/orders", "/v1/types/{name}", "", 503)
	status, body, _ := call(t, s, "GET", "/openapi.json", "")
	require.Equal(t, 200, status)
	require.Equal(t, openAPI, body)
}

// Nothing changes without the token, and nothing can where there is none.
func TestToken(t *testing.T) {
	n, s := start(t, Config{Token: token, Profiling: true})
	d := described(t)
	for _, auth := range []string{"", "Bearer ", "Bearer 0123456789abcdeg", token, "Basic " + token} {
		d.answers(t, s, "POST", "/v1/leave", "/v1/leave", auth, 401)
		status, _, head := call(t, s, "GET", "/debug/pprof/cmdline", auth)
		require.Equal(t, 401, status)
		require.Equal(t, "Bearer", head.Get("WWW-Authenticate"))
	}
	status, _, _ := call(t, s, "GET", "/debug/pprof/cmdline", "Bearer "+token)
	require.Equal(t, 200, status)
	_, open := start(t, Config{})
	d.answers(t, open, "POST", "/v1/leave", "/v1/leave", "Bearer ", 403)
	status, _, _ = call(t, open, "GET", "/debug/pprof/", "")
	require.Equal(t, 404, status, "it is not served unless asked for")
	status, _, _ = call(t, open, "GET", "/metrics", "")
	require.Equal(t, 404, status, "nor is this")
	_, shown := start(t, Config{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("up 1\n"))
	})})
	status, body, _ := call(t, shown, "GET", "/metrics", "")
	require.Equal(t, 200, status)
	require.Equal(t, "up 1\n", string(body))
	for _, path := range []string{"/v1/leave", "/v1/members/x/down"} {
		status, _, _ = call(t, s, "GET", path, "Bearer "+token)
		require.Equal(t, 405, status)
	}
	require.Eventually(t, func() bool { return n.Health().Ready() }, 2*time.Minute, time.Millisecond)
}

// A token takes the place of another one while the interface serves; one that is too short changes nothing (OPS-1).
func TestSetToken(t *testing.T) {
	_, s := start(t, Config{Profiling: true})
	asks := func(token string, want int) {
		t.Helper()
		status, _, _ := call(t, s, "GET", "/debug/pprof/cmdline", "Bearer "+token)
		require.Equal(t, want, status)
	}
	asks("", 200)
	for _, bad := range []string{"", token[1:]} {
		require.ErrorIs(t, s.SetToken(bad), ErrBadConfig)
		asks("", 200)
	}
	const other = "fedcba9876543210"
	require.NoError(t, s.SetToken(token))
	asks("", 401)
	asks(other, 401)
	asks(token, 200)
	require.NoError(t, s.SetToken(other))
	asks(token, 401)
	asks(other, 200)
	require.ErrorIs(t, s.SetToken(""), ErrBadConfig)
	asks("", 401)
	asks(other, 200)
}

// The flight record goes to a caller with the token, as a file, and nobody gets half of one.
func TestFlightRecord(t *testing.T) {
	n, s := start(t, Config{Token: token})
	d := described(t)
	d.answers(t, s, "GET", "/v1/flight-record", "/v1/flight-record", "", 401)
	status, body, head := call(t, s, "GET", "/v1/flight-record", "Bearer "+token)
	require.Equal(t, 200, status)
	require.Equal(t, "application/octet-stream", head.Get("Content-Type"))
	rec, err := flight.Read(bytes.NewReader(body))
	require.NoError(t, err)
	require.Equal(t, n.ID().String(), rec.Node)
	require.NoError(t, n.Close())
	d.answers(t, s, "GET", "/v1/flight-record", "/v1/flight-record", "Bearer "+token, 503)
	none, err := kith.Start(t.Context(), kith.Config{FlightRecord: kith.FlightRecord{Bytes: -1}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = none.Close() })
	without, err := Start(none, Config{Listen: "127.0.0.1:0", Token: token})
	require.NoError(t, err)
	t.Cleanup(func() { _ = without.Close(context.Background()) })
	d.answers(t, without, "GET", "/v1/flight-record", "/v1/flight-record", "Bearer "+token, 409)
}

// reads opens a stream and returns its events, by kind.
func reads(t *testing.T, s *Server, path string) (<-chan map[string]any, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.Addr().String()+path, nil)
	require.NoError(t, err)
	a, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	require.Equal(t, 200, a.StatusCode)
	require.Equal(t, "text/event-stream", a.Header.Get("Content-Type"))
	out := make(chan map[string]any, 100)
	go func() {
		defer close(out)
		defer a.Body.Close()
		kind := ""
		for lines := bufio.NewScanner(a.Body); lines.Scan(); {
			if k, is := strings.CutPrefix(lines.Text(), "event: "); is {
				kind = k
			}
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				v := map[string]any{}
				if json.Unmarshal([]byte(data), &v) == nil && v["kind"] == kind {
					out <- v
				}
			}
		}
	}()
	return out, cancel
}

// Streams begin with what is, tell what happens, are bounded, and end with the node.
func TestStreams(t *testing.T) {
	n, s := start(t, Config{Streams: 2})
	d := described(t)
	members, _ := reads(t, s, "/v1/events")
	first := <-members
	require.Equal(t, "snapshot", first["kind"])
	shards, stop := reads(t, s, "/v1/shard-events")
	require.Equal(t, "begin", (<-shards)["kind"])
	d.answers(t, s, "GET", "/v1/events", "/v1/events", "", 503)
	_, err := n.Regions()[0].Ask(t.Context(), "x", nil)
	require.NoError(t, err)
	e := <-shards
	for e["kind"] != "shard-allocated" {
		e = <-shards
	}
	schema := func(path string) map[string]any {
		return d.Paths[path]["get"].Responses["200"].Content["text/event-stream"].Schema
	}
	d.holds(t, "a shard event", schema("/v1/shard-events"), e)
	require.Equal(t, "orders", e["type"])
	stop()
	for range shards {
	}
	require.Eventually(t, func() bool { // its place is free when the server has noticed
		a, err := http.Get("http://" + s.Addr().String() + "/v1/events")
		if err != nil {
			return false
		}
		return a.Body.Close() == nil && a.StatusCode == 200
	}, time.Minute, time.Millisecond)
	require.NoError(t, n.Close())
	for e := range members {
		d.holds(t, "an event", schema("/v1/events"), e)
	}
}

// A configuration says all that is wrong with it.
func TestConfig(t *testing.T) {
	require.NoError(t, Config{}.Validate())
	require.NoError(t, Config{Listen: "0.0.0.0:1", Insecure: true}.Validate())
	err := Config{Listen: "0.0.0.0:1", Token: "short", Streams: MaxStreams + 1}.Validate()
	require.ErrorIs(t, err, ErrBadConfig)
	for _, what := range []string{"loopback", "16 are needed", "Streams"} {
		require.ErrorContains(t, err, what)
	}
	for _, listen := range []string{"127.0.0.1", "x:y:z", "10.1.1.1:80"} {
		_, err := Start(nil, Config{Listen: listen})
		require.ErrorIs(t, err, ErrBadConfig, listen)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = Start(nil, Config{Listen: l.Addr().String()})
	require.Error(t, err, "the port is taken")
}

// Bad and oversized requests get an answer or lose their connection, and change nothing.
func TestBadRequests(t *testing.T) {
	_, s := start(t, Config{Token: token})
	for _, path := range []string{"/page/", "/page/nothing.js", "/v1", "/v1/nothing", "/v1/members/a/b"} {
		status, _, _ := call(t, s, "GET", path, "")
		require.Equal(t, 404, status, path)
	}
	for _, raw := range []string{
		"GET /v1/members HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 2*maxHeader) + "\r\n\r\n",
		"nonsense\r\n\r\n", "GET /v1/members HTTP/9.9\r\n\r\n",
	} {
		c, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		_, _ = c.Write([]byte(raw))
		answer, _ := io.ReadAll(c)
		require.True(t, slices.ContainsFunc([]string{"400", "431", "505"}, func(code string) bool {
			return strings.HasPrefix(string(answer), "HTTP/1.1 "+code)
		}), "%.60s: %.60s", raw, answer)
		c.Close()
	}
}

// Without an address of its own the interface takes another port where the usual one is taken; one that was given it
// does not leave.
func TestATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, err = bind(taken.Addr().String(), false)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	l, err := bind(taken.Addr().String(), true)
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.Addr().(*net.TCPAddr).IP.IsLoopback())
	require.NotEqual(t, taken.Addr().String(), l.Addr().String())
	_, err = bind("192.0.2.1:0", true) // no address of this machine: another fault is not mended
	require.Error(t, err)
	n, err := kith.Start(t.Context(), kith.Config{})
	require.NoError(t, err)
	defer n.Close()
	for range 2 { // two interfaces of one machine: one has the usual port
		s, err := Start(n, Config{})
		require.NoError(t, err)
		defer func() { _ = s.Close(context.Background()) }()
	}
}

// worded answers as its payload says: with its payload, an error, bytes that are no text, too much, or late.
type worded struct{ free chan struct{} }

var errKnown = kith.NewError("sold-out", kith.KindConflict, "nothing is left")

func (h worded) Receive(c *kith.Context, payload []byte) error {
	switch string(payload) {
	case "fail":
		return errKnown
	case "bytes":
		return c.Reply([]byte{0xff, 0})
	case "large":
		return c.Reply(make([]byte, maxReply+1))
	case "late":
		<-h.free
	}
	if !c.Asked() {
		return nil
	}
	return c.Reply(payload)
}
func (worded) Stop(*kith.Context) {}

// TestWhereAndWords: where an entity lives as every node says it, with its mailbox where it lives; what it answers, and
// whether it may have run when it does not, to callers with the token (OPS-1).
func TestWhereAndWords(t *testing.T) {
	free := make(chan struct{})
	declare := func(n *kith.Node) {
		_, err := n.Register(kith.EntityType{Name: "shop", Shards: 8, Mode: kith.Blocking,
			New: func(string, kith.Fence) kith.Handler { return worded{free} }})
		require.NoError(t, err)
	}
	a, sa := start(t, Config{Token: token})
	declare(a)
	b, sb := start(t, Config{Token: token}, a.Addr().String())
	declare(b)
	d, bearer := described(t), "Bearer "+token
	send := func(s *Server, what, payload string, want int) map[string]any {
		t.Helper()
		verb := what[:strings.IndexByte(what+"?", '?')]
		status, body, _ := asks(t, s, "POST", "/v1/types/shop/"+what, bearer, "", strings.NewReader(payload))
		require.Equal(t, want, status, "%s", body)
		var v map[string]any
		require.NoError(t, json.Unmarshal(body, &v))
		r := d.Paths["/v1/types/{name}/"+verb]["post"].Responses[fmt.Sprint(status)]
		d.holds(t, what, r.Content["application/json"].Schema, any(v))
		return v
	}
	where := func(s *Server, id string) map[string]any {
		t.Helper()
		path := "/v1/types/{name}/home"
		return d.answers(t, s, "GET", "/v1/types/shop/home?id="+id, path, "", 200).(map[string]any)
	}
	none := where(sa, "nobody")
	require.NotContains(t, none, "node", "nobody has sent there")
	require.Equal(t, false, none["answered"])

	require.Equal(t, "hello", send(sb, "ask?id=x%2Fy", "hello", 200)["reply"])
	require.Equal(t, "", send(sb, "ask?id=x%2Fy", "", 200)["reply"])
	require.Equal(t, "/wA=", send(sb, "ask?id=x%2Fy", "bytes", 200)["reply_base64"])
	send(sa, "tell?id=x%2Fy", "something", 200)
	owner, other := sa, sb
	var at map[string]any
	require.Eventually(t, func() bool { // the tell is still looking for its home
		at = where(sa, "x%2Fy")
		return at["node"] != nil
	}, time.Minute, time.Millisecond)
	if at["here"] != true {
		owner, other = sb, sa
	}
	require.Eventually(t, func() bool { // figures are a tenth of a second old
		here, there := where(owner, "x%2Fy"), where(other, "x%2Fy")
		if here["node"] == nil || there["node"] == nil {
			return false
		}
		require.Equal(t, here["node"], there["node"])
		require.Equal(t, true, here["here"])
		require.Equal(t, false, there["here"])
		require.NotContains(t, there, "mailbox")
		m := here["mailbox"].(map[string]any)
		return there["entities"] == 1.0 && here["answered"] == true && here["handled"] == 4.0 && m["lives"] == true &&
			m["busy"] == false && here["fence"] != "" && here["since"] != nil && there["fence"] == here["fence"]
	}, time.Minute, 10*time.Millisecond)

	failed := send(sa, "ask?id=x%2Fy", "fail", 502)
	require.Equal(t, true, failed["may_have_run"])
	require.Equal(t, "sold-out", failed["code"])
	require.Equal(t, "conflict", failed["kind"])
	require.Contains(t, failed["error"], "nothing is left")
	require.Contains(t, send(sa, "ask?id=x%2Fy", "large", 502)["error"], "bytes")
	require.Equal(t, true, send(sa, "ask?id=x%2Fy&within=20ms", "late", 504)["may_have_run"])
	for range 3 {
		send(sa, "tell?id=x%2Fy", "behind", 200)
	}
	require.Eventually(t, func() bool {
		m := where(owner, "x%2Fy")["mailbox"].(map[string]any)
		return m["busy"] == true && m["waiting"].(float64) >= 1 && m["bytes"].(float64) > 0
	}, time.Minute, 10*time.Millisecond)
	close(free)

	for bad, want := range map[string]int{"ask?id=": 400, "ask": 400, "ask?id=x&within=1h": 400, "ask?id=x&within=x": 400,
		"tell?id=" + strings.Repeat("x", 1025): 400, "tell?id=x&id=y": 400} {
		send(sa, bad, "", want)
	}
	d.answers(t, sa, "GET", "/v1/types/shop/home", "/v1/types/{name}/home", "", 400)
	d.answers(t, sa, "GET", "/v1/types/none/home?id=x", "/v1/types/{name}/home", "", 404)
	for _, verb := range []string{"ask", "tell"} {
		d.answers(t, sa, "POST", "/v1/types/none/"+verb+"?id=x", "/v1/types/{name}/"+verb, bearer, 404)
	}
	require.NoError(t, a.Close())
	d.answers(t, sa, "GET", "/v1/types/shop/home?id=x", "/v1/types/{name}/home", "", 503)
	require.Equal(t, false, send(sa, "ask?id=x", "hello", 503)["may_have_run"])
}
