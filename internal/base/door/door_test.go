// Tests of the door: which connection goes when one more comes, and what requests may cost.

package door

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// opened is a server behind a door; its handler waits at /wait, and keeps its place at /keep, until it may go on.
type opened struct {
	*Door
	goOn chan struct{}
	seen chan string
}

func serve(t *testing.T, cfg Config) *opened {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := &opened{New(l, cfg), make(chan struct{}), make(chan string, 1000)}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/keep":
			defer Keep(q.Context())()
			fallthrough
		case "/wait":
			o.seen <- q.URL.Path
			<-o.goOn
		}
		_, _ = io.WriteString(w, "ok")
	})}
	o.Attach(s)
	over := make(chan error, 1)
	go func() { over <- s.Serve(o) }()
	t.Cleanup(func() {
		close(o.goOn)
		_ = s.Close()
		<-over
	})
	return o
}

// dial connects from one of the addresses of this machine, and says something.
func (o *opened) dial(t *testing.T, from, text string) net.Conn {
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", o.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	return c
}

// ask sends one request from an address and returns the status, 0 when there is no answer.
func (o *opened) ask(t *testing.T, from, path string) int {
	c := o.dial(t, from, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_ = a.Body.Close()
	return a.StatusCode
}

// stages counts the connections by how far they are.
func (o *opened) stages() map[stage]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := map[stage]int{}
	for c := range o.guests {
		n[c.stage]++
	}
	return n
}

func (o *opened) until(t *testing.T, want map[stage]int) {
	t.Helper()
	require.Eventually(t, func() bool { return fmt.Sprint(o.stages()) == fmt.Sprint(want) }, 20*time.Second,
		time.Millisecond, "%v", want)
}

