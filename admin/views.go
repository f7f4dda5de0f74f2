// Views: what a dashboard shows of one node, as routes.

package admin

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/kith-io/kith"
)

// views is all handlers of one node: those of api, and those that need what is kept from one request to the next.
type views struct {
	api
	local *local
	board *board
}

// viewsOf begins to keep the events of a node.
func viewsOf(node *kith.Node, cfg Config, c *counters) *views {
	own := &local{node, &meter{times: cfg.Times}, &history{}}
	own.history.follow(node)
	all := api{node, c, cfg.Join, cfg.LeaveAndJoin, cfg.NotReady}
	return &views{all, own, newBoard(func() []named { return []named{{"", own}} })}
}

func (v *views) peers(w http.ResponseWriter, q *http.Request) {
	stats := v.node.Stats()
	list, err := v.node.Suspicions(q.Context())
	if err != nil {
		failed(w, err)
		return
	}
	say(w, http.StatusOK, peersOf(stats.Transport.Links, list))
}

func (v *views) rates(w http.ResponseWriter, _ *http.Request) {
	stats := v.node.Stats()
	r := v.local.meter.look(time.Now(), &stats)
	if r == nil {
		fail(w, http.StatusServiceUnavailable, "nothing has been measured yet: ask again in a second")
		return
	}
	say(w, http.StatusOK, r)
}

func (v *views) watch(w http.ResponseWriter, q *http.Request) { v.board.watch(w, q, &v.counts.streams) }

func (v *views) snapshot(w http.ResponseWriter, q *http.Request) {
	s, _ := v.local.look(q.Context()) // a node of this process always says something
	say(w, http.StatusOK, s)
}

// flightRecord answers with the flight record of the node as a file. It asks for the token (docs/flight-record.md).
func (a *views) flightRecord(w http.ResponseWriter, q *http.Request) {
	var b bytes.Buffer // a record is bounded, and a failure answers with an error instead of half of one
	switch err := a.node.WriteFlightRecord(q.Context(), &b); {
	case errors.Is(err, kith.ErrNoFlightRecord):
		fail(w, http.StatusConflict, err.Error())
		return
	case err != nil:
		failed(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(b.Bytes())
}
