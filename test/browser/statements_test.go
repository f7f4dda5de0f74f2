// Each statement of the top line of the page: what makes the page say it, what it says, and when it says no more.

package browser

import (
	"os"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// moment is a board, and what the page says then.
type moment struct {
	sec   float64
	nodes []any
	types []any
	want  []string
}

// What to do next, as the page writes it.
const (
	meanwhile = " [What happens meanwhile] failover.md#while-it-lasts"
	twins     = " [Which of the two to end] troubleshooting.md#two-clusters-where-there-should-be-one"
	sides     = " [Which side goes on] split-brain.md#explained"
	nothing   = " [What a node that handles nothing waits for] troubleshooting.md#nothing-is-handled-on-one-node"
	notUp     = " [Why a node does not come up] troubleshooting.md#a-node-does-not-start-or-does-not-come-up"
	unhandled = " [Why messages are not handled] troubleshooting.md#messages-are-not-handled"
	counted   = " [Which counter has them, and why] account.md#lost-and-not-reported"
	homeless  = " [Why shards have no home] troubleshooting.md#shards-are-not-where-they-should-be"
	comeAndGo = " [Members that come and go] troubleshooting.md#members-come-and-go"
	explain   = " [Who holds it up, and why: kith explain]"
	undrain   = " [It ends with: kith drain --undo]"
)

// down is what to do about a member that is unreachable, at an address.
func down(addr string) string {
	return " [What happens meanwhile, or kith down " + addr + " --dry-run] failover.md#while-it-lasts"
}

var well = []string{"✓ All is well: 3 nodes are up."}

// all are three nodes that say this of themselves beside what calm says.
func all(changes ...any) []any {
	return []any{heard("n1", calm(n1, changes...)), heard("n2", calm(n2, changes...)), heard("n3", calm(n3, changes...))}
}

// seen are nodes n1 and n2, with these members, and a third one that is silent.
func seen(members []any, changes ...any) []any {
	changes = append([]any{"members.members", members}, changes...)
	return []any{heard("n1", calm(n1, changes...)), heard("n2", calm(n2, changes...))}
}

// one is what only n1 says.
func one(changes ...any) []any {
	return []any{heard("n1", calm(n1, changes...)), heard("n2", calm(n2)), heard("n3", calm(n3))}
}

func members(list ...any) []any { return append([]any{}, list...) }

// peer is a link of n1's to n2.
func peer(changes ...any) obj {
	return obj{"total": 1, "peers": []any{changed(obj{"peer": n2, "watched": true, "available": true, "phi": 0.1, "silence_s": 0.1,
		"left_s": 5.0, "round_trip_ms": 1.0, "control": true, "links": 1, "links_up": 1, "queued": 0, "in_flight": 0, "refused": 0},
		changes...)}}
}

// apart is a convergence that does not come, since it waits for these.
func apart(blockers ...string) obj {
	list := []any{}
	for _, id := range blockers {
		list = append(list, obj{"member": id, "why": "it has not seen it"})
	}
	return obj{"converged": false, "for_s": 1.0, "blocking": len(list), "blockers": list}
}

var statements = map[string][]moment{
	"members that are up": {
		{0, nil, nil, []string{"… No members yet."}},
		{1, seen(members(member(n1)))[:1], nil, []string{"✓ All is well: 1 node is up."}},
		{2, all(), nil, well},
		{3, all(), []any{shards(1, map[string]int{n1: 40})}, []string{"✓ All is well: 3 nodes are up, 1 shard on the way."}},
		{4, all(), []any{shards(2, map[string]int{n1: 40})}, []string{"✓ All is well: 3 nodes are up, 2 shards on the way."}},
	},
	"members that come or go": {
		{0, seen(members(member(n1, "status", "joining")))[:1], nil, []string{"… 0 of 1 nodes are up, others come or go."}},
		{1, seen(members(member(n1), member(n2), member(n3, "status", "joining"))), nil, []string{"✓ 2 of 3 nodes are up, others come or go."}},
		{2, seen(members(member(n1), member(n2), member(n3, "status", "weakly-up"))), nil, []string{"✓ 2 of 3 nodes are up, others come or go."}},
		{3, seen(members(member(n1), member(n2), member(n3, "status", "leaving"))), []any{shards(3, nil)},
			[]string{"✓ 2 of 3 nodes are up, others come or go, 3 shards on the way."}},
		{4, seen(members(member(n1), member(n2))), nil, []string{"✓ All is well: 2 nodes are up."}},
	},
	"a node that never answered": {
		{0, []any{late("", 3, "it is busy", nil)}, nil, []string{"… No members yet."}},
		{1, []any{late("", 3.1, "it is busy", nil)}, nil, []string{"! The node has not answered: it is busy."}},
		{2, []any{late("n1", 4, "", nil)}, nil, []string{"! n1 has not answered: no answer yet."}},
		{3, append(all(), late("n4", 4, "no route", nil)), nil, []string{"! n4 has not answered: no route."}},
	},
	"a node that is not ready": {
		{0, newcomer("starting", "no seed answers: b:1"), nil, []string{"✓ 2 of 3 nodes are up, others come or go."}},
		{1.9, newcomer("starting", "no seed answers: b:1"), nil, []string{"✓ 2 of 3 nodes are up, others come or go."}},
		{2, newcomer("starting", "no seed answers: b:1"), nil, []string{"! n3 is not ready: no seed answers: n2." + notUp}},
		{3, newcomer("starting", "n1 refuses it: TakeoverTime is 17s here, 20s there"), nil,
			[]string{"! n3 is not ready: n1 refuses it: TakeoverTime is 17s here, 20s there." + notUp}},
		{4, newcomer("waiting", "the leader lets nobody in"), nil, []string{"! n3 is not ready: the leader lets nobody in." + notUp}},
		{5, newcomer("starting", ""), nil, []string{"✓ 2 of 3 nodes are up, others come or go."}},
		{6, all("health.reason", "it stood still"), nil, well},
		{8, all("health.reason", "it stood still")[:1], nil, []string{"! n1 is not ready: it stood still." + notUp}},
	},
	"a refused node alone": { // as its own page says it
		{0, alone("n1 refuses it"), nil, []string{"… 0 of 1 nodes are up, others come or go."}},
		{2, alone("n1 refuses it"), nil, []string{"! c:1 is not ready: n1 refuses it." + notUp}},
		{3, []any{late("", 3, "", calm(n3, "health", obj{"state": "starting", "since": at(0), "reason": "it waits"}, "members.members", members()))}, nil,
			[]string{"… No members yet."}},
	},
	"a killed node": { // healthy, noticed, decided, over
		{0, all(), nil, well},
		{1, seen(members(member(n1), member(n2), accused(n3))), nil, []string{"✕ n3 is unreachable." + down("c:1")}},
		{2, seen(members(member(n1), member(n2), accused(n3, n1)), "members.outages", members(outage(n3, 25, "served_by", at(17.5)))), nil,
			[]string{"✕ n3 is unreachable, say n1. 25 shards there are served again from 12:00:17 on." + down("c:1")}},
		{3, seen(members(member(n1), member(n2), accused(n3, n1, n2)), "members.outages", members(outage(n3, 1))), nil,
			[]string{"✕ n3 is unreachable, say n1, n2. 1 shard there wait for an operator." + down("c:1")}},
		{4, seen(members(member(n1), member(n2), accused(n3, n2)), "members.outages", members(outage(n3, 0, "served_by", at(17.5)))), nil,
			[]string{"✕ n3 is unreachable, say n2." + down("c:1")}},
		{5, seen(members(member(n1), member(n2), member(n3, "status", "down", "cause", "resolver")), "members.outages",
			members(outage(n3, 25, "served_by", at(17.5), "decided", true))), nil,
			[]string{"✕ n3 is down (resolver). 25 shards that lived there are served again from 12:00:17 on." + meanwhile}},
		{6, seen(members(member(n1), member(n2), member(n3, "status", "down"))), nil, []string{"✕ n3 is down." + meanwhile}},
		{7, seen(members(member(n1), member(n2)), "members.outages", members(outage(n3, 25, "served_by", at(17.5), "decided", true))), nil,
			[]string{"✕ n3 is lost. 25 shards that lived there are served again from 12:00:17 on." + meanwhile}},
		{8, seen(members(member(n1), member(n2))), nil, []string{"✓ All is well: 2 nodes are up."}},
	},
	"an outage of somebody unknown": {
		{0, all("members.outages", members(outage("x:9#9", 3, "served_by", at(17.5)))), nil,
			[]string{"✕ x:9 is lost. 3 shards there are served again from 12:00:17 on." + meanwhile}},
		{1, all("members.outages", members(outage("x:9#9", 0))), nil, well},
		{2, append(one("members.outages", members(outage("x:9#9", 4)))[:1], heard("n2", calm(n2, "members.outages", members(outage("x:9#9", 3))))), nil,
			[]string{"✕ x:9 is lost. 4 shards there wait for an operator." + meanwhile}},
	},
	"a suspended node": {
		{0, one("health", obj{"state": "suspended", "since": at(0), "reason": "2 of 5 members confirm it"}), nil,
			[]string{"✕ n1 handles no messages: 2 of 5 members confirm it." + nothing}},
		{1, one("health", obj{"state": "suspended", "since": at(0)}), nil, []string{"✕ n1 handles no messages: it is suspended." + nothing}},
		{2, one(), nil, well},
	},
	"a silent node": {
		{0, append(all()[:2], late("n3", 2.9, "", calm(n3))), nil, well},
		{10, append(all()[:2], late("n3", 3, "", calm(n3))), nil, []string{"✓ All is well: 2 nodes are up."}},
		{11.9, append(all()[:2], late("n3", 4.9, "", calm(n3))), nil, []string{"✓ All is well: 2 nodes are up."}},
		{12, append(all()[:2], late("n3", 5, "", calm(n3))), nil, []string{"✕ n3 has not answered since 12:00:07, and is a member." + comeAndGo}},
		{13, append(all()[:2], late("n3", 0.9, "refused", calm(n3))), nil, well},
		{14, append(all()[:2], late("n3", 1, "refused", calm(n3))), nil, []string{"✓ All is well: 2 nodes are up."}},
		{16, append(all()[:2], late("n3", 3, "refused", calm(n3))), nil, []string{"✕ n3 has not answered since 12:00:13, and is a member." + comeAndGo}},
	},
	"a node that is gone": {
		{0, all(), nil, well},
		{1, append(all()[:2], late("n3", 0.5, "refused", calm(n3))), nil, well},
		{2, append(seen(members(member(n1), member(n2))), late("n3", 1.5, "refused", calm(n3))), nil, []string{"! n3 is gone since 12:00:02."}},
		{61.9, append(seen(members(member(n1), member(n2))), late("n3", 60, "refused", calm(n3))), nil, []string{"! n3 is gone since 12:00:02."}},
		{62, append(seen(members(member(n1), member(n2))), late("n3", 60, "refused", calm(n3))), nil, []string{"✓ All is well: 2 nodes are up."}},
	},
	"a node that has left": {
		{0, all(), nil, well},
		{1, seen(members(member(n1), member(n2))), nil, []string{"✓ All is well: 2 nodes are up."}},
	},
	"different clusters": {
		{0, append(one()[:2], heard("n3", calm(n3, "members.cluster", "8"))), nil, []string{"✕ These nodes are in different clusters." + twins}},
		{1, append(one()[:2], heard("n3", calm(n3, "members.cluster", "0000"))), nil, well},
	},
	"a split": {
		{0, append(seen(members(member(n1), member(n2), accused(n3, n1, n2))), heard("n3", calm(n3, "members.members", members(accused(n1, n3), accused(n2, n3), member(n3))))), nil,
			[]string{"✕ The cluster is split: n1, n2 | n3." + sides, "✕ n1 is unreachable, say n3." + down("a:1"), "✕ n2 is unreachable, say n3." + down("b:1"), "✕ n3 is unreachable, say n1, n2." + down("c:1")}},
		{1, append(seen(members(member(n1), member(n2), accused(n3, n1))), heard("n3", calm(n3, "members.members", members(accused(n1, n3), member(n2), member(n3))))), nil,
			[]string{"✕ n1 is unreachable, say n3." + down("a:1"), "✕ n3 is unreachable, say n1." + down("c:1")}},
		{2, all(), nil, well},
	},
	"twins": {
		{0, one("health.twins", members(obj{"cluster": "8", "birth": 1, "via": "d:1"})), nil, []string{"✕ Another cluster of this name (8) lives at d:1: end one of the two." + twins}},
		{1, all("health.twins", members(obj{"cluster": "7", "birth": 1, "via": "d:1"})), nil,
			[]string{"✕ Another side of this cluster lives at d:1 and has removed this one: end one of the two." + twins}},
		{2, all(), nil, well},
	},
	"no convergence": {
		{0, all("convergence", apart(n3)), nil, well},
		{1.9, all("convergence", apart(n3)), nil, well},
		{2, all("convergence", apart(n3)), nil, []string{"! No convergence at n1, n2, n3: they wait for n3." + explain}},
		{3, one("convergence", apart(n2, n3, "d:1#4", "e:1#5")), nil, []string{"! No convergence at n1: it waits for n2, n3, d:1." + explain}},
		{4, one("convergence", apart()), nil, []string{"! No convergence at n1." + explain}},
		{5, one("convergence", obj{"converged": false, "blocking": 0, "blockers": []any{}}), nil, well},
		{6, one("convergence", changed(apart(n2), "converged", true)), nil, well},
		{8, one("convergence", apart(n2)), nil, well},
	},
	"a node that drains": {
		{0, one("health.draining", true), nil, []string{"! n1 drains: everything moves away from it, and it stays a member." + undrain}},
		{1, one("health.draining", false), nil, well},
	},
	"links": {
		{0, one("peers", peer("links_full", 1)), nil, []string{"✕ The link from n1 to n2 is full: sends are refused." + unhandled}},
		{1, one("peers", peer("links_stalled", 1)), nil, well},
		{2.9, one("peers", peer("links_stalled", 1)), nil, well},
		{3, one("peers", peer("links_stalled", 1)), nil, []string{"! The link from n1 to n2 stands still: no credit comes." + unhandled}},
		{4, one("peers", peer("links_stalled", 1, "links_full", 1)), nil, []string{"✕ The link from n1 to n2 is full: sends are refused." + unhandled}},
		{5, one("peers", peer()), nil, well},
	},
	"losses": {
		{0, one("rates.lost", 0.4), nil, []string{"✕ n1 loses 0.4 messages a second." + counted}},
		{1, one("rates.lost", 0.0), nil, well},
	},
	"shards without a home": {
		{0, all(), []any{shards(0, map[string]int{n1: 30, n2: 30, n3: 39})}, well},
		{1, all(), []any{shards(0, map[string]int{n1: 30, n2: 30, n3: 38})}, well},
		{2.9, all(), []any{shards(0, map[string]int{n1: 30, n2: 30, n3: 38})}, well},
		{3, all(), []any{shards(0, map[string]int{n1: 30, n2: 30, n3: 38})}, []string{"✕ 1 shard of counter has no home." + homeless}},
		{4, all(), []any{shards(0, map[string]int{n1: 30, n2: 30})}, []string{"✕ 39 shards of counter have no home." + homeless}},
		{5, all(), []any{shards(0, map[string]int{n1: 30, n2: 69})}, well},
	},
	"a node that does not say what it has": {
		{0, all(), []any{shards(0, nil, "missing", members(n2, "x:9#9"))}, well},
		{2, all(), []any{shards(0, nil, "missing", members(n2, "x:9#9"))}, []string{"! n2, x:9 did not say what shards of counter live there." + comeAndGo}},
		{3, seen(members(member(n1), member(n2), accused(n3, n1))), []any{shards(0, nil, "missing", members(n3))},
			[]string{"✕ n3 is unreachable, say n1." + down("c:1")}},
	},
	"more than six": { // the worst first, each once
		{0, all("health.draining", true, "health.twins", members(obj{"cluster": "8", "birth": 1, "via": "d:1"}, obj{"cluster": "9", "birth": 1, "via": "e:1"}),
			"rates.lost", 1500.0), nil,
			[]string{"✕ Another cluster of this name (8) lives at d:1: end one of the two." + twins, "✕ Another cluster of this name (9) lives at e:1: end one of the two." + twins,
				"✕ n1 loses 1.5k messages a second." + counted, "✕ n2 loses 1.5k messages a second." + counted, "✕ n3 loses 1.5k messages a second." + counted,
				"! n1 drains: everything moves away from it, and it stays a member." + undrain, "… And 2 more."}},
		{1, all("health.draining", true), nil,
			[]string{"! n1 drains: everything moves away from it, and it stays a member." + undrain, "! n2 drains: everything moves away from it, and it stays a member." + undrain,
				"! n3 drains: everything moves away from it, and it stays a member." + undrain}},
	},
}

// newcomer is n3, which is no member yet, beside two that are.
func newcomer(state, reason string) []any {
	health := obj{"state": state, "since": at(0)}
	if reason != "" {
		health["reason"] = reason
	}
	return append(seen(members(member(n1), member(n2))), heard("n3", calm(n3, "health", health, "members.members", members(), "members.cluster", "0")))
}

func alone(reason string) []any {
	return []any{heard("", newcomer("starting", reason)[2].(obj)["snapshot"].(obj))}
}

// Each statement of the top line is said when its cause is there and no longer, with what to do next (OPS-1).
func TestStatements(t *testing.T) {
	s := newStage(t)
	for name, story := range statements {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.anew()
			for _, m := range story {
				s.show(m.sec, m.nodes, m.types...)
				s.says(m.want, "")
			}
			s.clean()
		})
	}
}

