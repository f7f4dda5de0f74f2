// Routes: what is served where, who may change something, and how answers and errors are written.

package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // of the description
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"

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
}

var routes = []route{
	{"GET", "/health/started", false, (*views).started},
	{"GET", "/health/ready", false, (*views).ready},
	{"GET", "/health/alive", false, (*views).alive},
	{"GET", "/v1/members", false, (*views).members},
	{"GET", "/v1/members/{addr}", false, (*views).member},
	{"GET", "/v1/convergence", false, (*views).convergence},
	{"GET", "/v1/decisions", false, (*views).decisions},
	{"GET", "/v1/types", false, (*views).types},
	{"GET", "/v1/types/{name}", false, (*views).shards},
	{"GET", "/v1/stats", false, (*views).stats},
	{"GET", "/v1/peers", false, (*views).peers},
	{"GET", "/v1/rates", false, (*views).rates},
	{"GET", "/v1/snapshot", false, (*views).snapshot},
	{"GET", "/v1/watch", false, (*views).watch},
	{"GET", "/v1/events", false, (*views).events},
	{"GET", "/v1/shard-events", false, (*views).shardEvents},
	{"GET", "/v1/flight-record", true, (*views).flightRecord},
	{"GET", "/openapi.json", false, (*views).describe},
	{"POST", "/v1/join", true, (*views).join},
	{"POST", "/v1/leave", true, (*views).leave},
	{"POST", "/v1/drain", true, (*views).drain},
	{"POST", "/v1/undrain", true, (*views).undrain},
	{"POST", "/v1/rebalancing/pause", true, (*views).pause},
	{"POST", "/v1/rebalancing/resume", true, (*views).resume},
	{"POST", "/v1/types/{name}/move", true, (*views).move},
	{"POST", "/v1/members/{addr}/down", true, (*views).down},
	{"POST", "/v1/prepare-full-shutdown", true, (*views).prepare},
}

// Handler returns what Start serves, for a program that has a server of its own. cfg is used but for Listen, TLS and
// Insecure: what protects it is the caller's. It keeps the newest events until the node has ended.
func Handler(node *kith.Node, cfg Config) http.Handler {
	cfg = cfg.withDefaults()
	door := &door{token: cfg.Token, log: cfg.Logger}
	v := viewsOf(node, cfg)
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, q *http.Request) {
			if r.changes && !door.admits(w, q) {
				return
			}
			if r.changes {
				cfg.Logger.Info("asked over the admin interface", "path", q.URL.Path, "from", q.RemoteAddr)
			}
			q.Body = http.MaxBytesReader(w, q.Body, maxBody)
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
					serve(w, q)
				}
			})
		}
	}
	return mux
}

// door lets in who has the token.
type door struct {
	token string
	log   *slog.Logger
}

// admits reports whether a request has the token; else it has been answered.
func (d *door) admits(w http.ResponseWriter, q *http.Request) bool {
	if d.token == "" {
		fail(w, http.StatusForbidden, "this interface is for reading only: no token is configured")
		return false
	}
	got, is := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	want, have := sha256.Sum256([]byte(d.token)), sha256.Sum256([]byte(got))
	if !is || subtle.ConstantTimeCompare(want[:], have[:]) != 1 {
		d.log.Warn("a request without the token was refused", "path", q.URL.Path, "from", q.RemoteAddr)
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