// gone reports whether the other end has closed a connection.
func gone(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

// The newcomer takes the place of a silent one, then of one that has not finished to ask, then of an idle one, then of
// one with a request that has no place; never of one that is kept. Those from elsewhere do not suffer from a crowd.
func TestWhoGoes(t *testing.T) {
	o := serve(t, Config{Most: 5, FirstByte: time.Minute, Full: "HTTP/1.1 503 Full\r\n\r\n"})
	o.grace = 0 // nobody is fresh
	other := o.dial(t, "127.0.0.9", "")
	o.until(t, map[stage]int{silent: 1})
	first := o.dial(t, "127.0.0.1", "")
	o.until(t, map[stage]int{silent: 2})
	begun := o.dial(t, "127.0.0.1", "GET / HTTP/1.1\r\n")
	o.until(t, map[stage]int{silent: 2, speaking: 1})
	rests := o.dial(t, "127.0.0.1", "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	o.until(t, map[stage]int{silent: 2, speaking: 1, idle: 1})
	waits := o.dial(t, "127.0.0.1", "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, "/wait", <-o.seen)
	for n, goes := range []net.Conn{first, begun, rests, waits} {
		o.dial(t, "127.0.0.1", "GET /keep HTTP/1.1\r\nHost: x\r\n\r\n")
		require.Equal(t, "/keep", <-o.seen)
		if goes != rests { // it holds an answer
			gone(t, goes)
		}
		require.EqualValues(t, n+1, o.Stats().PutOut)
	}
	require.Equal(t, map[stage]int{silent: 1, kept: 4}, o.stages(), "that of the other address is still there")
	o.dial(t, "127.0.0.1", "GET /keep HTTP/1.1\r\nHost: x\r\n\r\n") // in place of the only one that is not kept
	require.Equal(t, "/keep", <-o.seen)
	gone(t, other)
	require.Equal(t, 503, o.ask(t, "127.0.0.1", "/"), "all are kept")
	require.EqualValues(t, 1, o.Stats().Refused)
}

// A client that asks at once is served, though silent and slow connections of the same address have taken all places,
// and come again.
func TestAskersAreServedInACrowd(t *testing.T) {
	o := serve(t, Config{Most: 16, FirstByte: time.Minute})
	for range 10 {
		for n := range 40 {
			o.dial(t, "127.0.0.1", []string{"", "GET / HT"}[n%2])
		}
		require.Equal(t, 200, o.ask(t, "127.0.0.1", "/"))
		require.Equal(t, 200, o.ask(t, "127.0.0.2", "/"))
	}
	require.Positive(t, o.Stats().PutOut)
	require.Zero(t, o.Stats().Refused)
}

// A connection with first bytes that nobody has read yet is none that says nothing: it stays, and a silent one goes.
func TestUnreadIsNotSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := &opened{Door: New(l, Config{Most: 3, FirstByte: time.Minute})}
	o.grace = 0 // nobody is fresh
	t.Cleanup(func() { _ = o.Close() })
	for n, text := range []string{"GET", "", "GET", "", ""} {
		c := o.dial(t, "127.0.0.1", text)
		defer c.Close()
		nc, err := o.Accept()
		require.NoError(t, err)
		defer nc.Close()
		if text != "" {
			require.Eventually(t, func() bool { return waits(nc.(*Conn).Conn) }, 20*time.Second, time.Millisecond, n)
		}
	}
	o.until(t, map[stage]int{silent: 1, speaking: 2})
}

// A newcomer with a request that is still on its way, while all others have begun one and come again and again, has
// time for it: nobody goes while all are fresh and there is room for as many again, then the oldest of those that are
// more.
func TestNewcomersHaveTime(t *testing.T) {
	o := serve(t, Config{Most: 8, FirstByte: time.Minute})
	o.grace = time.Hour
	for range 8 {
		o.dial(t, "127.0.0.1", "GET / HT")
	}
	o.until(t, map[stage]int{speaking: 8})
	probe := o.dial(t, "127.0.0.1", "")
	o.until(t, map[stage]int{silent: 1, speaking: 8})
	for n := range 14 { // one behind the other: one of which nothing was read yet is silent, too
		o.dial(t, "127.0.0.1", "GET / HT")
		require.Eventually(t, func() bool { return int(o.Stats().PutOut) == max(0, n-6) }, 20*time.Second, time.Millisecond)
		o.until(t, map[stage]int{silent: 1, speaking: min(9+n, 15)})
	}
	_, err := io.WriteString(probe, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	a, err := http.ReadResponse(bufio.NewReader(probe), nil)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	require.Equal(t, 200, a.StatusCode)
}

// When those that were fresh have had their time, two go for each newcomer until there are no more than may be.
func TestTooManyShrink(t *testing.T) {
	o, accept, _ := accepted(t, 4)
	for range 7 {
		accept("")
	}
	require.Equal(t, 7, o.Stats().Open)
	o.grace = 0
	for _, want := range []int{6, 5, 4, 4} {
		accept("")
		require.Equal(t, want, o.Stats().Open)
	}
}

// accepted is a door of so many places in front of no server: nobody reads what its connections say.
func accepted(t *testing.T, most int) (o *opened, accept func(text string) *Conn, in func(*Conn) bool) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o = &opened{Door: New(l, Config{Most: most, FirstByte: time.Minute})}
	o.grace = time.Hour // all are fresh
	t.Cleanup(func() { _ = o.Close() })
	accept = func(text string) *Conn {
		o.dial(t, "127.0.0.1", text)
		nc, err := o.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { _ = nc.Close() })
		if text != "" {
			require.Eventually(t, func() bool { return waits(nc.(*Conn).Conn) }, 20*time.Second, time.Millisecond)
		}
		return nc.(*Conn)
	}
	return o, accept, func(c *Conn) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		_, in := o.guests[c]
		return in
	}
}

// A probe that is accepted together with a crowd stays, though nobody has come to read its request: those that rest
// between two requests and those that are as new and have said nothing go first.
func TestProbesAcceptedWithACrowd(t *testing.T) {
	o, accept, in := accepted(t, 8)
	probe := accept("GET")
	rests := accept("")
	rests.move(idle)
	for range 40 {
		accept("")
	}
	require.False(t, in(rests))
	require.True(t, in(probe))
	require.EqualValues(t, 26, o.Stats().PutOut)
}

// An idle connection with a next request that nobody has read yet is none: another one goes.
func TestUnreadIsNotIdle(t *testing.T) {
	_, accept, in := accepted(t, 1)
	asks, rests := accept("GET"), accept("")
	asks.move(idle)
	rests.move(idle)
	accept("")
	require.True(t, in(asks))
	require.False(t, in(rests))
}

