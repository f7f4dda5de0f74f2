// What the page says, of a node that says what a test wants: kinds of types, words of events, sums, what to do next.

package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/admin"
)

// told serves the page of one node that says this of itself and of its types.
func told(t *testing.T, snapshot map[string]any, reports map[string]any) string {
	t.Helper()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var v any = snapshot
		if name, is := strings.CutPrefix(q.URL.Path, "/v1/types/"); is {
			v = reports[name]
		}
		_ = json.NewEncoder(w).Encode(v)
	}))
	t.Cleanup(node.Close)
	s, err := admin.StartDashboard(admin.DashboardConfig{Nodes: func() []admin.DashboardNode {
		return []admin.DashboardNode{{Name: "n1", Address: node.URL}}
	}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return "http://" + s.Addr().String() + "/"
}

// Types are shown as what they are, shards that nobody has needed count against nothing, events carry a time, words and
// a reason, what waits and fails stands in sums, a node that can be clicked says so, and a problem says what to do next
// (OPS-1).
func TestWhatThePageSays(t *testing.T) {
	const self, other, now = "a:1#1", "b:1#2", "2026-01-02T03:04:05Z"
	member := func(id string, reachable bool) map[string]any {
		return map[string]any{"id": id, "addr": id[:3], "status": "up", "roles": []string{}, "reachable": reachable,
			"accused_by": map[bool][]string{false: {self}}[reachable]}
	}
	typ := func(name, kind string, shards, hosted int) map[string]any {
		return map[string]any{"name": name, "kind": kind, "shards": shards, "hosted": hosted, "entities": hosted, "parked": 2048}
	}
	report := func(name string, shards, hosted int) map[string]any {
		return map[string]any{"name": name, "shards": shards, "coordinator": self, "missing": []string{}, "moves": []any{},
			"nodes": []any{map[string]any{"node": self, "registered": true, "shards": hosted, "entities": hosted}}}
	}
	snapshot := map[string]any{"at": now, "total": 2, "health": map[string]any{"state": "ready", "since": now},
		"members": map[string]any{"self": self, "cluster": "c", "leader": self, "members": []any{member(self, true), member(other, false)},
			"outages": []any{map[string]any{"member": other, "since": now, "shards": 7, "served_by": "2026-01-02T03:04:30Z"}}},
		"convergence": map[string]any{"blockers": []any{}}, "peers": map[string]any{"peers": []any{}},
		"types": []any{typ("orders", "entities", 100, 10), typ("matcher", "singleton", 1, 1), typ("prices", "daemons", 4, 3),
			typ("workers", "pool", 64, 2)},
		"rates": map[string]any{"over_s": 1, "asks": 5, "lost": 2, "times": []any{},
			"sums": map[string]any{"refused": 11, "failed": 12, "lost": 1313}},
		"decisions": []any{}, "events": []any{map[string]any{"number": 1, "at": now, "kind": "member-downed", "grade": "bad",
			"text": "member-downed b:1#2", "words": "b:1#2 is given up as dead", "reason": "downed by a:1#1 (operator)"}}}
	b := open(t, told(t, snapshot, map[string]any{"orders": report("orders", 100, 10), "matcher": report("matcher", 1, 1),
		"prices": report("prices", 4, 3), "workers": report("workers", 64, 2)}), 1440, 900)

	text := func(id string) string { return `document.getElementById("` + id + `").innerText` }
	b.until(`%s.includes("prices")`, text("shards"))
	b.until(`%s.includes("workers on 1 node")`, text("shards"))
	shards := js[string](b, "%s", text("shards"))
	for _, want := range []string{"10 shards at home · 90 not needed yet", "lives at n1", "3 of 4 daemons run", "singleton", "pool"} {
		require.Contains(t, shards, want)
	}
	require.NotContains(t, shards, "no home")
	require.Equal(t, "16", js[string](b, `[...document.querySelectorAll(".tile")].find((e) => e.innerText.includes("Shards")).querySelector("span").innerText`))

	events := js[string](b, "%s", text("events"))
	require.Contains(t, events, "b:1 is given up as dead")
	require.Contains(t, events, "downed by n1 (operator)")
	require.Equal(t, "2026-01-02T03:04:05.000Z", js[string](b, `document.querySelector("#events time").getAttribute("datetime")`))

	trouble := js[string](b, "%s", text("trouble"))
	require.Regexp(t, `(?s)Asks that wait.*5.*Messages that wait.*8.2kB.*Refused.*11.*Failed.*12.*Lost.*2 /s.*1,313`, trouble)

	banner := js[string](b, "%s", text("banner"))
	require.Regexp(t, `b:1 is unreachable, say n1\. 7 shards there are served again from \d\d:\d\d:\d\d on\.`, banner)
	require.Contains(t, banner, "kith down b:1 --dry-run")
	require.Contains(t, js[string](b, `document.querySelector("#banner a").href`), "docs/failover.md#while-it-lasts")

	require.Equal(t, "pointer", js[string](b, `getComputedStyle(document.querySelector("#nodes button")).cursor`))
	require.Contains(t, js[string](b, `document.querySelector("#ring .node title").textContent`), "A click shows more")
	js[bool](b, `(document.querySelectorAll("#nodes button")[1].click(), true)`)
	b.until(`%s.includes("b:1#2")`, text("detail"))
	require.Equal(t, "true", js[string](b, `document.querySelectorAll("#nodes button")[1].getAttribute("aria-pressed")`))
	b.clean()
}

// The columns of a wide page end together, no card has an empty part while another one is cut off, and no width between
// phone and desk scrolls sideways: while all is well, while a member is lost, and after it. Text stands out from what is
// behind it, in the light and in the dark (OPS-1).
func TestLayoutAndContrast(t *testing.T) {
	s := newStage(t)
	types := []any{shards(0, map[string]int{n1: 34, n2: 33, n3: 33})}
	for i, nodes := range [][]any{all(), seen(members(member(n1), member(n2), accused(n3, n1))), seen(members(member(n1), member(n2)))} {
		for sec := range 12 { // an event each
			s.show(float64(60*i+sec), nodes, types...)
		}
		for _, width := range []int64{390, 1000, 1440} {
			s.resize(width)
			s.until(`%s.every((c) => %s < 60)`, "[...document.querySelectorAll('.card')]", spare)
			require.LessOrEqual(t, js[int](s.tab, `document.documentElement.scrollWidth`), int(width), "%d wide", width)
		}
		ends := js[[]float64](s.tab, `["people", "work", "told"].map((c) => document.querySelector("." + c).lastElementChild.getBoundingClientRect().bottom)`)
		require.InDelta(t, ends[0], ends[1], 1)
		require.InDelta(t, ends[0], ends[2], 1)
		require.Greater(t, js[float64](s.tab, `document.getElementById("events").clientHeight`), 340.0)
	}
	for _, scheme := range []string{"light", "dark"} {
		s.media("prefers-color-scheme", scheme)
		for _, pair := range []string{"text card", "quiet card", "quiet back", "good good-back", "bad bad-back", "warn warn-back",
			"text bad-back", "news card", "bad card", "news bad-back"} {
			require.GreaterOrEqual(t, js[float64](s.tab, contrast, pair), 4.5, "%s: %s", scheme, pair)
		}
	}
	s.clean()
}

// spare is how much of a card is empty below what is in it. A list of events takes what it has got.
const spare = `c.getBoundingClientRect().bottom - Math.max(...[...c.querySelectorAll(":scope *")].map((e) => e.getBoundingClientRect().bottom))`

// contrast is the ratio of two colours of the page's style, as WCAG has it.
const contrast = `(() => {
	const css = getComputedStyle(document.documentElement);
	const light = (name) => {
		const hex = css.getPropertyValue("--" + name).trim().slice(1);
		const [r, g, b] = [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
	};
	const [x, y] = %q.split(" ").map(light);
	return Math.max(x, y) / Math.min(x, y);
})()`
