// Tests of the metrics: what a scrape of a real node shows, by the rules of the format, within its bounds.

package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

type handler struct{}

func (handler) Receive(c *kith.Context, payload []byte) error { return c.Reply(payload) }
func (handler) Stop(*kith.Context)                            {}

// start starts a node with some types, with these metrics.
func start(t *testing.T, m *Metrics, types int, seeds ...string) *kith.Node {
	t.Helper()
	n, err := kith.Start(t.Context(), kith.Config{Seeds: seeds, Latency: m.Observe, LatencyEvery: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	m.Watch(n)
	for i := range types {
		_, err = n.Register(kith.EntityType{Name: fmt.Sprintf("type%d", i), Shards: 4, Mode: kith.Inline,
			New: func(string, kith.Fence) kith.Handler { return handler{} }})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, n.Ready(ctx))
	return n
}

// value returns one sample of a scrape, -1 when it is not there.
func value(text, sample string) float64 {
	at := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(sample) + ` (\S+)$`).FindStringSubmatch(text)
	if at == nil {
		return -1
	}
	var v float64
	_, _ = fmt.Sscan(at[1], &v)
	return v
}

// A scrape shows the node, its types and its peers, and keeps the format's rules; types and peers beyond the bounds are
// summed up.
func TestScrape(t *testing.T) {
	m, err := New(Config{Types: 2, Peers: 1})
	require.NoError(t, err)
	require.Equal(t, 0, testutil.CollectAndCount(m), "there is no node yet")
	a := start(t, m, 4)
	var others []*kith.Node
	for range 2 {
		other, err := New(Config{})
		require.NoError(t, err)
		others = append(others, start(t, other, 0, a.Addr().String()))
	}
	for _, r := range a.Regions() {
		for i := range 8 {
			_, err := r.Ask(t.Context(), fmt.Sprint(i), []byte("x"))
			require.NoError(t, err)
		}
	}
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	var text string
	scrape := func() bool { // what handlers did is up to a tenth of a second old
		answer, err := http.Get(server.URL)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s", body)
		text = string(body)
		return value(text, `kith_handled_total{type="other"}`) == 16 && value(text, `kith_members{status="up"}`) == 3
	}
	require.Eventually(t, scrape, time.Minute, time.Millisecond)
	for sample, want := range map[string]float64{
		`kith_state{state="ready"}`: 1, `kith_state{state="suspended"}`: 0, `kith_ready`: 1, `kith_leader`: -2,
		`kith_members_unreachable`: 0, `kith_handled_total{type="type0"}`: 8, `kith_handled_total{type="type2"}`: -1,
		`kith_entities{type="other"}`:              16,
		`kith_handler_seconds_count{type="type0"}`: 8, `kith_ask_seconds_count{type="other"}`: 16,
		`kith_moves_total{outcome="done"}`: 0, `kith_moves_total{outcome="returned"}`: 0, `kith_suspended`: 0,
	} {
		if want != -2 {
			require.Equal(t, want, value(text, sample), sample)
		} else {
			require.GreaterOrEqual(t, value(text, sample), 0.0, sample)
		}
	}
	require.Positive(t, value(text, `kith_connections{lane="control",direction="out"}`)+
		value(text, `kith_connections{direction="out",lane="control"}`))
	require.Equal(t, 2, strings.Count(text, "\nkith_peer_round_trip_seconds{"), "one peer and the others")
	require.Contains(t, text, `kith_peer_sent_bytes_total{peer="other"}`)
	require.Contains(t, text, "\ngo_goroutines ")

	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(m))
	problems, err := testutil.GatherAndLint(r)
	require.NoError(t, err)
	require.Empty(t, problems)
	for _, n := range others {
		require.NoError(t, n.Close())
	}
}

