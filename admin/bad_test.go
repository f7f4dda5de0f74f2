// Tests of bad input: every route that is described gets what it must refuse, and slow and idle clients are bounded.

package admin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/logs/logstest"
	"github.com/kith-io/kith/internal/base/pki"
)

// refused is an answer that says why, as all errors do.
func refused(t *testing.T, where string, body []byte) string {
	t.Helper()
	var p problem
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&p), "%s: %s", where, body)
	require.NotEmpty(t, p.Error, where)
	return p.Error
}

// impatient gives up on what is a stream where an error was due.
var impatient = &http.Client{Timeout: 20 * time.Second}

// asks sends one request with a body and a Host of its own.
func asks(t *testing.T, s *Server, method, path, auth, host string, body io.Reader) (int, []byte, http.Header) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, body)
	require.NoError(t, err)
	q.Header.Set("Authorization", auth)
	q.Host = host
	a, err := impatient.Do(q)
	require.NoError(t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return a.StatusCode, text, a.Header
}

// some is a path of the description with names that there are not.
func some(path string) string {
	return strings.NewReplacer("{addr}", "10.9.9.9:1", "{name}", "nothing").Replace(path)
}

// Every route that is described refuses every method that is not, a query and a body that cannot be read, a body that
// is too large, another's name, and, where it changes something, a caller without the token or with a wrong one, and
// any parameter that it does not know. Each answer says why, each is counted, and nothing has changed.
func TestBadInputToEveryRoute(t *testing.T) {
	n, s := start(t, Config{Token: token, Metrics: http.NotFoundHandler()})
	d, bearer, before := described(t), "Bearer "+token, *n.View()
	chunked := func(size int) io.Reader { return io.MultiReader(strings.NewReader(strings.Repeat("x", size))) }
	for path, ops := range d.Paths {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if _, is := ops[strings.ToLower(method)]; is {
				continue
			}
			status, body, head := asks(t, s, method, some(path), bearer, "", nil)
			require.Equal(t, 405, status, "%s %s", method, path)
			require.NotEmpty(t, head.Get("Allow"), "%s %s", method, path)
			refused(t, method+" "+path, body)
		}
		for method, op := range ops {
			method, changes := strings.ToUpper(method), len(op.Security) > 0
			is := func(want int, path, auth, host string, body io.Reader) {
				t.Helper()
				status, text, head := asks(t, s, method, some(path), auth, host, body)
				require.Equal(t, want, status, "%s %s: %s", method, path, text)
				require.Equal(t, "application/json", head.Get("Content-Type"), path)
				require.Equal(t, "nosniff", head.Get("X-Content-Type-Options"), path)
				refused(t, path, text)
			}
			for _, query := range []string{"?a=%zz", "?a;b", "?%", "?a=1&%g=2"} {
				is(400, path+query, bearer, "", nil)
			}
			is(413, path, bearer, "", strings.NewReader(strings.Repeat("x", maxBody+1)))
			is(413, path, bearer, "", chunked(maxBody+1))
			is(421, path, bearer, "evil.example", nil)
			is(421, path, bearer, "evil.example:7626", nil)
			if changes {
				for _, auth := range []string{"", "Bearer", "Bearer ", "Bearer " + token + "x", "Basic " + token, token} {
					is(401, path, auth, "", nil)
				}
				is(400, path+"?nonsense=1", bearer, "", nil)
			}
		}
	}
	require.Equal(t, before.Members, n.View().Members)
	require.Eventually(t, func() bool { return n.Health().Ready() }, 2*time.Minute, time.Millisecond)
	count := s.Stats()
	require.Positive(t, count.HostsRefused)
	require.Positive(t, count.TokensRefused)
	require.Positive(t, count.BadRequests)
	require.Zero(t, count.Streams)
	var c struct {
		Admin struct {
			HostsRefused uint64 `json:"hosts_refused"`
		}
	}
	status, body, _ := call(t, s, "GET", "/v1/stats", "")
	require.Equal(t, 200, status)
	require.NoError(t, json.Unmarshal(body, &c))
	require.Equal(t, count.HostsRefused, c.Admin.HostsRefused)
}

