// The stage: the page before a server whose stream says what a test wants, step by step, on a clock of the test's.

package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/admin"
)

type obj = map[string]any

// The members of most boards. Their dashboard calls them n1, n2 and n3.
const n1, n2, n3 = "a:1#1", "b:1#2", "c:1#3"

var origin = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// at is a time of the boards, in seconds since their first one.
func at(sec float64) string {
	return origin.Add(time.Duration(sec * float64(time.Second))).Format(time.RFC3339Nano)
}

// calm is what a node says when nothing is wrong: three members are up. Pairs of a path and a value change it: "health.state".
func calm(self string, changes ...any) obj {
	members := []any{member(n1), member(n2), member(n3)}
	return changed(obj{"at": at(0), "uptime_s": 60.0, "total": 3, "types": []any{}, "decisions": []any{}, "events": []any{},
		"health":      obj{"state": "ready", "since": at(0)},
		"members":     obj{"self": self, "cluster": "7", "leader": n1, "converged": true, "up": 3, "members": members},
		"convergence": obj{"converged": true, "blocking": 0, "blockers": []any{}},
		"peers":       obj{"total": 0, "peers": []any{}}, "partitions": obj{"total": 0, "list": []any{}},
		"rates": obj{"over_s": 1.0, "handled": 9.0, "refused": 0.0, "failed": 0.0, "lost": 0.0, "data_in": 0.0, "data_out": 0.0,
			"control": 0.0, "asks": 0, "times": []any{}, "sums": obj{"refused": 0, "failed": 0, "lost": 0}}}, changes...)
}

// member is one that is up and reachable.
func member(id string, changes ...any) obj {
	return changed(obj{"id": id, "addr": strings.Split(id, "#")[0], "status": "up", "up_number": 1, "roles": []string{},
		"reachable": true}, changes...)
}

func changed(o obj, changes ...any) obj {
	for pair := range slices.Chunk(changes, 2) {
		to, path := o, strings.Split(pair[0].(string), ".")
		for _, key := range path[:len(path)-1] {
			to = to[key].(obj)
		}
		to[path[len(path)-1]] = pair[1]
	}
	return o
}

// accused is a member that others do not hear.
func accused(id string, by ...string) obj {
	return member(id, "reachable", false, "accused_by", append([]string{}, by...))
}

// outage is one of a member.
func outage(member string, shards int, changes ...any) obj {
	return changed(obj{"member": member, "since": at(0), "decided": false, "shards": shards, "text": ""}, changes...)
}

// heard is a node of a board that has answered now; late is one of which the last answer is some seconds old.
func heard(name string, snapshot obj) obj {
	return obj{"name": name, "age_s": 0.1, "snapshot": snapshot}
}

func late(name string, sec float64, why string, snapshot obj) obj {
	o := obj{"name": name, "age_s": sec, "error": why}
	if snapshot != nil {
		o["snapshot"] = snapshot
	}
	return o
}

// shards is where those of the type counter live. Pairs change the report.
func shards(moving int, at map[string]int, changes ...any) obj {
	nodes := []any{}
	for _, id := range slices.Sorted(maps.Keys(at)) {
		nodes = append(nodes, obj{"node": id, "registered": true, "shards": at[id], "entities": 9})
	}
	return obj{"age_s": 0.1, "asked": n1, "moving": moving, "report": changed(obj{"name": "counter", "shards": 100, "homed": 0,
		"entities": 0, "nodes": nodes, "moves": []any{}, "missing": []string{}}, changes...)}
}

// stage serves the page, and a stream of the test's.
type stage struct {
	*tab
	mu     sync.Mutex
	board  []byte // the newest
	refuse string // why the stream is refused
	step   int
	marked bool // the newest board has an event of its own
	schema obj
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{}
	text, err := os.ReadFile("../../admin/openapi.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &s.schema))
	files, err := admin.StartDashboard(admin.DashboardConfig{Nodes: func() []admin.DashboardNode { return nil }})
	require.NoError(t, err)
	t.Cleanup(func() { _ = files.Close(context.Background()) })
	to := &url.URL{Scheme: "http", Host: files.Addr().String()}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	mux.HandleFunc("/v1/watch", s.stream)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.tab = open(t, server.URL, 1440, 900)
	do(s.tab, func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"})
		return chromedp.Void{}, err
	})
	return s
}

