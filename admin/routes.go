// Routes: what is served where, who may change something, and how answers and errors are written.

package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // of the description
	"log/slog"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith"
)

//go:embed openapi.json
var openAPI []byte

// route is one request that is served. One that changes something needs the token, as does one that shows what is not
// for everybody.
type route struct {
	method, path string
	changes      bool
	serve        func(*views, http.ResponseWriter, *http.Request)
	params       []string // of the query, of one that changes something: no other is taken
}

var routes = []route{
	{"GET", "/health/started", false, (*views).started, nil},
	{"GET", "/health/ready", false, (*views).ready, nil},
	{"GET", "/health/alive", false, (*views).alive, nil},
	{"GET", "/v1/members", false, (*views).members, nil},
	{"GET", "/v1/members/{addr}", false, (*views).member, nil},
	{"GET", "/v1/convergence", false, (*views).convergence, nil},
	{"GET", "/v1/decisions", false, (*views).decisions, nil},
	{"GET", "/v1/types", false, (*views).types, nil},
	{"GET", "/v1/types/{name}", false, (*views).shards, nil},
	{"GET", "/v1/stats", false, (*views).stats, nil},
	{"GET", "/v1/peers", false, (*views).peers, nil},
	{"GET", "/v1/rates", false, (*views).rates, nil},
	{"GET", "/v1/snapshot", false, (*views).snapshot, nil},
	{"GET", "/v1/watch", false, (*views).watch, nil},
	{"GET", "/v1/events", false, (*views).events, nil},
	{"GET", "/v1/shard-events", false, (*views).shardEvents, nil},
	{"GET", "/v1/flight-record", true, (*views).flightRecord, nil},
	{"GET", "/openapi.json", false, (*views).describe, nil},
	{"POST", "/v1/join", true, (*views).join, []string{"seeds"}},
	{"POST", "/v1/leave", true, (*views).leave, nil},
	{"POST", "/v1/drain", true, (*views).drain, nil},
	{"POST", "/v1/undrain", true, (*views).undrain, nil},
	{"POST", "/v1/rebalancing/pause", true, (*views).pause, nil},
	{"POST", "/v1/rebalancing/resume", true, (*views).resume, nil},
	{"POST", "/v1/types/{name}/move", true, (*views).move, []string{"shard", "to"}},
	{"POST", "/v1/members/{addr}/down", true, (*views).down, nil},
	{"POST", "/v1/prepare-full-shutdown", true, (*views).prepare, nil},
}

// Handler returns what Start serves, for a program that has a server of its own. cfg is used but for Listen, TLS and
// Insecure: what protects it is the caller's. It keeps the newest events until the node has ended.
func Handler(node *kith.Node, cfg Config) http.Handler {
	return handlerOf(node, cfg.withDefaults(), writeTime, &counters{})
}

// handlerOf is Handler, of what has its defaults, with its counters and the time for an event to a slow reader.
func handlerOf(node *kith.Node, cfg Config, write time.Duration, c *counters) http.Handler {
	door := &door{token: cfg.Token, log: cfg.Logger, counts: c}
	v := viewsOf(node, cfg, placesFor(cfg.Streams, write, c))
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, q *http.Request) {
			if r.changes {
				if !door.admits(w, q) || !r.takes(w, q) {
					return
				}
				cfg.Logger.Info("asked over the admin interface", "path", q.URL.Path, "from", q.RemoteAddr)
			}
			r.serve(v, w, q)
		})
	}
	servePage(mux)
	if cfg.Metrics != nil {
		mux.Handle("GET /metrics", cfg.Metrics)
	}
	if cfg.Profiling {
		for path, serve := range map[string]http.HandlerFunc{"/debug/pprof/": pprof.Index,
			"/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
			"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace} {
			mux.HandleFunc("GET "+path, func(w http.ResponseWriter, q *http.Request) {
				if cfg.Token == "" || door.admits(w, q) {
					_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // package pprof knows how long it takes
					serve(w, q)
				}
			})
		}
	}
	return checked(c, write, mux)
}

// takes reports whether a request has no parameter but those of its route, each once; else it has been answered. One
// that was misspelt would have something else done than was meant.
func (r *route) takes(w http.ResponseWriter, q *http.Request) bool {
	for name, values := range q.URL.Query() {
		switch {
		case !slices.Contains(r.params, name):
			fail(w, http.StatusBadRequest, "no parameter "+called(name)+" is known here")
			return false
		case len(values) > 1 && name != "seeds":
			fail(w, http.StatusBadRequest, name+" is given twice")
			return false
		}
	}
	return true
}

// door lets in who has the token.
type door struct {
	token  string
	log    *slog.Logger
	counts *counters
}

// admits reports whether a request has the token; else it has been answered.
func (d *door) admits(w http.ResponseWriter, q *http.Request) bool {
	if d.token == "" {
		d.counts.tokensRefused.Add(1)
		fail(w, http.StatusForbidden, "this interface is for reading only: no token is configured")
		return false
	}
	got, is := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	want, have := sha256.Sum256([]byte(d.token)), sha256.Sum256([]byte(got))
	if !is || subtle.ConstantTimeCompare(want[:], have[:]) != 1 {
		d.counts.tokensRefused.Add(1)
		d.counts.tell(d.log, "a request without the token was refused", q)
		w.Header().Set("WWW-Authenticate", "Bearer")
		fail(w, http.StatusUnauthorized, "the token is missing or wrong: Authorization: Bearer TOKEN")
		return false
	}
	return true
}

func (a *api) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI)
}
