// Conformance: the reference's scenarios of its management routes, with their values, under the names of ours.

package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// F-M5: members h1 Up, h2 Joining, and h3, which h1 and h2 hold unreachable. Here unreachable is of the member itself,
// the oldest is the one with the lowest up-number, and an identity has the incarnation in it.
func TestConformanceMembersJSON(t *testing.T) {
	id := func(host string, inc uint64) peer.ID { return peer.ID{Addr: peer.MustAddr(host + ":3311"), Inc: inc} }
	h1, h2, h3 := id("h1", 1), id("h2", 2), id("h3", 3)
	roles := []string{"dc-one"}
	text, err := json.Marshal(membersOf(&kith.View{Self: h1, ClusterID: 7, Leader: h1, Members: []kith.Member{
		{ID: h1, Status: kith.Up, UpNumber: 1, Roles: roles}, {ID: h2, Status: kith.Joining, Roles: roles},
		{ID: h3, Status: kith.Up, UpNumber: 2, Roles: roles}}, Unreachable: peer.SetOf(h3),
		Accusations: []cluster.Accusation{{Observer: h1, Subject: h3}, {Observer: h2, Subject: h3}}}))
	require.NoError(t, err)
	require.JSONEq(t, `{"self":"h1:3311#1","cluster":"0000000000000007","leader":"h1:3311#1","converged":false,"up":2,
		"members":[
		{"id":"h1:3311#1","addr":"h1:3311","status":"up","up_number":1,"roles":["dc-one"],"reachable":true},
		{"id":"h2:3311#2","addr":"h2:3311","status":"joining","roles":["dc-one"],"reachable":true},
		{"id":"h3:3311#3","addr":"h3:3311","status":"up","up_number":2,"roles":["dc-one"],"reachable":false,
		"accused_by":["h1:3311#1","h2:3311#2"]}]}`, string(text))
	text, err = json.Marshal(membersOf(&kith.View{Self: h1}))
	require.NoError(t, err)
	require.JSONEq(t, `{"self":"h1:3311#1","cluster":"0000000000000000","converged":false,"up":0,"members":[]}`,
		string(text), "no leader is none")
}

