// What a script demands: a state that must come within a time, a state that must last, silence, sizes of frames.

package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// wish is one condition of expect and always: what, and on which node.
type wish struct{ key, value string }

// demand is a parsed list of conditions, and the nodes with views in which they must hold.
type demand struct {
	on     []int
	wishes []wish
}

// expect d [n,n] condition...: the conditions hold in the views of the nodes (all that run, when none is named) within
// d, or the test fails. always d [n,n] condition...: they hold at every moment for so long.
//
//	up=1,2 (also joining, weakly-up, leaving, exiting, down, preparing, ready): exactly these; "-" is nobody
//	unreachable=3   leader=1   members=4   converged=true   oldest=1   ended=2 (the process)
func (s *script) expect(args []string) {
	d, limit := s.demand(args[1:]), s.duration(args[0])
	if s.w.Until(limit, func() bool { return s.missing(d) == "" }) {
		s.printf("within %s: yes", args[0])
		return
	}
	s.t.Errorf("expect %s: %s", strings.Join(args, " "), s.missing(d))
}

func (s *script) always(args []string) {
	d, length := s.demand(args[1:]), s.duration(args[0])
	broken := ""
	s.w.Until(length, func() bool {
		broken = s.missing(d)
		return broken != ""
	})
	if broken != "" {
		s.t.Errorf("always %s: after all %s at %v", strings.Join(args, " "), broken, s.w.Now)
		return
	}
	s.printf("for %s: yes", args[0])
}

// silent d: for so long no node sees a single event of the membership.
func (s *script) silent(args []string) {
	tell := s.w.OnMember
	s.w.OnMember = func(p *world.Process, e membership.Event) {
		s.t.Errorf("silent %s: %s saw %s at %v", args[0], s.w.Name(p.ID), s.w.EventText(&e), s.w.Now)
	}
	s.w.Advance(s.duration(args[0]))
	s.w.OnMember = tell
	s.printf("for %s: silence", args[0])
}

// frames-below n: no frame of the membership was larger so far.
func (s *script) framesBelow(args []string) {
	most := s.number(args[0])
	if s.w.Net.Largest >= most {
		s.t.Errorf("a frame of %d bytes, all should be below %d", s.w.Net.Largest, most)
		return
	}
	s.printf("frames below %d bytes: yes", most)
}

// join on contact...: a running node is ordered to join through these.
func (s *script) join(args []string) {
	var seeds []peer.Addr
	for _, a := range args[1:] {
		seeds = append(seeds, s.w.Hosts[s.number(a)-1].Addr)
	}
	if err := s.host(args[0]).Command(membership.JoinCommand{Seeds: seeds, WallMillis: world.WallBase}); err != nil {
		s.printf("error: %v", err)
	}
}

// weather loss=0.2 raw=0.1 spread=200ms delay=5ms: how good the network is from now on; what is left out is good.
func (s *script) weather(args []string) {
	n := setup.Network{Break: s.w.Net.Break}
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "loss":
			n.Loss = s.share(value)
		case "raw":
			n.Raw.Loss = s.share(value)
		case "double":
			n.Raw.Duplicate = s.share(value)
		case "spread":
			n.Raw.Spread = s.duration(value)
		case "delay":
			n.Delay = s.duration(value)
		default:
			require.Fail(s.t, "unknown weather "+a)
		}
	}
	s.w.Weather(n)
}

// swallow [from to kind...]: mail of these kinds from one node to the other ("-" is any node) is lost from now on,
// beside what is lost already, though the connections stand. Without arguments it comes through again.
func (s *script) swallow(args []string) {
	if len(args) == 0 {
		s.w.Net.Swallows = nil
		return
	}
	before := s.w.Net.Swallows
	is := func(a string, i int) bool { return a == "-" || s.number(a)-1 == i }
	s.w.Net.Swallows = func(from, to int, kind wire.Kind) bool {
		return is(args[0], from) && is(args[1], to) && slices.Contains(args[2:], kind.String()) ||
			before != nil && before(from, to, kind)
	}
}

// break: every control connection breaks, with what is on it.
func (s *script) breakAll([]string) {
	for _, p := range s.w.Running() {
		p.BreakControl("as the story tells")
	}
}

func (s *script) share(a string) float64 {
	var v float64
	_, err := fmt.Sscan(a, &v)
	require.NoError(s.t, err)
	return v
}

// statusNamed finds the status that a word names.
func statusNamed(word string) (membership.Status, bool) {
	for st := range membership.Status(16) {
		if st.String() == word {
			return st, true
		}
	}
	return 0, false
}

