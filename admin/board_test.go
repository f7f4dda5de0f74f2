// Tests of the board: shared by all watchers, idle without any, honest about silent nodes.

package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/peer"
)

// fake is a source that counts, and answers as it is set.
type fake struct {
	looks, reports atomic.Int64
	fail           atomic.Bool
	hang           atomic.Bool
	members        int
	shards         uint32
}

func (f *fake) look(ctx context.Context) (*snapshot, error) {
	f.looks.Add(1)
	switch {
	case f.hang.Load():
		<-ctx.Done()
		return nil, ctx.Err()
	case f.fail.Load():
		return nil, errors.New("refused")
	}
	return &snapshot{Health: health{State: kith.StateReady}, Total: f.members, Members: members{Self: "me#1"},
		Types: []typeState{{Name: "orders", Shards: f.shards}}}, nil
}

func (f *fake) report(_ context.Context, name string) (*report, error) {
	f.reports.Add(1)
	return &report{Name: name, Moves: make([]move, maxMoves+1)}, nil
}

func boardOf(sources map[string]*fake, names ...string) *board {
	return newBoard(func() []named {
		var list []named
		for _, n := range names {
			list = append(list, named{n, sources[n]})
		}
		return list
	})
}

func (b *board) state(t *testing.T) (s boardState) {
	t.Helper()
	text, _ := b.latest()
	data, is := strings.CutPrefix(strings.TrimSpace(string(text)), "event: board\ndata: ")
	require.True(t, is, "%.40q", text)
	require.NotContains(t, data, "\n")
	require.NoError(t, json.Unmarshal([]byte(data), &s))
	return s
}

// pass lets virtual time pass: all of these tests run in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// However many watch, the node is looked at twice a second, its types are surveyed once, and nobody costs nothing.
func TestBoardIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{members: 3, shards: 100}
		b := boardOf(map[string]*fake{"n1": f}, "n1")
		for range 50 {
			b.enter()
		}
		pass(10*time.Second + time.Millisecond)
		require.EqualValues(t, 21, f.looks.Load())
		require.EqualValues(t, 11, f.reports.Load())
		s := b.state(t)
		require.Equal(t, "n1", s.Nodes[0].Name)
		require.Equal(t, "me#1", s.Types[0].Asked)
		require.Equal(t, maxMoves+1, s.Types[0].Moving)
		require.Len(t, s.Types[0].Report.Moves, maxMoves)
		for range 50 {
			b.leave()
		}
		synctest.Wait()
		seen := f.looks.Load()
		pass(time.Minute)
		require.Equal(t, seen, f.looks.Load(), "nobody watches")
		b.enter() // what was known is shown at once, with its age, and then what is
		pass(time.Millisecond)
		require.Zero(t, b.state(t).Nodes[0].Age)
		b.leave()
	})
}

// Large clusters and types of very many shards are surveyed more seldom.
func TestSurveyEvery(t *testing.T) {
	require.Equal(t, time.Second, surveyEvery(5, 100))
	require.Equal(t, 3*time.Second, surveyEvery(100, 100))
	require.Equal(t, 4*time.Second, surveyEvery(50, 4096))
	require.Equal(t, mostSurvey, surveyEvery(1000, 1<<20))
}

// A node that refuses, one that hangs and one that is forgotten: the others are shown as ever, it with its last answer
// and its age, and a node that answers makes the survey.
func TestBoardOfSilentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := map[string]*fake{"n1": {}, "n2": {}, "n3": {}}
		names := []string{"n1", "n2", "n3"}
		var mu sync.Mutex
		b := newBoard(func() []named {
			mu.Lock()
			defer mu.Unlock()
			var list []named
			for _, n := range names {
				list = append(list, named{n, all[n]})
			}
			return list
		})
		all["n3"].hang.Store(true)
		b.enter()
		defer b.leave()
		pass(5 * time.Second)
		s := b.state(t)
		require.Nil(t, s.Nodes[2].Snapshot)
		require.Greater(t, s.Nodes[2].Age, 3.0)
		require.NotEmpty(t, s.Nodes[2].Error)
		require.LessOrEqual(t, all["n3"].looks.Load(), int64(3), "one request at a time")

		all["n1"].fail.Store(true)
		asked := all["n2"].reports.Load()
		pass(12 * time.Second)
		s = b.state(t)
		require.InDelta(t, 12, s.Nodes[0].Age, 1)
		require.NotNil(t, s.Nodes[0].Snapshot)
		require.Equal(t, "refused", s.Nodes[0].Error)
		require.Less(t, s.Nodes[1].Age, 0.6)
		require.Greater(t, all["n2"].reports.Load(), asked+5)

		all["n1"].fail.Store(false)
		mu.Lock()
		names = names[:2]
		mu.Unlock()
		pass(4 * time.Second)
		s = b.state(t)
		require.Len(t, s.Nodes, 2)
		require.Empty(t, s.Nodes[0].Error)
		require.Len(t, b.known, 2)
	})
}

