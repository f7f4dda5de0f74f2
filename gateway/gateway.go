// The gateway: what it holds, its counters, and the document that it serves.

package gateway

import (
	"fmt"
	"net/http"
	"net/textproto"
)

// Gateway serves HTTP. Its methods are safe for concurrent use.
type Gateway struct {
	cfg      Config
	types    map[string]*Type
	headers  []string // canonical
	room     room
	document []byte
}

// New returns a gateway. The error matches kith.ErrBadConfig and tells all faults of cfg.
func New(cfg Config) (*Gateway, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg, types: map[string]*Type{}, room: room{most: cfg.MaxCalls, each: map[string]int{}}}
	for i := range cfg.Types {
		g.types[cfg.Types[i].Name] = &g.cfg.Types[i]
	}
	for _, h := range cfg.Headers {
		g.headers = append(g.headers, textproto.CanonicalMIMEHeaderKey(h))
	}
	var err error
	if g.document, err = document(&g.cfg); err != nil {
		return nil, fmt.Errorf("gateway: the OpenAPI document: %w", err)
	}
	return g, nil
}

// Stats are the counters of a gateway since it was made.
type Stats struct {
	Underway int    // calls
	Calls    uint64 // that were let in
	Busy     uint64 // that were refused because as many were under way as may be, of all or of their address
}

// Stats returns the counters.
func (g *Gateway) Stats() Stats {
	g.room.mu.Lock()
	defer g.room.mu.Unlock()
	return Stats{g.room.under, g.room.entered, g.room.busy}
}

// describe serves the document.
func (g *Gateway) describe(w http.ResponseWriter, q *http.Request) {
	if q.Method != http.MethodGet && q.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refused(http.StatusMethodNotAllowed, "bad-method", "use GET").write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(g.document)
}