// What a stranger may say before its first request is bounded; afterwards it may say more.
func TestFirstBytes(t *testing.T) {
	o := serve(t, Config{Most: 100, FirstByte: time.Minute, FirstBytes: 1000})
	long := "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 1000) + "\r\n\r\n"
	text, err := io.ReadAll(o.dial(t, "127.0.0.1", long))
	require.NotContains(t, string(text), "200", "%v", err)
	c := o.dial(t, "127.0.0.1", "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	r := bufio.NewReader(c)
	for range 2 {
		a, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		require.Equal(t, 200, a.StatusCode)
		_, err = io.Copy(io.Discard, a.Body)
		require.NoError(t, err)
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 3000)+"\r\n\r\n")
		require.NoError(t, err)
	}
}

// A connection that says nothing is closed soon, one that has asked something is not.
func TestSilentOnesAreClosed(t *testing.T) {
	o := serve(t, Config{Most: 100, FirstByte: 50 * time.Millisecond})
	rests := o.dial(t, "127.0.0.1", "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	for range 10 {
		gone(t, o.dial(t, "127.0.0.1", ""))
	}
	require.EqualValues(t, 10, o.Stats().Silent)
	_, err := io.WriteString(rests, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	text, err := io.ReadAll(rests)
	require.NoError(t, err)
	require.Contains(t, string(text), "Connection: close")
	require.Eventually(t, func() bool { return o.Stats().Open == 0 }, 20*time.Second, time.Millisecond)
}

// Addresses of one network of IPv6 are one visitor, and so are the two ways to write one of IPv4.
func TestVisitor(t *testing.T) {
	for from, want := range map[string]string{"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1",
		"2001:db8::1":       "2001:db8::",
		"2001:db8:0:0:9::7": "2001:db8::", "fe80::1": "fe80::1"} {
		require.Equal(t, netip.MustParseAddr(want), Visitor(netip.MustParseAddr(from)), from)
	}
}

// Places are bounded, of one address to half of them, and given back; a connection in one is kept.
func TestPlaces(t *testing.T) {
	g := NewGate(Limits{Rate: 1000, Places: 4})
	from := func(n int) *http.Request {
		q := httptest.NewRequest("GET", "/", nil)
		q.RemoteAddr = fmt.Sprintf("10.0.0.%d:1", n)
		return q
	}
	var leave []func()
	for n, want := range []bool{true, true, false} {
		f, ok := g.Enter(from(1))
		require.Equal(t, want, ok, n)
		leave = append(leave, f)
	}
	for n, want := range map[int]bool{2: true} {
		_, ok := g.Enter(from(n))
		require.Equal(t, want, ok)
	}
	_, ok := g.Enter(from(3))
	require.True(t, ok)
	_, ok = g.Enter(from(4))
	require.False(t, ok, "all are taken")
	leave[0]()
	leave[1]()
	_, ok = g.Enter(from(4))
	require.True(t, ok)
	require.EqualValues(t, 2, g.Refused())
	require.Len(t, g.each, 3)
}

// As many requests go on at once as come in a second; those beyond wait, and none for longer than it may.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Limits{Rate: 10})
		q := httptest.NewRequest("GET", "/", nil)
		began := time.Now()
		for range 11 {
			require.True(t, g.Pass(q))
		}
		require.Equal(t, began, time.Now(), "at once")
		var passed atomic.Int64
		for range 40 {
			go func() {
				if g.Pass(q) {
					passed.Add(1)
				}
			}()
		}
		<-time.After(500*time.Millisecond + time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 5, passed.Load())
		require.EqualValues(t, 30, g.Refused(), "who would have to wait for longer than a second")
		over, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.False(t, g.Pass(q.WithContext(over)))
		<-time.After(time.Minute)
		require.EqualValues(t, 10, passed.Load())
	})
}

// Work is done one at a time, and nothing is worked on for so many times as long as it took.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Limits{Rate: 1, Rest: 3})
		done, err := g.Work(t.Context())
		require.NoError(t, err)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = g.Work(over)
		require.ErrorIs(t, err, context.Canceled)
		<-time.After(10 * time.Millisecond) // this is the work
		done()
		done()
		began := time.Now()
		next, err := g.Work(t.Context())
		require.NoError(t, err)
		require.Equal(t, 30*time.Millisecond, time.Since(began))
		next()
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		done, err = g.Work(soon)
		require.NoError(t, err, "what took no time is followed by no rest")
		<-time.After(10 * time.Millisecond)
		done()
		_, err = g.Work(soon)
		require.Error(t, err)
		require.Empty(t, g.work)
	})
}
