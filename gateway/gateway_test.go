// Tests of the gateway over real connections, before a node with entities of each answer.

package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/kith-io/kith"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

const patience = 2 * time.Minute

// teller does what the message says.
type teller struct{ h *house }

// house is a node and what its entities have seen.
type house struct {
	node   *kith.Node
	region *kith.Region
	told   chan string
	began  chan struct{}
	ended  chan error
}

var errOpen = kith.NewError("still-open", kith.KindConflict, "it is open")

func (e teller) Receive(c *kith.Context, p []byte) error {
	switch string(p) {
	case "headers":
		return c.Reply(c.Headers())
	case "conflict":
		return fmt.Errorf("more: %w", errOpen)
	case "plain":
		return errors.New("a secret")
	case "panic":
		panic("a secret")
	case "silent":
		return nil
	case "wait":
		e.h.began <- struct{}{}
		ctx := c.Context()
		<-ctx.Done()
		e.h.ended <- context.Cause(ctx)
		return nil
	}
	if !c.Asked() {
		e.h.told <- c.ID + ": " + string(p)
		return nil
	}
	return c.Reply([]byte(c.ID + ": " + string(p)))
}

func (teller) Stop(*kith.Context) {}

// open starts a node with the type "teller".
func open(t *testing.T) *house {
	h := &house{told: make(chan string, 10), began: make(chan struct{}, 10), ended: make(chan error, 10)}
	var err error
	h.node, err = kith.Start(t.Context(), kith.Config{Name: "gateway"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.node.Close() })
	h.region, err = h.node.Register(kith.EntityType{Name: "teller", Shards: 4,
		New: func(string, kith.Fence) kith.Handler { return teller{h} }})
	require.NoError(t, err)
	require.NoError(t, h.node.Ready(t.Context()))
	return h
}

// serves serves a gateway before h, with the types that change leaves.
func serves(t *testing.T, h *house, change ...func(*Config)) (*Gateway, *httptest.Server) {
	cfg := Config{Types: []Type{{Region: h.region, Ask: true, Tell: true}}}
	for _, f := range change {
		f(&cfg)
	}
	g, err := New(cfg)
	require.NoError(t, err)
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return g, s
}

// call makes one request and returns the answer with its body.
func call(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		q.Header.Add(header[i], header[i+1])
	}
	a, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return a, string(b)
}

// fails makes one request, which fails, and returns status and body.
func fails(t *testing.T, method, url, body string, header ...string) (int, Failure, *http.Response) {
	a, text := call(t, method, url, body, header...)
	var f Failure
	require.NoError(t, json.Unmarshal([]byte(text), &f), text)
	require.Equal(t, fmt.Sprint(f.MayHaveRun), a.Header.Get(RanHeader))
	require.Equal(t, a.StatusCode == 503 || a.StatusCode == 429, a.Header.Get("Retry-After") != "")
	require.NotContains(t, text, "secret")
	require.NotEmpty(t, f.Text)
	return a.StatusCode, f, a
}

// TestAskAndTell: what is exposed can be called, ids of any kind come through, and the reply is the body.
func TestAskAndTell(t *testing.T) {
	h := open(t)
	_, s := serves(t, h)
	for _, id := range []string{"anna", "a/b", "a//b", "..", "ä ?#&", strings.Repeat("x", 1024)} {
		path := strings.ReplaceAll(escape(id), "..", "%2E%2E")
		a, body := call(t, "POST", s.URL+"/v1/ask/teller/"+path, "hello")
		require.Equal(t, 200, a.StatusCode, id)
		require.Equal(t, id+": hello", body)
		require.Equal(t, "application/octet-stream", a.Header.Get("Content-Type"))
		a, body = call(t, "POST", s.URL+"/v1/tell/teller/"+path, "hello")
		require.Equal(t, 202, a.StatusCode)
		require.Empty(t, body)
		require.Equal(t, id+": hello", <-h.told)
	}
}