func (s *script) demand(args []string) demand {
	var d demand
	for i, a := range args {
		key, value, is := strings.Cut(a, "=")
		if !is {
			require.Zero(s.t, i, "nodes come before the conditions: %q", a)
			d.on = s.hostList(a)
			continue
		}
		_, status := statusNamed(key)
		known := slices.Contains([]string{"unreachable", "leader", "members", "converged", "oldest", "ended"}, key)
		require.True(s.t, status || known, "unknown condition %q", a)
		d.wishes = append(d.wishes, wish{key, value})
	}
	require.NotEmpty(s.t, d.wishes, "nothing is demanded")
	return d
}

// hostList reads "1,2"; "-" is an empty list.
func (s *script) hostList(a string) []int {
	list := []int{}
	for h := range strings.SplitSeq(a, ",") {
		if h != "-" {
			list = append(list, s.number(h)-1)
		}
	}
	return list
}

// missing says what of a demand does not hold, "" when all does.
func (s *script) missing(d demand) string {
	on := d.on
	if on == nil {
		for _, p := range s.w.Running() {
			on = append(on, p.Index)
		}
	}
	for _, w := range d.wishes {
		if w.key == "ended" {
			for _, i := range s.hostList(w.value) {
				if s.w.Hosts[i].Process.Alive {
					return fmt.Sprintf("n%d lives", i+1)
				}
			}
			continue
		}
		for _, i := range on {
			p := s.w.Hosts[i].Process
			if p == nil || !p.Alive {
				return fmt.Sprintf("n%d does not run", i+1)
			}
			v := p.View
			if v == nil {
				v = &membership.View{}
			}
			if got := s.seen(v, w.key); got != s.wanted(w) {
				return fmt.Sprintf("%s sees %s %s, not %s", s.w.Name(p.ID), w.key, got, w.value)
			}
		}
	}
	return ""
}

// wanted prints what a wish asks for as seen prints what is there.
func (s *script) wanted(w wish) string {
	_, status := statusNamed(w.key)
	if !status && w.key != "unreachable" && w.key != "leader" && w.key != "oldest" {
		return w.value
	}
	var names []string
	for _, i := range s.hostList(w.value) {
		if p := s.w.Hosts[i].Process; p != nil {
			names = append(names, s.w.Name(p.ID))
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (s *script) seen(v *membership.View, key string) string {
	var names []string
	switch key {
	case "members":
		return fmt.Sprint(len(v.Members))
	case "converged":
		return fmt.Sprint(v.Converged)
	case "leader":
		if !v.Leader.IsZero() {
			names = append(names, s.w.Name(v.Leader))
		}
	case "oldest":
		if m, ok := v.Oldest(""); ok {
			names = append(names, s.w.Name(m.ID))
		}
	case "unreachable":
		for _, id := range v.Unreachable {
			names = append(names, s.w.Name(id))
		}
	default:
		st, _ := statusNamed(key)
		for i := range v.Members {
			if v.Members[i].Status == st {
				names = append(names, s.w.Name(v.Members[i].ID))
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// setting is one key of the cluster command that changes a default of the membership; it reports whether it knew it.
func (s *script) setting(c *membership.Config, key, value string) bool {
	durations := map[string]*time.Duration{"gossip": &c.GossipInterval, "leaders": &c.LeaderInterval,
		"heartbeat": &c.HeartbeatInterval, "pause": &c.AcceptablePause, "reaper": &c.ReaperInterval,
		"retention": &c.TombstoneRetention, "jointimeout": &c.JoinTimeout, "seedtimeout": &c.SeedTimeout,
		"weaklyup": &c.WeaklyUpAfter}
	switch d := durations[key]; {
	case d != nil:
		*d = s.duration(value)
	case key == "min":
		c.MinMembers = s.number(value)
	case key == "monitored":
		c.MonitoredBy = s.number(value)
	default:
		return false
	}
	return true
}

// TestScriptTable: the table of docs/contributing/conformance.md names scripts that exist, and there are at least forty
// (issue 3).
func TestScriptTable(t *testing.T) {
	page, err := os.ReadFile("../docs/contributing/conformance.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "| specification | script |")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	named := regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(table, -1)
	require.Greater(t, len(named), 30)
	for _, n := range named {
		require.FileExists(t, "testdata/"+n[1]+".txt")
	}
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 40)
}

// drain n...: nodes drain, and stay; undrain n... takes it back.
func (s *script) drain(on bool) func([]string) {
	return func(args []string) {
		for _, a := range args {
			if err := s.host(a).Command(shard.DrainCommand{On: on}); err != nil {
				s.printf("error: %v", err)
			}
		}
	}
}
