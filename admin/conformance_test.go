// Conformance: the reference's scenarios of its management routes, with their values, under the names of ours.

package admin

import (
	"context"
	"encoding/json"
	"net/http"
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
	for _, name := range []string{"hostname.com:3311", "[::1]:3311"} {
		n, s := nodeOf(t, kith.Config{Advertise: name}, Config{})
		require.NoError(t, n.Ready(ctx))
		for path, want := range map[string]int{name: 200, url.PathEscape(name): 200, url.PathEscape(n.ID().String()): 200,
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
		require.True(t, n.Health().Ready())
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

// F-M6: a stream of a running node is 200 and text/event-stream, and begins with what is. Here that is one event, the
// snapshot, and nothing is filtered: MemberUp is of who becomes Up after it.
func TestConformanceEventStream(t *testing.T) {
	a, s := start(t, Config{})
	events, stop := reads(t, s, "/v1/events")
	defer stop()
	first := <-events
	require.Equal(t, "snapshot", first["kind"])
	list := first["members"].(map[string]any)["members"].([]any)
	require.Len(t, list, 1)
	require.Equal(t, "up", list[0].(map[string]any)["status"])
	b, _ := start(t, Config{}, a.Addr().String())
	for e := range events {
		if e["kind"] == "member-up" {
			require.Equal(t, b.ID().String(), e["member"].(map[string]any)["id"])
			require.Equal(t, "up", e["member"].(map[string]any)["status"])
			return
		}
	}
	require.Fail(t, "the stream has ended")
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

	waits, s := nodeOf(t, kith.Config{Membership: kith.Tuning{MinMembers: 2}}, Config{})
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
