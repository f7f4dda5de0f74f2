// Routes: what is served where, which requests may change something, and how answers and errors are written.

package admin

import (
	_ "embed" // of the description
	"net/http"
	"net/http/pprof"
	"slices"
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
	cost         cost
	serve        func(*views, http.ResponseWriter, *http.Request)
	params       []string // of the query, of one that changes something: no other is taken
}

var routes = []route{
	{"GET", "/health/started", false, costProbe, (*views).started, nil},
	{"GET", "/health/ready", false, costProbe, (*views).ready, nil},
	{"GET", "/health/alive", false, costProbe, (*views).alive, nil},
	{"GET", "/v1/members", false, costHeavy, (*views).members, nil},
	{"GET", "/v1/members/{addr}", false, costHeavy, (*views).member, nil},
	{"GET", "/v1/convergence", false, costHeavy, (*views).convergence, nil},
	{"GET", "/v1/decisions", false, costHeavy, (*views).decisions, nil},
	{"GET", "/v1/types", false, costHeavy, (*views).types, nil},
	{"GET", "/v1/types/{name}", false, costWaits, (*views).shards, nil},
	{"GET", "/v1/types/{name}/home", false, costWaits, (*views).home, nil},
	{"GET", "/v1/partitions", false, costHeavy, (*views).partitions, nil},
	{"GET", "/v1/values", false, costHeavy, (*views).stores, nil},
	{"GET", "/v1/values/{name}", false, costWaits, (*views).storeOf, nil},
	{"GET", "/v1/values/{name}/key", false, costWaits, (*views).key, nil},
	{"GET", "/v1/stats", false, costHeavy, (*views).stats, nil},
	{"GET", "/v1/peers", false, costHeavy, (*views).peers, nil},
	{"GET", "/v1/rates", false, costHeavy, (*views).rates, nil},
	{"GET", "/v1/snapshot", false, costHeavy, (*views).snapshot, nil},
	{"GET", "/v1/watch", false, costStream, (*views).watch, nil},
	{"GET", "/v1/events", false, costStream, (*views).events, nil},
	{"GET", "/v1/shard-events", false, costStream, (*views).shardEvents, nil},
	{"GET", "/v1/flight-record", true, costHeavy, (*views).flightRecord, nil},
	{"GET", "/openapi.json", false, costLight, (*views).describe, nil},
	{"POST", "/v1/join", true, costWaits, (*views).join, []string{"seeds", "leave"}},
	{"POST", "/v1/leave", true, costWaits, (*views).leave, nil},
	{"POST", "/v1/drain", true, costWaits, (*views).drain, nil},
	{"POST", "/v1/undrain", true, costWaits, (*views).undrain, nil},
	{"POST", "/v1/rebalancing/pause", true, costWaits, (*views).pause, nil},
	{"POST", "/v1/rebalancing/resume", true, costWaits, (*views).resume, nil},
	{"POST", "/v1/types/{name}/move", true, costWaits, (*views).move, []string{"shard", "to"}},
	{"POST", "/v1/types/{name}/ask", true, costWaits, (*views).ask, []string{"id", "within"}},
	{"POST", "/v1/types/{name}/tell", true, costWaits, (*views).tell, []string{"id"}},
	{"POST", "/v1/members/{addr}/down", true, costWaits, (*views).down, nil},
	{"POST", "/v1/prepare-full-shutdown", true, costWaits, (*views).prepare, nil},
	{"POST", "/v1/refound", true, costWaits, (*views).refound, nil},
}

// Handler returns what Start serves, for a program that has a server of its own. cfg is used but for Listen, TLS and
// Insecure: what protects it is the caller's. It keeps the newest events until the node has ended.
func Handler(node *kith.Node, cfg Config) http.Handler {
	return handlerOf(node, cfg.withDefaults(), writeTime, &keeper{counts: newCounters(spareConns)})
}

// handlerOf is Handler, of what has its defaults, with its keeper and the time for an event to a slow reader.
func handlerOf(node *kith.Node, cfg Config, write time.Duration, keeper *keeper) http.Handler {
	c := keeper.counts
	keeper.log = cfg.Logger
	keeper.want(cfg.Token)
	c.streams.init(cfg.Streams, write)
	v := viewsOf(node, cfg, c)
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.method+" "+r.path, c.room(r.cost, func(w http.ResponseWriter, q *http.Request) {
			if r.changes {
				if !keeper.admits(w, q) || !r.takes(w, q) {
					return
				}
				cfg.Logger.Info("asked over the admin interface", "path", q.URL.Path, "from", q.RemoteAddr)
			}
			r.serve(v, w, q)
		}))
	}
	servePage(mux, c)
	if cfg.Metrics != nil {
		mux.Handle("GET /metrics", c.room(costHeavy, cfg.Metrics.ServeHTTP))
	}
	if cfg.Profiling {
		serveProfiles(mux, keeper, c)
	}
	return c.paced(keeper, checked(c, write, mux))
}

// serveProfiles adds those of the process to mux: one at a time, for some stop all that runs.
func serveProfiles(mux *http.ServeMux, keeper *keeper, c *counters) {
	one := make(chan struct{}, 1)
	for path, serve := range map[string]http.HandlerFunc{"/debug/pprof/": pprof.Index,
		"/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace} {
		mux.Handle("GET "+path, c.room(costWaits, func(w http.ResponseWriter, q *http.Request) {
			if !keeper.open() && !keeper.admits(w, q) {
				return
			}
			select {
			case one <- struct{}{}:
				defer func() { <-one }()
			default:
				c.busy(w, "a profile is being taken")
				return
			}
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // package pprof knows how long it takes
			serve(w, q)
		}))
	}
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

func (a *api) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI)
}