// A node that has ended is shown as such.
func TestScrapeOfANodeThatEnded(t *testing.T) {
	m, err := New(Config{})
	require.NoError(t, err)
	n := start(t, m, 1)
	require.NoError(t, n.Close())
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP kith_ready 1 while the node may be sent work.
# TYPE kith_ready gauge
kith_ready 0
# HELP kith_state 1 for the state that the node is in.
# TYPE kith_state gauge
kith_state{state="ended"} 1
kith_state{state="leaving"} 0
kith_state{state="ready"} 0
kith_state{state="starting"} 0
kith_state{state="suspended"} 0
kith_state{state="waiting"} 0
`), "kith_ready", "kith_state"))
}

// The hook takes times from many goroutines, and as many labels as there may be.
func TestObserve(t *testing.T) {
	m, err := New(Config{Types: 3})
	require.NoError(t, err)
	t.Run("many", func(t *testing.T) {
		for g := range 4 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for i := range 1000 {
					m.Observe(kith.HandlerTime, fmt.Sprint((i+g)%7), time.Millisecond)
				}
			})
		}
	})
	require.Equal(t, 4, testutil.CollectAndCount(m, "kith_handler_seconds"), "three types and the others")
	_, err = New(Config{Types: -1, Peers: -1})
	require.ErrorIs(t, err, ErrBadConfig)
	require.ErrorContains(t, err, "Types")
	require.ErrorContains(t, err, "Peers")
}

// A time costs no allocation once its type is known, so that it may be taken on the hot path's sample.
func TestObserveAllocatesNothing(t *testing.T) {
	m, err := New(Config{})
	require.NoError(t, err)
	m.Observe(kith.AskTime, "orders", time.Millisecond)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { m.Observe(kith.AskTime, "orders", time.Millisecond) }), 0.0)
}

// docs/metrics.md lists every metric, and no other.
func TestPageListsAllMetrics(t *testing.T) {
	page, err := os.ReadFile("../docs/metrics.md")
	require.NoError(t, err)
	var have, listed []string
	for _, f := range slices.Concat(ofNode, ofTransport) {
		have = append(have, f.name)
	}
	for _, f := range ofType {
		have = append(have, f.name)
	}
	for _, f := range ofPeer {
		have = append(have, f.name)
	}
	have = append(have, "kith_refused_total", "kith_handler_seconds", "kith_ask_seconds")
	for _, row := range regexp.MustCompile("(?m)^\\| `(kith_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, row[1])
	}
	require.ElementsMatch(t, have, listed)
}

// exist are the names of all metrics of a node.
func exist() map[string]bool {
	have := map[string]bool{"kith_refused_total": true, "kith_handler_seconds_bucket": true,
		"kith_ask_seconds_bucket": true}
	for _, f := range slices.Concat(ofNode, ofTransport) {
		have[f.name] = true
	}
	for _, f := range ofType {
		have[f.name] = true
	}
	for _, f := range ofPeer {
		have[f.name] = true
	}
	return have
}

// The shipped alerts are about metrics that there are.
func TestRulesNameMetrics(t *testing.T) {
	rules, err := os.ReadFile("../deploy/prometheus/kith.rules.yml")
	require.NoError(t, err)
	named := regexp.MustCompile(`kith_[a-z_]+`).FindAllString(string(rules), -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		require.True(t, exist()[name], name)
	}
}

// The shipped dashboard shows metrics that there are, by labels that they have; its panels do not lie on each other.
func TestDashboardNamesMetrics(t *testing.T) {
	text, err := os.ReadFile("../deploy/grafana/kith.json")
	require.NoError(t, err)
	var d struct {
		Panels []struct {
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
	labels := map[string][]string{"kith_refused_total": {"type", "reason"}}
	for _, f := range slices.Concat(ofNode, ofTransport) {
		labels[f.name] = f.labels
	}
	for _, f := range ofType {
		labels[f.name] = []string{"type"}
	}
	for _, f := range ofPeer {
		labels[f.name] = []string{"peer"}
	}
	for _, histogram := range []string{"kith_handler_seconds_bucket", "kith_ask_seconds_bucket"} {
		labels[histogram] = []string{"type", "le"}
	}
	shown, taken := 0, map[[2]int]string{}
	for _, p := range d.Panels {
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[at], p.Title)
				taken[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			shown++
			names := regexp.MustCompile(`kith_[a-z_]+`).FindAllString(target.Expr, -1)
			for _, name := range names {
				require.True(t, exist()[name], "%s: %s", p.Title, name)
			}
			if by := regexp.MustCompile(`by \(([a-z, ]+)\)`).FindStringSubmatch(target.Expr); by != nil {
				for label := range strings.SplitSeq(by[1], ", ") {
					require.Contains(t, append(labels[names[0]], "instance"), label, p.Title)
				}
			}
		}
	}
	require.Greater(t, shown, 20)
}

// slow is the writer of a reader that takes nothing until it may.
type slow struct {
	*httptest.ResponseRecorder
	begins chan struct{}
	goOn   chan struct{}
}

func (s slow) Write(p []byte) (int, error) {
	s.begins <- struct{}{}
	<-s.goOn
	return s.ResponseRecorder.Write(p)
}

// Readers that take their time with an answer, however many, keep nobody from having his.
func TestSlowScrapers(t *testing.T) {
	m, err := New(Config{})
	require.NoError(t, err)
	h := m.Handler()
	begins, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	const many = 20
	for range many {
		go func() {
			h.ServeHTTP(slow{httptest.NewRecorder(), begins, goOn}, httptest.NewRequest("GET", "/metrics", nil))
			over <- struct{}{}
		}()
	}
	for range many {
		<-begins
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "go_goroutines")
	close(goOn)
	for range many {
		<-over
	}
}