func escape(id string) string {
	var b strings.Builder
	for _, c := range []byte(id) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// TestWhatIsNotThere: nothing is exposed that is not listed, by no verb that is not; no answer says which of them it
// is.
func TestWhatIsNotThere(t *testing.T) {
	h := open(t)
	_, nothing := serves(t, h, func(c *Config) { c.Types = nil })
	_, asks := serves(t, h, func(c *Config) { c.Types[0].Tell, c.Types[0].Name = false, "public" })
	for _, url := range []string{
		nothing.URL + "/v1/ask/teller/e", asks.URL + "/v1/ask/teller/e", asks.URL + "/v1/tell/public/e", asks.URL + "/",
		asks.URL + "/v1/ask/public", asks.URL + "/v1/ask/public/e/f", asks.URL + "/v2/ask/public/e",
		asks.URL + "//ask/public/e",
	} {
		for _, method := range []string{"POST", "GET"} {
			status, f, _ := fails(t, method, url, "x")
			require.Equal(t, 404, status, url)
			require.Equal(t, "not-found", f.Code)
		}
	}
	a, _ := call(t, "POST", asks.URL+"/v1/ask/public/e", "x")
	require.Equal(t, 200, a.StatusCode)
	status, _, answer := fails(t, "GET", asks.URL+"/v1/ask/public/e", "")
	require.Equal(t, 405, status)
	require.Equal(t, "POST", answer.Header.Get("Allow"))
}

// TestBadRequests: the answer says what is wrong with a request, and no handler is called.
func TestBadRequests(t *testing.T) {
	h := open(t)
	called := 0
	g, s := serves(t, h, func(c *Config) {
		c.MaxBody = 1000
		c.Types[0].Once = func(context.Context, *Call) ([]byte, error) { called++; return nil, nil }
		c.Headers = []string{"X-Tenant"}
	})
	const ask, tell = "/v1/ask/teller/e", "/v1/tell/teller/e"
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		path, body string
		status     int
		code       string
		header     []string
	}{
		{ask + "?timeout=soon", "", 400, "bad-timeout", nil},
		{ask + "?timeout=0s", "", 400, "bad-timeout", nil},
		{ask + "?timeout=61s", "", 400, "bad-timeout", nil},
		{ask + "?timeout=1s", "", 400, "bad-timeout", []string{TimeoutHeader, "-1s"}},
		{ask + "?%zz", "", 400, "bad-query", nil},
		{ask, "", 400, "bad-key", []string{KeyHeader, ""}},
		{ask, "", 400, "bad-key", []string{KeyHeader, long}},
		{ask, "", 400, "bad-key", []string{KeyHeader, "ä"}},
		{ask, "", 400, "bad-key", []string{KeyHeader, "a", KeyHeader, "b"}},
		{tell, "", 400, "bad-key", []string{KeyHeader, "a"}},
		{ask + strings.Repeat("x", 1024), "", 400, "bad-id", nil},
		{"/v1/ask/teller/", "", 400, "bad-id", nil},
		{ask, strings.Repeat("x", 1001), 413, "too-large", nil},
		{ask, "", 431, "headers-too-large", []string{"X-Tenant", strings.Repeat("x", 4096)}},
	} {
		status, f, _ := fails(t, "POST", s.URL+c.path, c.body, c.header...)
		require.Equal(t, c.status, status, c.path)
		require.Equal(t, c.code, f.Code, c.path)
		require.False(t, f.MayHaveRun, c.path)
	}
	require.Zero(t, called)
	require.Empty(t, h.told)
	require.Zero(t, g.Stats().Underway)
}

// raw writes a request as it is and returns the answer. The connection stays open for writing.
func raw(t *testing.T, s *httptest.Server, request string) (*http.Response, net.Conn) {
	nc, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(nc, request)
	require.NoError(t, err)
	a, err := http.ReadResponse(bufio.NewReader(nc), nil)
	require.NoError(t, err)
	return a, nc
}

// TestLargeBodies: a body of 1 GiB is refused by its length, before any of it has come; one that says no length as soon
// as it is too long.
func TestLargeBodies(t *testing.T) {
	h := open(t)
	_, s := serves(t, h)
	const head = "POST /v1/ask/teller/e HTTP/1.1\r\nHost: h\r\n"
	a, _ := raw(t, s, head+"Content-Length: 1073741824\r\n\r\n")
	require.Equal(t, 413, a.StatusCode)
	require.True(t, a.Close)
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 600<<10, bytes.Repeat([]byte("x"), 600<<10))
	a, _ = raw(t, s, head+"Transfer-Encoding: chunked\r\n\r\n"+chunk+chunk)
	require.Equal(t, 413, a.StatusCode)
	require.True(t, a.Close)
}

