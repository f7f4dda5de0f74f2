// Tests of the dashboard in a browser: a cluster's life, a click and a keyboard walk, phones and dark mode, a lost
// stream, hostile names.

package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/admin"
)

const enter, tabulator, right = "\r", "\t", "\u0303" // the last as the driver names the arrow key

// A cluster forms, a third node joins and gets its share, it is killed, greys out, and its shards live elsewhere: one
// page shows all of it, which is never loaded again (CARD-5).
func TestLifeOfACluster(t *testing.T) {
	_, address := spawn(t, `dashboard (http://\S+)`, "dev", "--kill", "--rate=5000")
	b := open(t, address, 1360, 900)
	b.until(`%s && %s`, ring("n1"), ring("n2"))
	b.until(`%s > 30 && %s + %s + %s === 100`, hosted("n3"), hosted("n1"), hosted("n2"), hosted("n3"))
	b.until(`document.querySelector("#events").innerText.includes("n3 joins the cluster")`)
	b.until(`document.querySelector("#banner.good")`)
	walk(b)
	b.picture("dashboard-up.png")

	b.until(`%s.classList.contains("unreachable")`, ring("n3"))
	b.until(`document.querySelector("#banner.bad").innerText.match(` +
		`/n3 is unreachable, say n.*\. \d+ shards? there are served again from \d\d:\d\d:\d\d on/)`)
	b.picture("dashboard.png")
	b.until(`%s.classList.contains("gone")`, ring("n3"))
	b.until(`document.querySelector("#shards .row.none") && ` +
		`document.querySelector("#banner").innerText.match(/3[34] shards of counter have no home/)`)
	require.NotEmpty(t, js[string](b, `document.querySelector("#decisions").innerText.match(/downs n3/)[0]`))
	b.picture("dashboard-killed.png")
	b.until(`%s === 50 && %s === 50`, hosted("n1"), hosted("n2"))
	require.Contains(t, js[string](b, `%s.getAttribute("class")`, ring("n3")), "gone")
	require.Less(t, js[float64](b, `Number(getComputedStyle(%s).opacity)`, ring("n3")), 1.0, "grey")
	b.clean()
}

// walk chooses a node by a click, and another one by keys alone.
func walk(b *tab) {
	detail := `document.querySelector("#detail").innerText.includes`
	js[chromedp.Void](b, `%s.setAttribute("id", "clicked")`, ring("n2"))
	do(b, chromedp.Click(chromedp.CSS("#clicked")))
	b.until(`%s("n2, 127.0.0.1:")`, detail)
	require.Equal(b.t, "true", js[string](b, `%s.getAttribute("aria-pressed")`, ring("n2")))

	js[chromedp.Void](b, `document.activeElement.blur(); document.querySelector("#main").focus()`)
	for range 10 {
		if js[bool](b, `document.activeElement.matches("#ring .node")`) {
			break
		}
		do(b, chromedp.KeyEvent(tabulator))
	}
	at := js[string](b, `document.activeElement.getAttribute("aria-label")`)
	require.True(b.t, strings.HasPrefix(at, "n2:"), "the tab stop is where the ring was left: %q", at)
	do(b, chromedp.KeyEvent(right))
	at = js[string](b, `document.activeElement.getAttribute("aria-label")`)
	require.True(b.t, strings.HasPrefix(at, "n3:"), at)
	do(b, chromedp.KeyEvent(enter))
	b.until(`%s("n3, 127.0.0.1:")`, detail)
	require.Equal(b.t, 1, js[int](b, `document.querySelectorAll('#ring [tabindex="0"]').length`), "one tab stop")
	do(b, chromedp.KeyEvent(enter))
	b.until(`%s("Choose a node")`, detail)
}