// Every parameter that is described refuses what is no value of it, and every name in a path that there is not.
func TestBadParameters(t *testing.T) {
	_, s := start(t, Config{Token: token, Join: func(context.Context, []string) error { return kith.ErrBadConfig }})
	var d struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Required bool
			}
		}
	}
	require.NoError(t, json.Unmarshal(openAPI, &d))
	good := map[string]string{"name": "orders", "shard": "1", "to": "10.9.9.9:1", "id": "x"}
	bad := []string{"%00", "%FF", "..", "%1b%5b2J", "-1", "1e9", "99999999999999999999", strings.Repeat("x", 4000),
		"%E2%80%AE", "'\"<script>"}
	tried := 0
	for path, ops := range d.Paths {
		for method, op := range ops {
			for _, p := range op.Parameters {
				values := append(bad, map[bool]string{true: "", false: "nonsense"}[p.In == "query" && p.Required])
				if p.Name == "id" { // any bytes are one, up to 1,024
					values = []string{"", strings.Repeat("x", 1025)}
				}
				for _, value := range values {
					where, query := path, []string{}
					for _, other := range op.Parameters {
						v, is := good[other.Name]
						if other.Name == p.Name {
							v, is = value, true
						}
						switch {
						case !is:
						case other.In == "path":
							where = strings.ReplaceAll(where, "{"+other.Name+"}", strings.ReplaceAll(v, "..", "%2e%2e"))
						default:
							query = append(query, other.Name+"="+v)
						}
					}
					status, body, _ := call(t, s, strings.ToUpper(method), where+"?"+strings.Join(query, "&"), "Bearer "+token)
					require.Contains(t, []int{400, 404}, status, "%s %s %s=%q: %s", method, where, p.Name, value, body)
					why := refused(t, where, body)
					require.Less(t, len(why), 300, "%s of %s", p.Name, path)
					tried++
				}
			}
		}
	}
	require.Greater(t, tried, 60)
	for path, want := range map[string]int{"/v1/types/orders/move?shard=1&shard=2&to=a:1": 400, "/v1/join": 400,
		"/v1/join?seeds=a:1": 400, "/v1/join?" + strings.Repeat("seeds=a:1&", maxSeeds+1): 400} {
		status, body, _ := call(t, s, "POST", path, "Bearer "+token)
		require.Equal(t, want, status, "%s: %s", path, body)
	}
}