// TestSlowBodies: one that does not come in time is given up, and its place with it.
func TestSlowBodies(t *testing.T) {
	h := open(t)
	g, s := serves(t, h, func(c *Config) { c.BodyTime = 50 * time.Millisecond })
	a, _ := raw(t, s, "POST /v1/ask/teller/e HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nx")
	require.Equal(t, 408, a.StatusCode)
	require.True(t, a.Close)
	require.Eventually(t, func() bool { return g.Stats().Underway == 0 }, patience, time.Millisecond)
	answer, body := call(t, "POST", s.URL+"/v1/ask/teller/e?timeout=1m", "in time")
	require.Equal(t, 200, answer.StatusCode)
	require.Equal(t, "e: in time", body)
}

// TestFailuresOfHandlers: an identity is answered with its kind, anything else of a handler is not shown to strangers;
// a call without an answer says that it may have run, in the time that it was given.
func TestFailuresOfHandlers(t *testing.T) {
	h := open(t)
	_, s := serves(t, h, func(c *Config) { c.Timeout, c.MaxTimeout = 50*time.Millisecond, time.Minute })
	for _, c := range []struct {
		message string
		status  int
		code    string
		kind    string
	}{
		{"conflict", 409, "still-open", "conflict"}, {"plain", 500, "failed", ""}, {"panic", 500, "failed", ""},
		{"silent", 500, "failed", ""}, {"wait", 504, "unknown", ""},
	} {
		url := s.URL + "/v1/ask/teller/" + c.message
		if c.message != "wait" {
			url += "?timeout=1m"
		}
		status, f, _ := fails(t, "POST", url, c.message)
		require.Equal(t, []any{c.status, c.code, c.kind, true}, []any{status, f.Code, f.Kind, f.MayHaveRun}, c.message)
	}
	require.ErrorIs(t, <-h.ended, kith.ErrTimeout, "its handler knows the time")
}

// TestGoneClient: a client that goes away cancels the handler of its ask.
func TestGoneClient(t *testing.T) {
	h := open(t)
	g, s := serves(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	url := s.URL + "/v1/ask/teller/e?timeout=1m"
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("wait"))
	require.NoError(t, err)
	over := make(chan error, 1)
	go func() {
		a, err := http.DefaultClient.Do(q)
		if err == nil {
			a.Body.Close()
		}
		over <- err
	}()
	<-h.began
	require.Equal(t, 1, g.Stats().Underway)
	cancel()
	require.Error(t, <-over)
	require.Equal(t, kith.ErrAskCancelled, <-h.ended)
	require.Eventually(t, func() bool { return g.Stats().Underway == 0 }, patience, time.Millisecond)
}

// TestHeaders: those that are allowed go to the entity, and no others.
func TestHeaders(t *testing.T) {
	h := open(t)
	_, s := serves(t, h, func(c *Config) { c.Headers = []string{"x-tenant", "Traceparent"} })
	_, body := call(t, "POST", s.URL+"/v1/ask/teller/e", "headers", "X-Tenant", "a: b", "X-Tenant", "c", "Authorization",
		"secret", "traceparent", "00")
	require.Equal(t, "X-Tenant: a: b\nX-Tenant: c\nTraceparent: 00\n", body)
	require.Equal(t, http.Header{"X-Tenant": {"a: b", "c"}, "Traceparent": {"00"}}, ParseHeaders([]byte(body)))
	_, body = call(t, "POST", s.URL+"/v1/ask/teller/e", "headers")
	require.Empty(t, body)
	require.Empty(t, ParseHeaders([]byte("no header\n\n: \n")).Get("no header"))
}