// listener serves connections of net.Pipe, which hold nothing on their way: a client that does not read is noticed at
// once.
type listener struct{ conns chan net.Conn }

func (l listener) Accept() (net.Conn, error) {
	c, is := <-l.conns
	if !is {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l listener) Close() error { close(l.conns); return nil }
func (listener) Addr() net.Addr { return &net.UnixAddr{} }

// A reader that takes nothing for writeTime is cut off and gives its place back; one that reads goes on.
func TestSlowReaderIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := boardOf(map[string]*fake{"n1": {}}, "n1"), newCounters(spareConns)
		streams := &c.streams
		streams.init(2, writeTime)
		l := listener{make(chan net.Conn)}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { b.watch(w, q, streams) })}
		served := make(chan error)
		go func() { served <- s.Serve(l) }()
		open := func() *bufio.Reader {
			here, there := net.Pipe()
			l.conns <- there
			_, err := here.Write([]byte("GET /v1/watch HTTP/1.1\r\nHost: x\r\n\r\n"))
			require.NoError(t, err)
			r := bufio.NewReader(here)
			head, err := r.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "HTTP/1.1 200 OK\r\n", head)
			return r
		}
		open() // and reads no further
		reads := open()
		events := 0
		go func() {
			for {
				line, err := reads.ReadString('\n')
				if err != nil {
					return
				}
				if strings.HasPrefix(line, "event: board") {
					events++
				}
			}
		}()
		pass(writeTime - time.Second)
		require.Equal(t, 2, streams.open())
		pass(3 * time.Second)
		require.Equal(t, 1, streams.open(), "the slow one is gone")
		synctest.Wait() // for the counting goroutine
		require.InDelta(t, 2*(writeTime+2*time.Second).Seconds(), events, 2)
		require.NoError(t, s.Close())
		<-served
		synctest.Wait()
		require.Zero(t, streams.open())
	})
}

// A dashboard of two real nodes: its events are as described, and it outlives its nodes.
func TestDashboardOfNodes(t *testing.T) {
	a, sa := start(t, Config{})
	b, sb := start(t, Config{}, a.Addr().String())
	d := described(t)
	page, err := StartDashboard(DashboardConfig{Nodes: func() []DashboardNode {
		return []DashboardNode{{"n1", sa.Addr().String()}, {"n2", "http://" + sb.Addr().String() + "/"}, {"n3", "ftp://x"}}
	}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = page.Close(context.Background()) })
	status, _, _ := call(t, page, "GET", "/", "")
	require.Equal(t, 200, status)
	status, _, _ = call(t, page, "POST", "/v1/leave", "")
	require.NotEqual(t, 200, status)
	events := watches(t, page)
	schema := d.Paths["/v1/watch"]["get"].Responses["200"].Content["text/event-stream"].Schema
	var e map[string]any
	node := func(i int) map[string]any { return e["nodes"].([]any)[i].(map[string]any) }
	for e = range events {
		d.holds(t, "board", schema, e)
		require.Equal(t, "n2", node(1)["name"])
		require.Contains(t, node(2)["error"], "no address")
		types, nodes := e["types"].([]any), []any{}
		for _, t := range types {
			nodes = t.(map[string]any)["report"].(map[string]any)["nodes"].([]any)
		}
		if len(types) == 1 && len(nodes) == 2 {
			break
		}
	}
	self := func(i int) any { return node(i)["snapshot"].(map[string]any)["members"].(map[string]any)["self"] }
	require.Equal(t, []any{a.ID().String(), b.ID().String()}, []any{self(0), self(1)})
	require.NoError(t, sb.Close(context.Background()))
	for e = range events {
		if why, is := node(1)["error"].(string); is && why != "" {
			break
		}
	}
	require.Equal(t, b.ID().String(), self(1), "as it was last heard")
}

