// What all nodes of a cluster must agree on: the one list of it, by which hellos and joins compare (JOIN-1).

package node

import (
	"strconv"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/membership"
)

// Terms are the settings of one node, as far as others must have the same.
type Terms struct {
	Config     Config // Membership, Resolver, Shard and ProcessDeathIsProof are looked at
	MaxPayload int    // bytes
	Window     int    // bytes
	LeaseName  string // of the resolver's lease; empty: its strategy has none
}

// Agreement is one entry of the list: a setting that must be the same on all nodes.
type Agreement struct {
	// Key names the setting in hellos and joins, and in the words of a refusal. It never changes.
	Key string
	// Fields are the fields of the root's Config that the value is made of.
	Fields []string
	// Since is the wire version that brought the comparison; nodes of an earlier one do not say the value.
	Since uint16
	// Join says that a join carries the value: the joiner ends, or the member refuses it, and the reason has key and both
	// values. Hellos compare it between nodes that are both in a cluster, or both in none, unless differences are let
	// through (LenientSettings). Without it every hello compares, and a node that differs waits (WaitSettings).
	Join bool
	// value returns what is compared; a value that ok is false for is not said.
	value func(t *Terms) (value string, ok bool)
}

// settingsSince is the wire version since which hellos compare more than the longest payload.
const settingsSince = 7

// Agreements returns the list: first what every hello compares, then what joins compare. Besides, a hello compares the
// name of the cluster and whether both ends speak TLS, for which it has reasons of their own.
func Agreements() []Agreement {
	always := func(value func(t *Terms) string) func(*Terms) (string, bool) {
		return func(t *Terms) (string, bool) { return value(t), true }
	}
	return []Agreement{
		{Key: "max-payload", Fields: []string{"MaxPayload"}, Since: 1,
			value: always(func(t *Terms) string { return strconv.Itoa(t.MaxPayload) })},
		{Key: "window", Fields: []string{"Window"}, Since: settingsSince,
			value: always(func(t *Terms) string { return strconv.Itoa(t.Window) })},
		{Key: "kith.resolver", Fields: []string{"Resolver.Strategy", "Resolver.QuorumSize", "Resolver.KeepAlone",
			"Resolver.StableAfter", "Resolver.UnstableAfter", "Resolver.LeaseDelay", "Patience"}, Since: 1, Join: true,
			value: always(func(t *Terms) string {
				r := t.Config.Resolver
				r.Role, r.LeaseName = "", ""
				if p := t.Config.Patience; p != cluster.PatienceNormal { // builds before presets have that
					return r.Settings() + " patience=" + p.String()
				}
				return r.Settings()
			})},
		{Key: "kith.resolver-role", Fields: []string{"Resolver.Role"}, Since: 1, Join: true,
			value: always(func(t *Terms) string { return t.Config.Resolver.Role })},
		{Key: "kith.resolver-lease", Fields: []string{"Resolver.LeaseName"}, Since: 1, Join: true,
			value: func(t *Terms) (string, bool) { return t.LeaseName, t.LeaseName != "" }},
		{Key: "kith.stops-within", Fields: pace("Resolver.StableAfter", "Resolver.UnstableAfter"), Since: 1, Join: true,
			value: always(func(t *Terms) string { return t.Config.StopsWithin() })},
		{Key: "kith.takeover-time", Fields: []string{"Sharding.TakeoverTime", "Sharding.Session",
			"Sharding.Tenure"}, Since: 1, Join: true,
			value: always(func(t *Terms) string {
				text := "derived"
				if fixed := t.Config.Shard.TakeoverTime; fixed != 0 {
					text = fixed.String()
				}
				if s := t.Config.Session; s.On() { // so builds before sessions are refused: theirs would be ended as run out
					text += " with sessions " + s.String()
				}
				if s := t.Config.Tenure; s.On() { // likewise
					text += " with tenure " + s.String()
				}
				return text
			})},
		{Key: "kith.silence-bound", Fields: pace(), Since: settingsSince, Join: true,
			value: always(func(t *Terms) string { return t.Config.Membership.SilenceBound().String() })},
		{Key: "kith.process-death-is-proof", Fields: []string{"Sharding.ProcessDeathIsProof"}, Since: settingsSince,
			Join: true, value: always(func(t *Terms) string { return strconv.FormatBool(t.Config.ProcessDeathIsProof) })},
	}
}

// pace returns the fields that say how long a silence the failure detector bears, behind those given.
func pace(more ...string) []string {
	return append(more, "Patience", "Membership.Detector", "Membership.HeartbeatInterval", "Membership.AcceptablePause",
		"Membership.Threshold", "Membership.MinStdDeviation", "Membership.MaxSamples")
}

// Hello returns what hellos of this node say and compare.
func (t *Terms) Hello() []hello.Term {
	var list []hello.Term
	for _, a := range Agreements() {
		if v, ok := a.value(t); ok && !(a.Join && t.Config.Membership.LenientSettings) {
			list = append(list, hello.Term{Setting: hello.Setting{Key: a.Key, Value: v}, Since: a.Since, Join: a.Join})
		}
	}
	return list
}

// Joins returns what joins of this node say and compare, beside the settings that its user names.
func (t *Terms) Joins() []membership.Setting {
	var list []membership.Setting
	for _, a := range Agreements() {
		if v, ok := a.value(t); ok && a.Join {
			list = append(list, membership.Setting{Key: a.Key, Value: v})
		}
	}
	return list
}