// TestAuthorize: it judges each call before its body is read, and its error has the status of its kind, else 403.
func TestAuthorize(t *testing.T) {
	h := open(t)
	var seen Call
	_, s := serves(t, h, func(c *Config) {
		c.Authorize = func(q *http.Request, c *Call) error {
			seen = *c
			switch q.Header.Get("Authorization") {
			case "Bearer anna":
				return nil
			case "":
				return kith.NewError("no-token", kith.KindDenied, "bring a token")
			case "Bearer busy":
				return kith.NewError("later", kith.KindUnavailable, "later")
			}
			return errors.New("a secret")
		}
	})
	const url = "/v1/ask/teller/e"
	a, _ := call(t, "POST", s.URL+url, "x", "Authorization", "Bearer anna")
	require.Equal(t, 200, a.StatusCode)
	require.Equal(t, Call{Type: "teller", ID: "e", Ask: true}, seen)
	for token, want := range map[string]string{"": "403 no-token", "Bearer busy": "503 later",
		"Bearer eve": "403 denied"} {
		status, f, _ := fails(t, "POST", s.URL+url, "x", "Authorization", token)
		require.Equal(t, want, fmt.Sprint(status, " ", f.Code))
		require.False(t, f.MayHaveRun)
	}
	answer, _ := raw(t, s, "POST "+url+" HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n") // of which nothing comes
	require.Equal(t, 403, answer.StatusCode)
}

// TestOnce: an ask with a key goes to Once, by which the second one has no effect; one without goes to the entity. Its
// errors may be given an identity.
func TestOnce(t *testing.T) {
	h := open(t)
	kept, effects := map[string]string{}, 0
	errUsed := errors.New("the key was used")
	once := OnceOf(func(_ context.Context, key, id string, n *int) (int, error) {
		was, ok := kept[key]
		switch {
		case ok && was != fmt.Sprint(*n):
			return 0, errUsed
		case !ok:
			kept[key] = fmt.Sprint(*n)
			effects += *n
		}
		return effects, nil
	}, kith.JSON[int](), kith.JSON[int]())
	_, s := serves(t, h, func(c *Config) {
		c.Types[0].Once, c.Types[0].MediaType = once, "application/json"
		c.Types[0].Errors = func(err error) *kith.Error {
			if errors.Is(err, errUsed) {
				return kith.NewError("key-used", kith.KindConflict, "the key was used for another message")
			}
			return nil
		}
	})
	for range 3 {
		a, body := call(t, "POST", s.URL+"/v1/ask/teller/e", "5", KeyHeader, "k")
		require.Equal(t, 200, a.StatusCode)
		require.Equal(t, "application/json", a.Header.Get("Content-Type"))
		require.Equal(t, "5", body)
	}
	_, body := call(t, "POST", s.URL+"/v1/ask/teller/e", "5")
	require.Equal(t, "e: 5", body)
	status, f, _ := fails(t, "POST", s.URL+"/v1/ask/teller/e", "6", KeyHeader, "k")
	require.Equal(t, "409 key-used", fmt.Sprint(status, " ", f.Code))
	status, f, _ = fails(t, "POST", s.URL+"/v1/ask/teller/e", "no number", KeyHeader, "l")
	require.Equal(t, "400 bad-payload", fmt.Sprint(status, " ", f.Code))
	require.False(t, f.MayHaveRun)
	_, without := serves(t, h)
	status, f, _ = fails(t, "POST", without.URL+"/v1/ask/teller/e", "5", KeyHeader, "k")
	require.Equal(t, "400 bad-key", fmt.Sprint(status, " ", f.Code))
}

// TestBusy: a client that takes all the places that one address may have leaves some for another.
func TestBusy(t *testing.T) {
	h := open(t)
	g, s := serves(t, h, func(c *Config) {
		c.MaxCalls = 4
		c.Address = func(q *http.Request) string { return q.Header.Get("X-From") }
	})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 4)
	wait := func(from, id string) {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/ask/teller/"+id, strings.NewReader("wait"))
		require.NoError(t, err)
		q.Header.Set("X-From", from)
		go func() {
			a, err := http.DefaultClient.Do(q)
			if err == nil {
				a.Body.Close()
			}
			over <- err
		}()
		<-h.began
	}
	wait("a", "1")
	wait("a", "2")
	status, f, _ := fails(t, "POST", s.URL+"/v1/ask/teller/3", "x", "X-From", "a")
	require.Equal(t, "429 busy", fmt.Sprint(status, " ", f.Code))
	wait("b", "4")
	wait("c", "5")
	status, f, _ = fails(t, "POST", s.URL+"/v1/ask/teller/6", "x", "X-From", "d")
	require.Equal(t, "503 busy", fmt.Sprint(status, " ", f.Code))
	require.Equal(t, Stats{4, 4, 2}, g.Stats())
	cancel()
	for range 4 {
		require.Error(t, <-over)
		require.Equal(t, kith.ErrAskCancelled, <-h.ended)
	}
	require.Eventually(t, func() bool { return g.Stats().Underway == 0 }, patience, time.Millisecond)
	require.Empty(t, g.room.each)
}