// nodeOf starts a node of a configuration and serves it.
func nodeOf(t *testing.T, node kith.Config, cfg Config) (*kith.Node, *Server) {
	t.Helper()
	n, err := kith.Start(t.Context(), node)
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	cfg.Listen = "127.0.0.1:0"
	s, err := Start(n, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return n, s
}

// F-M5: members are found by address and by identity, IPv6 in brackets too, and nothing else is; what would change
// something is refused where that is not allowed. Addresses here have neither scheme nor system, and each operation has
// a route of its own, so that there is no `operation` to be misspelt.
func TestConformanceMemberRoutes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	long := map[string]string{"hostname.com:3311": "HostName.com:3311", "[::1]:3311": "[0:0:0:0:0:0:0:1]:3311"}
	for _, name := range []string{"hostname.com:3311", "[::1]:3311"} {
		n, s := nodeOf(t, kith.Config{Advertise: name}, Config{})
		require.NoError(t, n.Ready(ctx))
		for path, want := range map[string]int{name: 200, url.PathEscape(name): 200, url.PathEscape(n.ID().String()): 200,
			long[name]: 200, url.PathEscape(long[name] + strings.TrimPrefix(n.ID().String(), name)): 200,
			"unknown:3311": 404, "pekko://Main@" + name: 404, "Main@" + name: 404, name + "%231": 404} {
			status, body, _ := call(t, s, "GET", "/v1/members/"+path, "")
			require.Equal(t, want, status, path)
			require.Contains(t, string(body), map[int]string{200: `"addr":"` + name + `"`, 404: `"error":"`}[want])
		}
		for _, method := range []string{"POST", "DELETE", "PUT"} {
			status, _, _ := call(t, s, method, "/v1/members/"+name, "")
			require.Equal(t, http.StatusMethodNotAllowed, status, method)
		}
		status, _, _ := call(t, s, "POST", "/v1/members/"+name+"/down", "")
		require.Equal(t, http.StatusForbidden, status, "this interface is for reading only")
		require.Eventually(t, func() bool { return n.Health().Ready() }, 2*time.Minute, time.Millisecond)
	}

	a, s := nodeOf(t, kith.Config{}, Config{Token: token, Join: func(context.Context, []string) error { return nil }})
	require.NoError(t, a.Ready(ctx))
	b, _ := nodeOf(t, kith.Config{Seeds: []string{a.Addr().String()}}, Config{})
	require.NoError(t, b.Ready(ctx))
	bearer := "Bearer " + token
	for path, want := range map[string]int{"/v1/members/" + b.Addr().String() + "/join": 404, "/v1/join": 400,
		"/v1/join?operation=join": 400, "/v1/members/unknown:3311/down": 404} {
		status, body, _ := call(t, s, "POST", path, bearer)
		require.Equal(t, want, status, path)
		refused(t, path, body)
	}
	require.NoError(t, b.Err())
	status, body, _ := call(t, s, "POST", "/v1/members/"+b.Addr().String()+"/down", bearer)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"message":"downed `+b.Addr().String()+`"}`, string(body))
	<-b.Done()
}

// F-M6: a stream of the kind MemberUp of a running node is 200 and text/event-stream, and its first event is that this
// node is up; then those that come up follow, and nothing else. Stricter: a kind that there is not is 400, where the
// reference passes over it, and without kinds the stream begins with one snapshot in place of an event each.
func TestConformanceEventStream(t *testing.T) {
	a, s := start(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.Addr().String()+"/v1/events?kind=member-up", nil)
	require.NoError(t, err)
	raw, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer raw.Body.Close()
	require.Equal(t, 200, raw.StatusCode)
	require.Equal(t, "text/event-stream", raw.Header.Get("Content-Type"))
	first, err := bufio.NewReader(raw.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "event: member-up\n", first)

	all, stop := reads(t, s, "/v1/events")
	defer stop()
	require.Equal(t, "snapshot", (<-all)["kind"])
	events, stop := reads(t, s, "/v1/events?kind=member-up&kind=member-downed")
	defer stop()
	b, _ := start(t, Config{}, a.Addr().String())
	for _, n := range []*kith.Node{a, b} {
		e := <-events
		require.Equal(t, "member-up", e["kind"])
		require.Equal(t, n.ID().String(), e["member"].(map[string]any)["id"])
		require.Equal(t, "up", e["member"].(map[string]any)["status"])
	}
	require.NoError(t, a.Down(ctx, b.Addr().String()))
	require.Equal(t, "member-downed", (<-events)["kind"])
	for _, bad := range []string{"MemberUp", "event-0", "event-200", "", "member-up&kind=nonsense",
		strings.Repeat("member-up&kind=", 64) + "member-up"} {
		status, body, _ := call(t, s, "GET", "/v1/events?kind="+bad, "")
		require.Equal(t, 400, status, bad)
		refused(t, bad, body)
	}
}

// A stream of some kinds begins with what is, as events of these kinds.
func TestStandingAsEvents(t *testing.T) {
	at := func(n uint64) peer.ID { return peer.ID{Addr: peer.MustAddr("h:1"), Inc: n} }
	v := &kith.View{Leader: at(2), Unreachable: peer.SetOf(at(3))}
	for i, s := range []kith.Status{kith.Joining, kith.Up, kith.Up, kith.WeaklyUp, kith.Leaving, kith.Exiting, kith.Down,
		kith.PreparingForShutdown, kith.ReadyForShutdown} {
		v.Members = append(v.Members, kith.Member{ID: at(uint64(i) + 1), Status: s})
	}
	e := kith.Event{View: v, Missed: true}
	told := func(kinds ...string) (list []string) {
		w := httptest.NewRecorder()
		set, ok := kindsOf(w, httptest.NewRequest("GET", "/?kind="+strings.Join(kinds, "&kind="), nil))
		require.True(t, ok, "%s", w.Body)
		for _, o := range set.of(&e) {
			require.True(t, o.Missed)
			if list = append(list, o.Kind); o.Member != nil {
				list[len(list)-1] += " " + o.Member.ID
			}
			require.NotEmpty(t, o.Text)
			require.Empty(t, o.Previous, "nobody knows what was before")
		}
		return list
	}
	require.Equal(t, []string{"member-joined h:1#1"}, told("member-joined"))
	require.Equal(t, []string{"snapshot", "member-up h:1#2", "member-up h:1#3"}, told("member-up", "snapshot"))
	require.Equal(t, []string{"member-weakly-up h:1#4", "member-left h:1#5", "member-exited h:1#6",
		"member-downed h:1#7", "member-preparing-for-shutdown h:1#8", "member-ready-for-shutdown h:1#9"},
		told("member-downed", "member-exited", "member-left", "member-weakly-up", "member-preparing-for-shutdown",
			"member-ready-for-shutdown", "member-removed", "role-leader-changed", "node-suspended"))
	require.Equal(t, []string{"unreachable-member h:1#3", "leader-changed"}, told("leader-changed", "unreachable-member"))
	e.Kind, e.Missed = kith.MemberUp, false
	require.Empty(t, kinds{kith.MemberJoined: true}.of(&e))
	require.Len(t, kinds{kith.MemberUp: true}.of(&e), 1)
	require.Len(t, kinds(nil).of(&e), 1)
}

// F-M7: 200 or not, by where the node stands, with the reason. Here nobody adds checks, so none can throw or be slow;
// not healthy is 503, what orchestrators and balancers take for "not now", where the reference has 500; and liveness is
// 503 once the node has ended, where the reference has no check at all.
func TestConformanceHealth(t *testing.T) {
	probes := func(s *Server, state kith.NodeState, started, ready, alive int, reason string) {
		t.Helper()
		for path, want := range map[string]int{"started": started, "ready": ready, "alive": alive} {
			status, body, _ := call(t, s, "GET", "/health/"+path, "")
			require.Equal(t, want, status, "%s: %s", path, body)
			var h health
			require.NoError(t, json.Unmarshal(body, &h))
			require.Equal(t, state, h.State)
			require.Contains(t, h.Reason, reason)
			require.Equal(t, state == kith.StateReady, h.Reason == "")
		}
	}
	is := func(n *kith.Node, state kith.NodeState, reason string) {
		t.Helper()
		require.Eventually(t, func() bool {
			h := n.Health()
			return h.State == state && strings.Contains(h.Reason, reason)
		}, time.Minute, time.Millisecond, "%+v", n.Health())
	}
	looks, s := nodeOf(t, kith.Config{AwaitSeeds: true}, Config{})
	is(looks, kith.StateStarting, "no seeds")
	probes(s, kith.StateStarting, 503, 503, 200, "no seeds")

	waits, s := nodeOf(t, kith.Config{Membership: kith.MembershipConfig{MinMembers: 2}}, Config{})
	is(waits, kith.StateWaiting, "1 of at least 2")
	require.Equal(t, kith.Joining, waits.View().Members[0].Status)
	probes(s, kith.StateWaiting, 200, 503, 200, "1 of at least 2")

	n, s := nodeOf(t, kith.Config{}, Config{})
	is(n, kith.StateReady, "")
	probes(s, kith.StateReady, 200, 200, 200, "")
	held := make(chan struct{})
	require.NoError(t, n.OnShutdown(kith.PhaseServiceUnbind, "wait", func(context.Context) error {
		<-held
		return nil
	}))
	left := make(chan error, 1)
	go func() { left <- n.Leave(t.Context()) }()
	is(n, kith.StateLeaving, "left")
	probes(s, kith.StateLeaving, 200, 503, 200, "left")
	close(held)
	require.NoError(t, <-left)
	probes(s, kith.StateEnded, 503, 503, 503, "left")
}
