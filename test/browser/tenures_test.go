// What the page says of tenures: who vouches for whom, how near renewals come to the end, what lost shards wait for.

package browser

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The card has a row for each node that answers and a column for each seat; without tenures there is none. A seat that
// vouches no more, a node without a tenure, and outages that are late or have no end in sight look like it (OPS-1,
// MEM-10).
func TestWhatThePageSaysOfTenures(t *testing.T) {
	const self, other, now = "a:1#1", "b:1#2", "2026-01-02T03:04:05Z"
	tenure := map[string]any{"held": true, "since": now, "left_s": 2.04, "least_s": 1.87, "text": "two of three",
		"seats": []any{map[string]any{"holder": self, "left_s": 2.04}, map[string]any{"holder": other, "left_s": 0},
			map[string]any{"left_s": 0}}}
	snapshot := func(tenure any, outage ...any) map[string]any {
		s := calm(self)
		m := s["members"].(map[string]any)
		if tenure != nil {
			m["tenure"] = tenure
		}
		m["outages"] = outage
		return s
	}
	b := open(t, told(t, snapshot(tenure, map[string]any{"member": other, "since": now, "decided": true, "shards": 7,
		"served_by": "2026-01-02T03:04:30Z", "late": true}), nil), 1360, 900)
	card := `document.getElementById("tenures").innerText`
	b.until(`%s.includes("2.0 s")`, card)
	require.Regexp(t, `(?s)Node\s+Held for\s+At least\s+1: n1\s+2: b:1\s+3: empty\s+n1\s+2\.0 s\s+1\.9 s\s+2\.0 s\s+–\s+–`,
		js[string](b, "%s", card))
	b.until(`document.querySelector("#vouched tr.warn")`)
	require.Regexp(t, `7 shards that lived there were to be served again from \d\d:04:30 on, and wait\.`, js[string](b, "%s", card))
	b.picture("dashboard-tenures.png")
	for _, width := range []int64{320, 768} {
		b.resize(width)
		require.LessOrEqual(t, js[int](b, `document.documentElement.scrollWidth`), int(width), "%d wide", width)
	}
	b.clean()

	tenure["held"], tenure["left_s"] = false, 0
	b = open(t, told(t, snapshot(tenure, map[string]any{"member": other, "since": now, "shards": 7, "no_quorum": true}), nil),
		1360, 900)
	b.until(`document.querySelector("#vouched tr.bad")`)
	require.Contains(t, js[string](b, "%s", card), "no tenure")
	require.Contains(t, js[string](b, "%s", card), "7 shards there wait for a quorum of the seats, or an operator.")
	b.clean()

	b = open(t, told(t, snapshot(nil), nil), 1360, 900)
	b.until(`document.querySelector("#ring .node.up")`)
	require.True(t, js[bool](b, `document.getElementById("tenures").hidden`))
	b.clean()
}

// Three node processes with tenures: each seat vouches for each of them; the seat of one that is killed is empty
// then, for nobody else is there (MEM-10).
func TestTenuresOfProcesses(t *testing.T) {
	started := `admin-started address=(\S+)`
	first := []string{"run", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--tenure", "--log-format=text"}
	_, node := spawn(t, `node-started.* node=(\S+)#`, append(first, "--log-level=info")...)
	args := []string{"dashboard"}
	var last interface{ Kill() error }
	for i := range 2 {
		cmd, at := spawn(t, started, append(first, "--seeds="+node)...)
		args, last = append(args, fmt.Sprintf("n%d=%s", i+2, at)), cmd.Process
	}
	_, board := spawn(t, `dashboard (http://\S+)`, args...)
	b := open(t, board, 1360, 900)
	b.until(`document.querySelectorAll("#vouched tr").length === 2 && ` +
		`[...document.querySelectorAll("#vouched td")].every((c) => / s$/.test(c.innerText))`)
	b.picture("dashboard-tenures-live.png")
	require.NoError(t, last.Kill())
	b.until(`document.getElementById("seats").innerText.includes("empty") && ` +
		`document.getElementById("vouched").innerText.includes("–")`)
	b.clean()
}
