// Two clusters of one name where there should be one: which one yields, and which node forms none in the first place
// (AVL-3).

package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
)

// loner is a process with a node that has itself as its only seed and keeps no record, as in a first try: it says its
// address, and the cluster of each node that it has in turn.
func loner(addr string) {
	n, err := kith.Start(context.Background(), kith.Config{Name: "lone", Listen: addr, Seeds: []string{addr},
		Membership: quick(), Resolver: kith.Resolver{Strategy: kith.ResolverOff},
		Sharding: kith.Sharding{TakeoverTime: never}})
	if err != nil {
		panic(err)
	}
	fmt.Println(n.Addr())
	go func() {
		for {
			if err := n.Ready(context.Background()); err == nil {
				fmt.Printf("%016x\n", n.View().ClusterID)
			}
			<-n.Done()
			e := (*kith.EndedError)(nil)
			if !errors.As(n.Err(), &e) || e.Kind != kith.EndDuplicate {
				panic(n.Err())
			}
			if n, err = n.JoinCluster(context.Background(), e.Seeds); err != nil {
				panic(err)
			}
		}
	}()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
	}
}

// TestLoneFirstSeedIsRestarted: the first node of a cluster is killed and started again with nothing but its own
// address as a seed. It forms a cluster of one, whatever we do; the members that live find it, it meets them when it
// dials back, and goes over to them.
func TestLoneFirstSeedIsRestarted(t *testing.T) {
	t.Parallel()
	addr := port.Keep(t)
	first := spawn(t, "lone "+addr)
	cluster := first.line()
	others := []*kith.Node{}
	for range 2 {
		others = append(others, start(t, nil, kith.Config{Name: "lone", Seeds: []string{addr}}))
	}
	for _, n := range others {
		awaitView(t, n, func(v *kith.View) bool { return v.CountUp() == 3 })
	}
	first.kill()
	next := spawn(t, "lone "+addr)
	id := next.line()
	require.NotEqual(t, cluster, id, "nothing can keep it from that")
	require.Equal(t, cluster, next.line())
	for _, n := range others {
		awaitView(t, n, func(v *kith.View) bool { return v.CountUp() == 3 })
		require.Equal(t, cluster, fmt.Sprintf("%016x", n.View().ClusterID))
	}
}

// homed is a record that names the directory in which it was kept.
var homed = regexp.MustCompile(`"node": "\S+ \S+"`)

// TestCopiedDirectory: the directory of a node that is alone in its cluster is copied to another machine, as with an
// image or a backup. The copy joins the node that lives; when that is not heard it forms no cluster, unless an operator
// says so, though a node that has moved with its directory does.
func TestCopiedDirectory(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	a := start(t, nil, kith.Config{Directory: dir})
	require.NoError(t, a.Ready(within(t)))
	var text []byte
	eventually(t, func() (ok bool) {
		text, _ = os.ReadFile(filepath.Join(dir, "membership.json"))
		return strings.Contains(string(text), `"counts": true`)
	}, "a record")
	if !homed.Match(text) {
		t.Skip("this file system does not say when a file was made")
	}
	require.NoError(t, os.WriteFile(filepath.Join(copied, "membership.json"), text, 0o600))
	b := start(t, nil, kith.Config{Directory: copied, Seeds: []string{port.Keep(t)}})
	require.NoError(t, b.Ready(within(t)))
	require.Equal(t, a.View().ClusterID, b.View().ClusterID)
	require.NoError(t, b.Leave(within(t)))
	awaitView(t, a, func(v *kith.View) bool { return len(v.Members) == 1 })
	closes(t, a)

	require.NoError(t, os.WriteFile(filepath.Join(copied, "membership.json"), text, 0o600))
	c := start(t, nil, kith.Config{Directory: copied})
	isHeld(t, c, "nothing is heard of "+a.Addr().String())
	closes(t, c)
	moved := start(t, nil, kith.Config{Directory: dir, FormNew: false})
	require.NotEqual(t, a.Addr(), moved.Addr())
	require.NoError(t, moved.Ready(within(t)))
}

// isHeld waits until a node says that it forms no cluster, and why.
func isHeld(t *testing.T, n *kith.Node, why string) {
	t.Helper()
	for e := range n.Events(within(t)) {
		if e.Kind == kith.FormingHeld {
			require.Contains(t, e.Detail, why)
			require.Zero(t, n.View().ClusterID)
			return
		}
	}
	require.Fail(t, "it is not held")
}

// TestSeedSpelledOtherwise: a node finds itself among its seeds however its address is spelled there, and is the first
// seed when that one comes first (JOIN-1).
func TestSeedSpelledOtherwise(t *testing.T) {
	t.Parallel()
	at := port.Keep(t)
	_, p, err := net.SplitHostPort(at)
	require.NoError(t, err)
	own := net.JoinHostPort("localhost", p)
	l := logger(t)
	n := start(t, l, kith.Config{Listen: at, Seeds: []string{own}, Logger: slog.New(slog.NewTextHandler(l, nil))})
	require.NoError(t, n.Ready(within(t)))
	for _, line := range []string{"a seed is this node itself", "cluster formed", "keeps no record"} {
		eventually(t, func() bool { return strings.Contains(l.String(), line) }, "%s", line)
	}
	require.NotContains(t, l.String(), "level=ERROR")
}

// TestAddressThatLeadsAstray: a node with an address that leads its members back to themselves learns so, and by that
// which setting is wrong.
func TestAddressThatLeadsAstray(t *testing.T) {
	t.Parallel()
	p := port.Keep(t)
	_, number, err := net.SplitHostPort(p)
	require.NoError(t, err)
	a := start(t, nil, kith.Config{Listen: p})
	require.NoError(t, a.Ready(within(t)))
	b := start(t, nil, kith.Config{Advertise: "localhost:" + number, Seeds: []string{p}})
	eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		return strings.Contains(fmt.Sprint(b.Ready(ctx)), "advertised address")
	}, "it is told")
	require.Len(t, a.View().Members, 1)
}