// watches opens a stream of boards; what nobody takes is dropped.
func watches(t *testing.T, s *Server) <-chan map[string]any {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr().String()+"/v1/watch", nil)
	require.NoError(t, err)
	a, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	require.Equal(t, 200, a.StatusCode)
	out := make(chan map[string]any)
	go func() {
		defer close(out)
		defer a.Body.Close()
		lines := bufio.NewScanner(a.Body)
		lines.Buffer(nil, maxAnswer)
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				v := map[string]any{}
				if json.Unmarshal([]byte(data), &v) != nil {
					return
				}
				select {
				case out <- v:
				case <-t.Context().Done():
					return
				}
			}
		}
	}()
	return out
}

// What another interface answers is bounded, and is not followed elsewhere.
func TestRemoteIsNotBelieved(t *testing.T) {
	var answer http.HandlerFunc
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { answer(w, q) }))
	defer s.Close()
	src := sourceAt(s.URL, noRedirect(nil))
	for what, h := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/elsewhere" {
				t.Error("the redirect was followed")
			}
			http.Redirect(w, q, "/elsewhere", http.StatusFound)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"status":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"too long": func(w http.ResponseWriter, _ *http.Request) { // else it would do
			_, _ = w.Write(append([]byte("{}"), bytes.Repeat([]byte(" "), maxAnswer-1)...))
		},
	} {
		answer = h
		_, err := src.look(t.Context())
		require.ErrorIs(t, err, errAnswer, what)
	}
	long := snapshot{Events: make([]happened, 9999), Rates: &rates{Times: make([]times, 99)}}
	long.Members.Members, long.Peers.Peers = make([]member, 9999), make([]peerInfo, 9999)
	answer = func(w http.ResponseWriter, _ *http.Request) { say(w, 200, long) }
	got, err := src.look(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{maxHistory, maxTimes, maxMembers, maxPeers}, []int{len(got.Events), len(got.Rates.Times),
		len(got.Members.Members), len(got.Peers.Peers)})
	asked := ""
	answer = func(w http.ResponseWriter, q *http.Request) { asked = q.RequestURI; say(w, 200, report{}) }
	_, err = src.report(t.Context(), "a/../b?shards=true#c")
	require.NoError(t, err)
	require.Equal(t, "/v1/types/a%2F..%2Fb%3Fshards=true%23c?timeout="+surveyTime.String(), asked, "a name is a name")
	for _, bad := range []string{"", "http://", "http://u:p@h", "h:1?x", "gopher://h"} {
		_, err := sourceAt(bad, nil).look(t.Context())
		require.Error(t, err, bad)
	}
}

// A dashboard's configuration says all that is wrong with it.
func TestDashboardConfig(t *testing.T) {
	err := DashboardConfig{Listen: "0.0.0.0:0", Streams: -1}.Validate()
	require.ErrorIs(t, err, ErrBadConfig)
	for _, what := range []string{"Nodes", "loopback", "Streams"} {
		require.ErrorContains(t, err, what)
	}
	_, err = StartDashboard(DashboardConfig{})
	require.ErrorIs(t, err, ErrBadConfig)
}

// TestTenureIsTold: which member holds which seat, and for how long it vouches for the node that answers (AVL-5).
func TestTenureIsTold(t *testing.T) {
	require.Nil(t, tenureOf(kith.TenureStats{}))
	holder := kith.ID{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 7}
	s := kith.TenureStats{On: true, Held: true, Left: time.Second,
		Seats: []kith.TenureSeat{{Holder: holder, Left: 2 * time.Second}, {}, {Holder: holder}}}
	text, err := json.Marshal(tenureOf(s))
	require.NoError(t, err)
	require.Contains(t, string(text),
		`"left_s":1,"least_s":0,"seats":[{"holder":"`+holder.String()+`","left_s":2},{"left_s":0},`)
	require.Equal(t, "its tenure is held, 1s are left; 1 of 3 seats vouch for this node, 1 are empty: seat 1, "+
		holder.String()+", vouches; seat 3, "+holder.String()+", does not vouch", s.String())
	s.Held, s.Why, s.Seats = false, "no seat has a holder yet", nil
	require.Equal(t, "it has no tenure: no seat has a holder yet", s.String())
}