// While nothing comes, the top line says that, and beside it stand why, and how long it has been so.
func TestStatementsOfALostStream(t *testing.T) {
	s := newStage(t)
	s.say(nil, "there is no room")
	do(s.tab, chromedp.Reload())
	told := `document.getElementById("stream").innerText`
	s.until(`%s.includes("nothing heard yet (there is no room), trying again")`, told)
	s.says([]string{"✕ Nothing has been heard from the cluster yet."}, "✕ not live · kith")
	s.show(0, all())
	s.until(`document.title === "kith"`)
	s.says(well, "kith")
	require.Equal(t, "● live", js[string](s.tab, "%s.trim()", told))
	s.say(nil, "there is no room")
	s.until(`%s.match(/not live last heard \d+ s ago \(there is no room\), trying again/)`, told)
	s.says([]string{"✕ Not live: below is what was last heard, not what is."}, "✕ not live · kith")
	require.True(t, js[bool](s.tab, `document.body.classList.contains("stale")`))
	s.clean()
}

// A statement more wants a story above.
func TestStatementsAreAll(t *testing.T) {
	text, err := os.ReadFile("../../admin/page/model.js")
	require.NoError(t, err)
	require.Len(t, regexp.MustCompile(`\b(bad|warn)\(`).FindAllString(string(text), -1), 18)
}