// A phone in the dark, and every width between it and a desk: nothing is cut off at the side.
func TestPhoneAndDarkMode(t *testing.T) {
	_, at := spawn(t, `admin-started address=(\S+)`, "run", "--listen=127.0.0.1:0", "--demo", "--admin=127.0.0.1:0")
	b := open(t, "http://"+at+"/", 1360, 900)
	b.until(`document.querySelector("#banner.good")`)
	light := js[string](b, `getComputedStyle(document.body).backgroundColor`)
	b.media("prefers-color-scheme", "dark")
	b.until(`getComputedStyle(document.body).backgroundColor !== %q`, light)
	ink := js[[]string](b, `[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]`)
	require.NotEqual(t, ink[0], ink[1])
	for _, width := range []int64{320, 375, 600, 768, 1024, 1101, 1360} {
		do(b, chromedp.EmulateViewport(width, 800))
		b.until(`innerWidth === %d`, width)
		require.LessOrEqual(t, js[int](b, `document.documentElement.scrollWidth`), int(width), "%d wide", width)
		if width == 375 {
			b.picture("dashboard-phone.png")
		}
	}
	b.clean()
}

// The server stands still, and then dies: the page says so and greys out, and is live again when the server is.
func TestLostStream(t *testing.T) {
	node, at := spawn(t, `admin-started address=(\S+)`, "run", "--listen=127.0.0.1:0", "--demo", "--admin=127.0.0.1:0")
	b := open(t, "http://"+at+"/", 1000, 800)
	b.until(`document.querySelector("#banner.good")`)
	lost := `document.body.classList.contains("stale") && document.querySelector("#stream").innerText.match(/last heard \d+ s ago/)`
	require.NoError(t, node.Process.Signal(syscall.SIGSTOP))
	b.until(`%s && document.querySelector("#stream").innerText.includes("silent")`, lost)
	require.Contains(t, js[string](b, `document.querySelector("#banner").innerText`), "Not live")
	b.picture("dashboard-lost.png")
	require.NoError(t, node.Process.Signal(syscall.SIGCONT))
	b.until(`!document.body.classList.contains("stale") && document.querySelector("#banner.good")`)
	require.NoError(t, node.Process.Kill())
	b.until("%s", lost)
	spawn(t, `admin-started address=(\S+)`, "run", "--listen=127.0.0.1:0", "--demo", "--admin="+at)
	b.until(`!document.body.classList.contains("stale") && document.querySelector("#banner.good")`)
	b.clean()
}

// Whatever part of the page fails to load the first time, or hangs, the page comes up.
func TestPartsThatFailToLoad(t *testing.T) {
	_, at := spawn(t, `admin-started address=(\S+)`, "run", "--listen=127.0.0.1:0", "--demo", "--admin=127.0.0.1:0")
	to := &url.URL{Scheme: "http", Host: at}
	for _, broken := range [][]string{{"/page/main.js"}, {"/page/dom.js"}, {"/page/uplot.js"}, {"/page/page.css"}, {"/page/stream.js"},
		{"/page/main.js", "/page/model.js", "/page/ring.js", "/page/uplot.js", "/page/page.css", "/page/uplot.css"}} {
		var tried sync.Map
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}
		page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if _, again := tried.LoadOrStore(q.URL.Path, true); !again && slices.Contains(broken, q.URL.Path) {
				if len(broken) == 1 && broken[0] == "/page/stream.js" {
					<-q.Context().Done() // nothing is ever said
					return
				}
				http.Error(w, "no room", http.StatusServiceUnavailable)
				return
			}
			proxy.ServeHTTP(w, q)
		}))
		t.Cleanup(page.Close)
		b := open(t, page.URL, 1000, 800)
		b.until(`document.querySelector("#banner.good") && getComputedStyle(document.querySelector(".skip")).position === "absolute"`)
		b.until(`sessionStorage.getItem("failed") === null`)
		b.clean()
	}
}