// TestRoomLaw: no more are in than may be; a client that comes while no other has more than its share of the places
// finds one, as long as there is any; what is left is given back.
func TestRoomLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := room{most: rapid.IntRange(1, 20).Draw(t, "most"), each: map[string]int{}}
		in := map[string][]func(){}
		under := 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			who := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "who")
			if rapid.Bool().Draw(t, "leaves") && len(in[who]) > 0 {
				in[who][0]()
				in[who] = in[who][1:]
				under--
				continue
			}
			leave, all := r.enter(who)
			require.Equal(t, under == r.most, all)
			if leave == nil {
				require.True(t, all || len(in[who]) > 0, "a newcomer finds a place while there is one")
				continue
			}
			in[who] = append(in[who], leave)
			under++
			require.LessOrEqual(t, under, r.most)
			require.LessOrEqual(t, len(in[who]), max(1, r.most/2), "of one address")
		}
		for _, all := range in {
			for _, leave := range all {
				leave()
			}
		}
		require.Zero(t, r.under)
		require.Empty(t, r.each)
	})
}

// TestStatuses: each error of delivery has a status by what it says of the message: 503 is said of none that may have
// run, and 504 of no other.
func TestStatuses(t *testing.T) {
	for r := kith.Reason(1); r.Known(); r++ {
		f := failure(fmt.Errorf("at a node: %w", r.Err()), nil)
		require.Equal(t, kith.MayHaveRun(r.Err()), f.MayHaveRun, r)
		if f.status == 503 {
			require.False(t, f.MayHaveRun, r)
		}
		if f.status == 504 {
			require.True(t, f.MayHaveRun, r)
		}
		require.GreaterOrEqual(t, f.status, 400)
	}
	for kind, want := range map[kith.ErrorKind]int{kith.KindUnknown: 500, kith.KindInvalid: 400, kith.KindNotFound: 404,
		kith.KindConflict: 409, kith.KindDenied: 403, kith.KindUnavailable: 503, kith.KindExhausted: 429,
		kith.KindInternal: 500} {
		require.Equal(t, want, failure(kith.NewError("x", kind, "text"), nil).status, kind)
	}
	w := httptest.NewRecorder()
	WriteError(w, fmt.Errorf("trip: %w", kith.NewError("no-driver", kith.KindUnavailable, "no driver is free")))
	require.Equal(t, 503, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Equal(t, "true", w.Header().Get(RanHeader))
	require.JSONEq(t, `{"error":"no-driver","kind":"unavailable","text":"no driver is free","may_have_run":true}`,
		w.Body.String())
}

// TestDocument: it describes the calls that there are, and no others.
func TestDocument(t *testing.T) {
	h := open(t)
	_, s := serves(t, h, func(c *Config) {
		c.Types = []Type{{Region: h.region, Name: "a/b", Ask: true, Doc: "asks", MediaType: "application/json",
			Message: json.RawMessage(`{"type":"integer"}`),
			Once:    func(context.Context, *Call) ([]byte, error) { return nil, nil }},
			{Region: h.region, Tell: true}}
		c.Headers = []string{"X-Tenant"}
	})
	a, body := call(t, "GET", s.URL+"/v1/openapi.json", "")
	require.Equal(t, 200, a.StatusCode)
	var d struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Description string
			Parameters  []struct{ Name string }
			RequestBody struct {
				Content map[string]struct{ Schema map[string]string }
			}
			Responses map[string]any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	require.Equal(t, "3.1.0", d.OpenAPI)
	require.Len(t, d.Paths, 2)
	ask, tell := d.Paths["/v1/ask/a%2Fb/{id}"]["post"], d.Paths["/v1/tell/teller/{id}"]["post"]
	require.Equal(t, "asks", ask.Description)
	require.Equal(t, "integer", ask.RequestBody.Content["application/json"].Schema["type"])
	require.Len(t, ask.Parameters, 5)
	require.Contains(t, ask.Responses, "200")
	require.Len(t, tell.Parameters, 4)
	require.Contains(t, tell.Responses, "202")
	status, _, answer := fails(t, "POST", s.URL+"/v1/openapi.json", "")
	require.Equal(t, 405, status)
	require.Equal(t, "GET, HEAD", answer.Header.Get("Allow"))
}

// TestValidate tells all faults at once; the zero value exposes nothing and is in order.
func TestValidate(t *testing.T) {
	_, err := New(Config{})
	require.NoError(t, err)
	_, err = New(Config{Types: []Type{{}, {Message: json.RawMessage("{"), Ask: true}, {Tell: true,
		Once: func(context.Context, *Call) ([]byte, error) { return nil, nil }}}, Headers: []string{"a b"}, MaxBody: -1,
		Timeout: -1, MaxTimeout: 48 * time.Hour, BodyTime: -1, MaxCalls: -1})
	require.ErrorIs(t, err, kith.ErrBadConfig)
	for _, says := range []string{"has no Region", "neither asked nor told", "is there twice", "is no JSON",
		"cannot be asked", "no name of a header", "MaxBody", "Timeout is", "MaxTimeout", "BodyTime", "MaxCalls"} {
		require.ErrorContains(t, err, says)
	}
	_, err = New(Config{Types: make([]Type, MaxTypes+1), Headers: make([]string, MaxHeaders+1)})
	require.ErrorContains(t, err, "Types has 1025 entries")
	require.ErrorContains(t, err, "Headers has 65 names")
}

// TestStoppedNode: what reaches nobody may be tried again.
func TestStoppedNode(t *testing.T) {
	h := open(t)
	_, s := serves(t, h)
	_ = h.node.Close()
	for _, verb := range []string{"ask", "tell"} {
		status, f, _ := fails(t, "POST", s.URL+"/v1/"+verb+"/teller/e", "x")
		require.Equal(t, "503 unavailable", fmt.Sprint(status, " ", f.Code))
		require.False(t, f.MayHaveRun)
	}
}

// TestRepliesThatCannotBeWritten: a codec that refuses the reply says nothing of the message, which was handled.
func TestRepliesThatCannotBeWritten(t *testing.T) {
	ask := AskOf(func(context.Context, string, *int) (int, error) { return 1, nil }, kith.JSON[int](), refusing{})
	_, err := ask(t.Context(), &Call{Payload: []byte("1")})
	f := failure(err, nil)
	require.Equal(t, []any{500, "failed", true}, []any{f.status, f.Code, f.MayHaveRun})
}

// refusing is a codec that writes nothing.
type refusing struct{}

func (refusing) Append([]byte, *int) ([]byte, error) { return nil, kith.ErrBadPayload }
func (refusing) ParseInto([]byte, *int) error        { return kith.ErrBadPayload }

// TestTimeOfAFunction: a function in the place of an ask that returns the end of its context has not answered.
func TestTimeOfAFunction(t *testing.T) {
	h := open(t)
	_, s := serves(t, h, func(c *Config) {
		c.Types[0].AskBy = func(ctx context.Context, _ *Call) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
	})
	status, f, _ := fails(t, "POST", s.URL+"/v1/ask/teller/e?timeout=1ms", "x")
	require.Equal(t, "504 unknown", fmt.Sprint(status, " ", f.Code))
	require.True(t, f.MayHaveRun)
}

// TestSlowReaders: a client that does not read its reply is given up, and its place with it.
func TestSlowReaders(t *testing.T) {
	h := open(t)
	g, s := serves(t, h, func(c *Config) {
		c.BodyTime = 50 * time.Millisecond
		c.Types[0].AskBy = func(context.Context, *Call) ([]byte, error) { return make([]byte, 64<<20), nil }
	})
	nc, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer nc.Close()
	_, err = io.WriteString(nc, "POST /v1/ask/teller/e HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
	require.NoError(t, err)
	_, err = io.ReadFull(nc, make([]byte, 1)) // the answer has begun
	require.NoError(t, err)
	require.Eventually(t, func() bool { return g.Stats().Underway == 0 }, patience, time.Millisecond)
}