// stream sends the newest board, and again each second, so that the page does not take the server for dead.
func (s *stage) stream(w http.ResponseWriter, q *http.Request) {
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	var sent []byte
	for turn := 0; ; turn++ {
		s.mu.Lock()
		board, refuse := s.board, s.refuse
		s.mu.Unlock()
		if refuse != "" && turn > 0 {
			return
		} else if refuse != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(obj{"error": refuse})
			return
		}
		if board != nil && (string(sent) != string(board) || turn%50 == 0) {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", board)
			sent = board
		}
		w.(http.Flusher).Flush()
		select {
		case <-every.C:
		case <-q.Context().Done():
			return
		}
	}
}

// say makes the stream say something, or be refused.
func (s *stage) say(board []byte, refuse string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.board, s.refuse = board, refuse
}

// anew loads the page again: it has heard nothing.
func (s *stage) anew() {
	s.t.Helper()
	s.say(nil, "")
	do(s.tab, chromedp.Reload())
	s.until(`document.querySelector("#stream") && !document.getElementById("banner").children.length`)
}

// show gives the page a board and waits until the page shows it.
func (s *stage) show(sec float64, nodes []any, types ...any) {
	s.t.Helper()
	s.step++
	mark := fmt.Sprintf("step-%d", s.step)
	s.marked = false
	for _, n := range nodes {
		if snap, has := n.(obj)["snapshot"].(obj); has {
			event := obj{"number": 1, "at": at(sec), "kind": "x", "grade": "news", "text": mark, "words": mark}
			snap["events"], s.marked = []any{event}, true
		}
	}
	board := obj{"at": at(sec), "nodes": append([]any{}, nodes...), "types": append([]any{}, types...)}
	text, err := json.Marshal(board)
	require.NoError(s.t, err)
	var plain any
	require.NoError(s.t, json.Unmarshal(text, &plain))
	s.fits("board", s.schema["components"].(obj)["schemas"].(obj)["board"].(obj), plain)
	s.say(text, "")
	if s.marked {
		s.until(`document.getElementById("events").innerText.includes(%q + "\n") || document.getElementById("events").innerText.endsWith(%q)`, mark, mark)
	}
}

// fits demands that a board is as a node would send it: no unknown fields, no missing ones.
func (s *stage) fits(path string, schema obj, v any) {
	s.t.Helper()
	if ref, is := schema["$ref"].(string); is {
		schema = s.schema["components"].(obj)["schemas"].(obj)[strings.TrimPrefix(ref, "#/components/schemas/")].(obj)
	}
	switch v := v.(type) {
	case obj:
		known := schema["properties"].(obj)
		for key, field := range v {
			require.Contains(s.t, known, key, path)
			s.fits(path+"."+key, known[key].(obj), field)
		}
		required, _ := schema["required"].([]any)
		for _, key := range required {
			require.Contains(s.t, v, key, path)
		}
	case nil:
		require.Fail(s.t, "null", path)
	case []any:
		for _, one := range v {
			s.fits(path+"[]", schema["items"].(obj), one)
		}
	}
}

// lines are what the top line says, each with its sign, what to do next in brackets, and where that leads.
const lines = `[...document.getElementById("banner").children].map((e) => {
	const [sign, text, next] = e.children, a = next.querySelector("a");
	return sign.textContent + " " + text.textContent + (next.textContent ? " [" + next.textContent + "]" : "") +
		(a ? " " + a.href.replace(/^.*\/docs\//, "") : "");
}).join("\n")`

// says demands that the top line says this and nothing else, in the colour that the worst of it wants. The title of the
// page is that of this colour, if none is given.
func (s *stage) says(want []string, title string) {
	s.t.Helper()
	if !s.marked { // nobody's events are on the page
		s.until("%s === %q", lines, strings.Join(want, "\n"))
	}
	require.Equal(s.t, strings.Join(want, "\n"), js[string](s.tab, "%s", lines))
	grade, mark := map[string]string{"✕": "bad", "!": "warn", "✓": "good"}[strings.Fields(want[0])[0]], ""
	if grade == "bad" || grade == "warn" {
		mark = want[0][:strings.Index(want[0], " ")+1]
	}
	require.Equal(s.t, strings.TrimSpace("banner "+grade), js[string](s.tab, `document.getElementById("banner").className.trim()`))
	require.Equal(s.t, cmp.Or(title, mark+"kith"), js[string](s.tab, `document.title`))
}
