// Tests of the words of enumerations: whatever has a name here is written and read by it, in JSON and in settings.

package e2e_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/constant"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap/formation"
	known "github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/lab/api"
	"github.com/kith-io/kith/quorum"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/sqlfence"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// enumeration is a kind of number that has names.
type enumeration interface {
	~uint8 | ~uint16
	fmt.Stringer
	encoding.TextMarshaler
}

// readBack reads V from what it writes.
type readBack[V enumeration] interface {
	*V
	encoding.TextUnmarshaler
}

// spelled is the law of one enumeration, of which top is a number above all that have a name: each value is read back
// from its word, as text, in JSON and as a key of JSON, and what is no word is refused and changes nothing.
func spelled[V enumeration, P readBack[V]](top int) func(*testing.T) {
	return func(t *testing.T) {
		seen := map[string]bool{}
		for n := range top {
			v := V(n)
			text, err := v.MarshalText()
			require.NoError(t, err)
			word := v.String()
			require.Equal(t, word, string(text))
			require.Regexp(t, `^[a-z]+(-[a-z0-9]+)*$`, word)
			require.False(t, seen[word], "%d: two values are called %q", n, word)
			seen[word] = true

			got := ^v
			require.NoError(t, P(&got).UnmarshalText(text))
			require.Equal(t, v, got)
			b, err := json.Marshal(map[V]V{v: v})
			require.NoError(t, err)
			require.JSONEq(t, `{"`+word+`": "`+word+`"}`, string(b))
			var back map[V]V
			require.NoError(t, json.Unmarshal(b, &back))
			require.Equal(t, map[V]V{v: v}, back)
		}
		got := V(1)
		for _, wrong := range []string{"", "no-such-word", "1", strings.ToUpper(V(1).String())} {
			require.Error(t, P(&got).UnmarshalText([]byte(wrong)), wrong)
			require.Equal(t, V(1), got)
		}
	}
}

// enumerations are all that the public packages export.
var enumerations = map[string]func(*testing.T){
	"formation.Action": spelled[formation.Action](256), "formation.Hold": spelled[formation.Hold](256),
	"entity.Call": spelled[entity.Call](256),
	"entity.Mode": spelled[kith.Mode](256), "entity.Restart": spelled[kith.Restart](256),
	"entity.EndCause":     spelled[kith.EndCause](256),
	"entity.StopReason":   spelled[kith.StopReason](256),
	"entity.IncidentKind": spelled[kith.IncidentKind](256), "route.Reason": spelled[kith.Reason](500),
	"route.ErrorKind": spelled[kith.ErrorKind](256),
	"cluster.Status":  spelled[kith.Status](256), "cluster.Cause": spelled[kith.Cause](256),
	"cluster.Patience":  spelled[kith.Patience](256),
	"cluster.Refound":   spelled[kith.Refound](256),
	"cluster.CountKind": spelled[known.CountKind](256), "cluster.OldOption": spelled[known.OldOption](256),
	"cluster.NewOption": spelled[known.NewOption](256), "cluster.LateOption": spelled[known.LateOption](256),
	"membership.EndKind": spelled[kith.EndKind](256), "membership.EventKind": spelled[kith.EventKind](256),
	"membership.NodeState": spelled[kith.NodeState](256),
	"membership.WaitKind":  spelled[kith.WaitKind](256),
	"sbr.Strategy":         spelled[kith.Strategy](256), "sbr.Outcome": spelled[sbr.Outcome](256),
	"sbr.LeaseState": spelled[sbr.LeaseState](256), "sbr.EventKind": spelled[sbr.EventKind](256),
	"shard.RouteState": spelled[shard.RouteState](256), "shard.EventKind": spelled[shard.EventKind](256),
	"shard.MovePhase": spelled[shard.MovePhase](256),
	"stats.Measure":   spelled[stats.Measure](256), "gossip.Order": spelled[gossip.Order](256),
	"gossip.Verdict": spelled[gossip.Verdict](256), "strategy.Fault": spelled[strategy.Fault](256),
	"sqlfence.Dialect": spelled[sqlfence.Dialect](256), "quorum.Mode": spelled[quorum.Mode](256),
	"wire.Kind": spelled[wire.Kind](256), "wire.Lane": spelled[wire.Lane](256),
	"wire.Owner": spelled[wire.Owner](256),
}

// TestAPIEnumerationsAreWords: every exported kind of number of which there are constants is marshalled as a word, and
// its constants have words of their own. A new one gets String, MarshalText and UnmarshalText (internal/base/enum), and
// a row above.
func TestAPIEnumerationsAreWords(t *testing.T) {
	t.Parallel()
	all, err := api.Public("../..")
	require.NoError(t, err)
	var found []string
	for _, p := range all {
		for name, values := range constants(p) {
			if p.Name()+"."+name == "replicated.Level" {
				continue // a number of members, of which three have names
			}
			found = append(found, p.Name()+"."+name)
			require.Contains(t, enumerations, p.Name()+"."+name, "an enumeration that is not among those below")
			require.NotEmpty(t, values)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(enumerations)), found, "an enumeration that is no more")
	for name, law := range enumerations {
		t.Run(name, law)
	}
}

// constants returns, for each exported type of p that is a small number, the values of its exported constants, if it
// has more than one.
func constants(p *types.Package) map[string][]string {
	list := map[string][]string{}
	for _, name := range p.Scope().Names() {
		c, ok := p.Scope().Lookup(name).(*types.Const)
		if !ok || !c.Exported() || c.Val().Kind() != constant.Int {
			continue
		}
		n, ok := c.Type().(*types.Named)
		if !ok || n.Obj().Pkg() != p || !n.Obj().Exported() {
			continue
		}
		if b := n.Underlying().(*types.Basic); b.Kind() == types.Uint8 || b.Kind() == types.Uint16 ||
			b.Kind() == types.Int {
			list[n.Obj().Name()] = append(list[n.Obj().Name()], name)
		}
	}
	return list
}