// What peers are called is shown as it is written, and never becomes part of the page.
func TestHostileNames(t *testing.T) {
	const evil = `"><img src=x onerror="window.pwned=1"><script>window.pwned=2</script><svg onload="window.pwned=3">`
	now := "2026-01-02T03:04:05Z"
	member := func(id string) map[string]any {
		return map[string]any{"id": id, "addr": id, "status": "up", "roles": []string{evil}, "app_version": evil,
			"reachable": false, "accused_by": []string{evil}}
	}
	peer := map[string]any{"peer": evil + "2", "watched": true, "phi": 9}
	snapshot := map[string]any{"at": now, "total": 2, "health": map[string]any{"state": "ready", "since": now, "reason": evil},
		"members":     map[string]any{"self": evil, "cluster": evil, "leader": evil, "members": []any{member(evil), member(evil + "2")}},
		"convergence": map[string]any{"for_s": 3, "blockers": []any{map[string]any{"member": evil, "why": evil}}},
		"peers":       map[string]any{"total": 1, "peers": []any{peer}},
		"types":       []any{map[string]any{"name": evil, "shards": 9, "hosted": 3}},
		"partitions": map[string]any{"total": 1, "list": []any{map[string]any{"path": evil, "handoff": evil, "has": 1, "wanted": 1,
			"instances": []string{evil}, "changes": []any{map[string]any{"slot": 0, "from": evil, "to": evil}}}}},
		"rates":     map[string]any{"over_s": 1, "handled": 3, "lost": 1, "times": []any{map[string]any{"type": evil, "measure": "ask"}}},
		"decisions": []any{map[string]any{"at": now, "text": evil}},
		"events":    []any{map[string]any{"number": 1, "at": now, "kind": evil, "grade": evil, "text": evil}}}
	report := map[string]any{"name": evil, "shards": 9, "coordinator": evil, "missing": []string{evil},
		"nodes": []any{map[string]any{"node": evil, "registered": true, "shards": 3}},
		"moves": []any{map[string]any{"shard": 1, "from": evil, "to": evil, "phase": "holds"}}}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var v any = report
		if q.URL.Path == "/v1/snapshot" {
			v = snapshot
		}
		_ = json.NewEncoder(w).Encode(v)
	}))
	defer node.Close()
	s, err := admin.StartDashboard(admin.DashboardConfig{Nodes: func() []admin.DashboardNode {
		return []admin.DashboardNode{{Name: evil, Address: node.URL}, {Name: evil + "3", Address: "127.0.0.1:1"}}
	}})
	require.NoError(t, err)
	defer func() { _ = s.Close(context.Background()) }()
	b := open(t, "http://"+s.Addr().String()+"/", 1000, 800)
	b.until(`document.querySelector("#events").innerText.includes("<script>") && document.querySelector("#shards .row")`)
	b.until(`document.querySelector("#partitions").innerText.includes("onerror=")`)
	js[chromedp.Void](b, `document.querySelector("#ring .node").dispatchEvent(new Event("click"))`)
	b.until(`document.querySelector("#detail").innerText.includes("onerror=")`)
	b.picture("dashboard-hostile.png")
	require.Zero(t, js[int](b, `document.querySelectorAll("img, body script, svg[onload], [onerror]").length`))
	require.True(t, js[bool](b, `window.pwned === undefined`))
	require.LessOrEqual(t, js[int](b, `document.documentElement.scrollWidth`), 1000)
	b.clean()
}

// TestWhereIsX: somebody types an id and sees its home; an id that nobody has dealt with has none; hostile ones are text;
// a page of several nodes asks nobody (OPS-1).
func TestWhereIsX(t *testing.T) {
	started := `admin-started address=(\S+)`
	_, a1 := spawn(t, started, "run", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--demo", "--demo-shards=1")
	b := open(t, "http://"+a1, 1360, 900)
	ask := func(id string) {
		js[bool](b, `(document.getElementById("where-id").value = %q, document.querySelector("#where button").click(), true)`, id)
	}
	b.until(`!document.getElementById("where").hidden && document.getElementById("where-type").value === "counter"`)
	home := `document.getElementById("where-home").innerText`
	b.until(`(document.querySelector("#where button").click(), %s.includes("Type an id."))`, home)
	ask("lobby")
	b.until(`%s.includes("lobby:") && %s.includes("shard 0")`, home, home)
	ask("<b>x</b>&?#/")
	b.until(`%s.startsWith("<b>x</b>&?#/:")`, home)
	require.Zero(t, js[int](b, `document.querySelectorAll("#where-home b").length`))
	b.picture("dashboard-where.png")
	b.clean()

	_, board := spawn(t, `dashboard (http://\S+)`, "dashboard", "n1="+a1)
	b = open(t, board, 1360, 900)
	b.until(`document.querySelector("#ring .node.up")`)
	require.True(t, js[bool](b, `document.getElementById("where").hidden`))
	b.clean()
}