// On loopback without TLS a name of somebody else's is refused wherever it leads, a configured one is not; elsewhere
// any name will do, as of a service that Prometheus asks (SEC-1).
func TestOtherNames(t *testing.T) {
	var log logstest.Text
	n, s := start(t, Config{Hosts: []string{"n1.test"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for host, want := range map[string]int{"n1.test": 200, "N1.test:1": 200, "localhost:7626": 200, "10.1.1.1:7626": 200,
		"[::1]:7626": 200, "evil.example": 421, "n1.test.evil.example:7626": 421} {
		for _, path := range []string{"/health/ready", "/v1/members", "/", "/page/main.js", "/openapi.json"} {
			status, body, _ := asks(t, s, "GET", path, "", host, nil)
			require.Equal(t, want, status, "%s as %s: %.200s", path, host, body)
			if want == 421 {
				require.Contains(t, refused(t, host, body), host)
				require.NotContains(t, string(body), n.ID().String())
			}
		}
	}
	require.EqualValues(t, 10, s.Stats().HostsRefused)
	require.Equal(t, 1, strings.Count(log.String(), "event=admin-refused"), "one line a second: %s", log.String())
	_, open := start(t, Config{Token: token})
	wide, err := Start(n, Config{Listen: "0.0.0.0:0", Insecure: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = wide.Close(context.Background()) })
	_, port, err := net.SplitHostPort(wide.Addr().String())
	require.NoError(t, err)
	q, err := http.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1:"+port+"/health/ready", nil)
	require.NoError(t, err)
	q.Host = "kith.default.svc:7626"
	a, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	require.Equal(t, 200, a.StatusCode)
	board, err := StartDashboard(DashboardConfig{Nodes: func() []DashboardNode { return nil }, Hosts: []string{"b.test"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = board.Close(context.Background()) })
	for host, want := range map[string]int{"b.test": 200, "n1.test": 421} {
		status, _, _ := asks(t, board, "GET", "/", "", host, nil)
		require.Equal(t, want, status, host)
	}
	status, _, _ := asks(t, open, "POST", "/v1/leave", "Bearer "+token, "evil.example", nil)
	require.Equal(t, 421, status, "not even with the token")
}

// hurried are limits of a server that a test does not want to wait for.
var hurried = limits{header: 100 * time.Millisecond, read: 200 * time.Millisecond, write: 200 * time.Millisecond,
	idle: 200 * time.Millisecond, spare: 8}

// served serves a node within limits.
func served(t *testing.T, n *kith.Node, cfg Config, most limits) *Server {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	s, err := open(n, cfg, most)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// Clients that drip a header, stop within one, drip a body, say nothing, or never read what they asked for lose their
// connections, and cost nothing after that; one that behaves is answered meanwhile.
func TestSlowClients(t *testing.T) {
	n, _ := start(t, Config{})
	s := served(t, n, Config{}, hurried)
	dial := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	drip := func(first, again string) {
		c := dial()
		_, err := io.WriteString(c, first)
		require.NoError(t, err)
		over := make(chan struct{})
		go func() { // until it is cut off
			defer close(over)
			for again != "" {
				if _, err := io.WriteString(c, again); err != nil {
					return
				}
				runtime.Gosched()
			}
		}()
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
		<-over
	}
	drip("GET /v1/members HTTP/1.1\r\nHost: localhost\r\nX: ", "")
	drip("GET /v1/members HTTP/1.1\r\nHost: localhost\r\nX: ", "y")
	drip("", "")
	head := "POST /v1/leave HTTP/1.1\r\nHost: localhost\r\n"
	drip(head+"Content-Length: 4000\r\n\r\nx", "")
	drip(head+"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", "")
	deaf := func(path string) {
		c := dial()
		require.NoError(t, c.(*net.TCPConn).SetReadBuffer(1<<10))
		ask := strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n", 50)
		for { // more requests than answers find room, until it is cut off
			if _, err := io.WriteString(c, ask); err != nil {
				return
			}
			status, _, _ := call(t, s, "GET", "/health/ready", "")
			require.Equal(t, 200, status)
		}
	}
	deaf("/openapi.json")
	deaf("/page/uplot.js")
	deaf("/v1/stats")
	http.DefaultClient.CloseIdleConnections()
	require.Eventually(t, func() bool { return s.Stats().Connections == 0 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return n.Health().Ready() }, 2*time.Minute, time.Millisecond)
}

// A thousand idle streams of each kind: as many as are allowed stay, the others get the reason, all are counted; probes
// are answered meanwhile. When they close, places, goroutines and memory are given back.
func TestThousandIdleStreams(t *testing.T) {
	const many = 1000
	for name, allowed := range map[string]int{"default": 0, "all": many} {
		t.Run(name, func(t *testing.T) {
			n, _ := start(t, Config{})
			s := served(t, n, Config{Streams: allowed}, usual)
			most := allowed
			if most == 0 {
				most = DefaultStreams
			}
			goroutines, memory := runtime.NumGoroutine(), heap()
			paths := []string{"/v1/events", "/v1/shard-events", "/v1/watch"}
			var conns []net.Conn
			open := 0
			for i := range many {
				c, err := net.Dial("tcp", s.Addr().String())
				require.NoError(t, err)
				conns = append(conns, c)
				_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", paths[i%len(paths)])
				require.NoError(t, err)
				a, err := http.ReadResponse(bufio.NewReaderSize(c, 512), nil)
				require.NoError(t, err)
				if a.StatusCode == http.StatusOK {
					open++
					continue
				}
				require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
				require.NotEmpty(t, a.Header.Get("Retry-After"))
				text, err := io.ReadAll(a.Body)
				require.NoError(t, err)
				refused(t, "one stream too many", text)
			}
			require.Equal(t, most, open)
			count := s.Stats()
			require.Equal(t, most, count.Streams)
			require.EqualValues(t, many-most, count.StreamsRefused+count.ConnectionsRefused)
			for _, path := range []string{"/health/alive", "/health/ready", "/v1/members"} {
				status, _, _ := call(t, s, "GET", path, "")
				require.Equal(t, 200, status, path)
			}
			require.Less(t, runtime.NumGoroutine(), goroutines+8*most+64)
			require.Less(t, heap(), memory+uint64(most)*(96<<10)+(8<<20), "bytes of each stream")
			for _, c := range conns {
				require.NoError(t, c.Close())
			}
			http.DefaultClient.CloseIdleConnections()
			require.Eventually(t, func() bool {
				return s.Stats().Streams == 0 && s.Stats().Connections == 0 && runtime.NumGoroutine() < goroutines+16
			}, time.Minute, time.Millisecond)
			conns = nil
			require.Less(t, heap(), memory+(8<<20))
		})
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Connections have a bound of their own, above that of streams. A newcomer takes the place of a silent or idle one of
// any address; a connection with a request under way stays, and the newcomer gets an error.
func TestConnectionsAreBounded(t *testing.T) {
	n, _ := start(t, Config{})
	most := usual
	most.spare = 3
	s := served(t, n, Config{Streams: 1}, most)
	dial := func(say string) net.Conn {
		c, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, say)
		require.NoError(t, err)
		return c
	}
	for range 400 {
		dial("")
	}
	require.Eventually(t, func() bool { return s.Stats().ConnectionsPutOut >= 392 }, time.Minute, time.Millisecond)
	for _, path := range []string{"/health/ready", "/health/alive", "/health/started", "/v1/members"} {
		status, _, _ := call(t, s, "GET", path, "")
		require.Equal(t, 200, status, path)
		dial("GET / HTTP/1.1\r\nHost: ")
	}
	require.LessOrEqual(t, s.Stats().Connections, 8, "twice as many while all are fresh")
	require.Zero(t, s.Stats().ConnectionsRefused)
	http.DefaultClient.CloseIdleConnections()
}

// A reader of another address finds a place for its stream, though one address has them all; a further one of that
// address does not.
func TestStreamsAreShared(t *testing.T) {
	n, _ := start(t, Config{})
	s := served(t, n, Config{Streams: 4}, usual)
	open := func(from string) (int, *bufio.Reader) {
		d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.DialContext(t.Context(), "tcp", s.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		r := bufio.NewReader(c)
		a, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		return a.StatusCode, bufio.NewReader(a.Body)
	}
	_, first := open("127.0.0.1")
	for range 3 {
		status, _ := open("127.0.0.1")
		require.Equal(t, 200, status)
	}
	status, _ := open("127.0.0.1")
	require.Equal(t, 503, status)
	for range 2 {
		status, _ = open("127.0.0.2")
		require.Equal(t, 200, status)
	}
	_, err := io.Copy(io.Discard, first)
	require.NoError(t, err, "the oldest has ended")
	status, _ = open("127.0.0.2")
	require.Equal(t, 503, status, "both have two now")
	require.EqualValues(t, 2, s.Stats().StreamsPutOut)
	require.EqualValues(t, 2, s.Stats().StreamsRefused)
	require.Equal(t, 4, s.Stats().Streams)
}

// Readers that ask again and again have their answers made one at a time, and so many at a time and no more; a slow one
// holds nobody up, and probes are answered whatever they do.
func TestReadersHaveAShare(t *testing.T) {
	n, _ := start(t, Config{})
	holds, goOn := make(chan struct{}, 1), make(chan struct{})
	s := served(t, n, Config{Token: token, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case holds <- struct{}{}:
		default:
		}
		<-goOn
		_, _ = io.WriteString(w, "# metrics")
	})}, usual)
	statuses := make(chan int, 100)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range cap(statuses) {
		go func() {
			a, err := client.Get("http://" + s.Addr().String() + "/metrics")
			if err != nil {
				statuses <- 0
				return
			}
			_ = a.Body.Close()
			statuses <- a.StatusCode
		}()
	}
	<-holds
	for range cap(statuses) - mostReads/2 {
		require.Equal(t, 503, <-statuses, "those of one address have half of the places")
	}
	for range 20 {
		status, _, _ := call(t, s, "GET", "/health/ready", "")
		require.Equal(t, 200, status)
	}
	status, _, _ := call(t, s, "POST", "/v1/rebalancing/pause", "Bearer "+token)
	require.Equal(t, 200, status, "who has the token needs no place")
	close(goOn)
	for range mostReads / 2 {
		require.Equal(t, 200, <-statuses)
	}
	require.EqualValues(t, cap(statuses)-mostReads/2, s.Stats().RequestsRefused)
}

// A stream without events outlives the time for writing one, with TLS and without. Nobody gets HTTP/2, which would make
// one connection any number of requests.
func TestQuietStreamLives(t *testing.T) {
	n, _ := start(t, Config{})
	dir := t.TempDir()
	require.NoError(t, pki.ThrowAway(dir, []string{kith.ClusterURI("kith")}, []string{"127.0.0.1"}, "n"))
	pair, err := tls.LoadX509KeyPair(pki.Paths(dir, "n"))
	require.NoError(t, err)
	own := &tls.Config{Certificates: []tls.Certificate{pair}}
	for proto, secure := range map[string]*tls.Config{"plain": nil, "tls": own} {
		s := served(t, n, Config{TLS: secure}, hurried)
		scheme, client := "http://", http.DefaultClient
		if secure != nil {
			scheme, client = "https://", &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		}
		q, err := http.NewRequestWithContext(t.Context(), "GET", scheme+s.Addr().String()+"/v1/shard-events", nil)
		require.NoError(t, err)
		a, err := client.Do(q)
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1", a.Proto, proto)
		text := bufio.NewReader(a.Body)
		until := func(what string) {
			for {
				line, err := text.ReadString('\n')
				require.NoError(t, err, "%s %s", proto, what)
				if strings.Contains(line, what) {
					return
				}
			}
		}
		until("begin")
		quiet := make(chan struct{})
		time.AfterFunc(3*hurried.write, func() { close(quiet) })
		<-quiet
		_, err = n.Regions()[0].Ask(t.Context(), proto, nil)
		require.NoError(t, err)
		until("shard-allocated")
		require.NoError(t, a.Body.Close())
	}
}
