// Dashboard: the embedded page, for one node or for several, and what a browser may do with it.

package admin

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
)

//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page use what the same server serves, and nothing else: no style in the document, no script but
// the one that loads a broken page again, no other host, no frame around it.
var pagePolicy = "default-src 'none'; script-src 'self' 'sha256-" + scriptSum() + "'; style-src 'self'; " +
	"img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// scriptSum is the sum, as a policy has it, of the script in the document: it must be there when no other file is.
func scriptSum() string {
	body, err := pageFiles.ReadFile("page/index.html")
	if err != nil { // it is embedded
		panic(err)
	}
	_, after, _ := strings.Cut(string(body), "<script>")
	script, _, _ := strings.Cut(after, "</script>")
	sum := sha256.Sum256([]byte(script))
	return base64.StdEncoding.EncodeToString(sum[:])
}

var pageTypes = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}

// servePage adds the page to mux: GET / and what it consists of.
func servePage(mux *http.ServeMux, c *counters) {
	files, err := pageFiles.ReadDir("page")
	if err != nil { // it is embedded
		panic(err)
	}
	for _, f := range files {
		body, err := pageFiles.ReadFile(path.Join("page", f.Name()))
		if err != nil {
			panic(err)
		}
		pattern := "GET /page/" + f.Name()
		if f.Name() == "index.html" {
			pattern = "GET /{$}"
		}
		mux.Handle(pattern, c.room(costLight, asset(f.Name(), body)))
	}
}

// asset serves one file. A browser asks each time whether it has the newest, and mostly has.
func asset(name string, body []byte) http.HandlerFunc {
	sum := sha256.Sum256(body)
	tag := fmt.Sprintf("%q", fmt.Sprintf("%x", sum[:8]))
	return func(w http.ResponseWriter, q *http.Request) {
		h := w.Header()
		for key, value := range map[string]string{"Content-Type": pageTypes[path.Ext(name)], "ETag": tag,
			"Cache-Control": "no-cache", "Content-Security-Policy": pagePolicy, "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin"} {
			h.Set(key, value)
		}
		if q.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(body)
	}
}

// MaxDashboardNodes bounds the nodes of one dashboard.
const MaxDashboardNodes = 64

// DashboardNode is a node that a dashboard shows.
type DashboardNode struct {
	Name    string // that it has on the page, and by which it is known again when another process takes its place
	Address string // of its admin interface: host:port, or a URL with https
}

// DashboardConfig says what a dashboard of several nodes shows. Nodes is needed; the zero value of all else is safe.
type DashboardConfig struct {
	// Listen is the address to listen on, host:port; empty means a free port on loopback. Beyond loopback TLS or Insecure
	// is needed.
	Listen string
	// Nodes returns the nodes, with different names; of more than MaxDashboardNodes the first are shown. It is called
	// twice a second while somebody watches, by one goroutine, and must not block.
	Nodes func() []DashboardNode
	// Client asks the nodes; it follows no redirects. Nil is a plain one.
	Client *http.Client
	// TLS is the server's certificate and the authorities that it believes; nil: plain HTTP.
	TLS *tls.Config
	// Insecure allows a listen address that is not loopback without TLS.
	Insecure bool
	// Hosts are further names by which a listener on loopback without TLS may be asked, as of Config.
	Hosts []string
	// Streams is how many pages may watch at one time, 1 to MaxStreams; zero means DefaultStreams.
	Streams int
	// Logger gets what went wrong; nil is silent.
	Logger *slog.Logger
}

// Validate returns all faults of c joined, each wrapping ErrBadConfig, or nil.
func (c DashboardConfig) Validate() error {
	var missing error
	if c.Nodes == nil {
		missing = fmt.Errorf("%w: Nodes is missing", ErrBadConfig)
	}
	return errors.Join(missing, c.server().Validate())
}

// server is c as the configuration of a node's interface has it.
func (c DashboardConfig) server() Config {
	if c.Listen == "" {
		c.Listen = net.JoinHostPort("127.0.0.1", "0")
	}
	return Config{Listen: c.Listen, TLS: c.TLS, Insecure: c.Insecure, Hosts: c.Hosts, Streams: c.Streams,
		Logger: c.Logger}.withDefaults()
}

// StartDashboard serves the page for several nodes; it asks their admin interfaces while a page watches. What it shows
// goes on when nodes end: they are shown as they were last heard. It changes nothing anywhere. Close ends it.
func StartDashboard(cfg DashboardConfig) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	client, own := noRedirect(cfg.Client), cfg.server()
	b := newBoard(func() []named {
		nodes := cfg.Nodes()
		list := make([]named, 0, min(len(nodes), MaxDashboardNodes))
		for _, n := range nodes[:min(len(nodes), MaxDashboardNodes)] {
			list = append(list, named{n.Name, sourceAt(n.Address, client)})
		}
		return list
	})
	l, err := bind(own.Listen, false)
	if err != nil {
		return nil, err
	}
	mux, c := http.NewServeMux(), newCounters(spareConns)
	k := &keeper{counts: c}
	c.streams.init(own.Streams, writeTime)
	mux.Handle("GET /v1/watch", c.room(costStream, func(w http.ResponseWriter, q *http.Request) {
		b.watch(w, q, &c.streams)
	}))
	servePage(mux, c)
	return serve(l, own, usual, k, func() http.Handler { return c.paced(k, checked(c, writeTime, mux)) }), nil
}

// sourceAt is the node with its admin interface at this address.
func sourceAt(address string, client *http.Client) source {
	base, err := baseOf(strings.TrimSpace(address))
	if err != nil {
		return nowhere{err}
	}
	return &remote{base, client}
}

// nowhere is a source that never answers.
type nowhere struct{ err error }

func (n nowhere) look(context.Context) (*snapshot, error)         { return nil, n.err }
func (n nowhere) report(context.Context, string) (*report, error) { return nil, n.err }
