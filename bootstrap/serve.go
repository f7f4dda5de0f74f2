// Serve: this node's contact point.

package bootstrap

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bootstrap/formation"
	"github.com/kith-io/kith/internal/base/door"
	"github.com/kith-io/kith/internal/base/refuse"
	"github.com/kith-io/kith/peer"
)

// The paths of a contact point.
const (
	contactPath = "/bootstrap/v1/contact"
	promisePath = "/bootstrap/v1/promise"
	explainPath = "/bootstrap/v1/explain"
)

// serve serves the contact point until it is closed.
func (b *Bootstrap) serve(l net.Listener) {
	var err error
	if b.server.TLSConfig != nil {
		err = b.server.ServeTLS(l, "", "")
	} else {
		err = b.server.Serve(l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		b.log.Error("the contact point has ended", "error", err)
	}
}

// front puts a door in front of the contact point: newcomers get in, whatever holds connections there.
func (b *Bootstrap) front(l net.Listener) *door.Door {
	front := door.New(l, door.Config{Most: maxConns, FirstByte: min(firstByte, b.cfg.ProbeTimeout),
		FirstBytes: firstBytes,
		Crowded: func(n door.Stats) {
			b.log.Warn("connections to the contact point were closed for later ones, or found no place", "event",
				"contact-crowded", "open", n.Open, "put_out", n.PutOut, "refused", n.Refused)
		}})
	gate, next := door.NewGate(door.Limits{Rate: maxRate, Places: maxAsks}), b.server.Handler
	b.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		ok := gate.Pass(q)
		if ok {
			var leave func()
			if leave, ok = gate.Enter(q); ok {
				defer leave()
				next.ServeHTTP(w, q)
				return
			}
		}
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, "there are too many requests")
	})
	front.Attach(b.server)
	return front
}

// Handler returns what the contact point serves, for a program that has a server of its own beside it: GET
// /bootstrap/v1/contact, GET /bootstrap/v1/explain and POST /bootstrap/v1/promise. What protects it there, and by which
// names it may be asked, is the caller's.
func (b *Bootstrap) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+contactPath, func(w http.ResponseWriter, _ *http.Request) {
		b.lock.Lock()
		b.member()
		r, told := b.machine.Reply(), b.told
		b.lock.Unlock()
		b.sayUnless(w, told, toJSON(r))
	})
	mux.HandleFunc("GET "+explainPath, func(w http.ResponseWriter, _ *http.Request) {
		b.say(w, explanation(b.Explain()))
	})
	mux.HandleFunc("POST "+promisePath, func(w http.ResponseWriter, q *http.Request) {
		body, status, why := refuse.Body(w, q, maxBody)
		if status != 0 {
			w.Header().Set("Connection", "close")
			fail(w, status, why)
			return
		}
		ask, err := readAsk(body)
		if err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		var a formation.Answer
		var told []string
		b.step(func(now time.Duration) {
			b.member()
			if told = b.told; told == nil {
				a = b.machine.Asked(now, ask)
			}
		})
		b.sayUnless(w, told, answerToJSON(a))
	})
	return checked(mux)
}

// say writes an answer; a node that has ended has none.
func (b *Bootstrap) say(w http.ResponseWriter, v any) {
	select {
	case <-b.Node().Done():
		fail(w, http.StatusServiceUnavailable, "this node has ended")
	default:
		write(w, http.StatusOK, v)
	}
}

// sayUnless writes an answer, but not of a node that has an operator's order to join: until it is a member it is nobody
// to join, or to form a cluster, with.
func (b *Bootstrap) sayUnless(w http.ResponseWriter, told []string, v any) {
	if told == nil {
		b.say(w, v)
		return
	}
	fail(w, http.StatusServiceUnavailable, fmt.Sprintf("an operator has told this node to join through %v, and it is no "+
		"member yet", told))
}

// member tells the machine which members may be joined, once the node is one itself, and until then the seeds of an
// operator's order. The lock is held.
func (b *Bootstrap) member() {
	v := b.node.View()
	if v.ClusterID == 0 {
		b.heed(b.node.Told())
		return
	}
	b.joined, b.told = true, nil
	b.machine.Joined(b.now(), v.ClusterID, seeds(v))
}

// heed makes the search end for an operator's seeds, nil for none. The lock is held.
func (b *Bootstrap) heed(told []string) {
	if told == nil || b.joined || slices.Equal(told, b.told) {
		return
	}
	var list []peer.Addr
	for _, s := range told {
		if a, err := peer.ParseAddr(s); err == nil { // the node has read it
			list = append(list, a)
		}
	}
	b.told = told
	b.machine.Told(b.now(), list)
	b.log.Info("an operator has told this node whom to join: the search ends", "event", "bootstrap-told", "seeds",
		fmt.Sprint(told))
}

// seeds returns the first members of a view, by address, that may be joined: those that are here to stay and that
// nobody holds unreachable.
func seeds(v *kith.View) (list []peer.Addr) {
	for i := range v.Members {
		m := &v.Members[i]
		stays := slices.Contains([]kith.Status{kith.Up, kith.WeaklyUp, kith.Joining}, m.Status)
		if stays && !v.Unreachable.Has(m.ID) && len(list) < formation.MaxSeeds {
			list = append(list, m.ID.Addr)
		}
	}
	return list
}

// explanationJSON is formation.Explanation for people and scripts.
type explanationJSON struct {
	Action       formation.Action `json:"action"`
	Hold         formation.Hold   `json:"hold"`
	Detail       string           `json:"detail"`
	Member       bool             `json:"member"`
	ClusterID    string           `json:"cluster_id,omitempty"`
	Seeds        []string         `json:"seeds"`
	Required     int              `json:"required"`
	Expected     int              `json:"expected,omitempty"`
	StableSecs   float64          `json:"stable_seconds"`
	MarginSecs   float64          `json:"margin_seconds"`
	LookupAge    *float64         `json:"lookup_age_seconds,omitempty"` // absent: none has succeeded
	LookupFailed string           `json:"lookup_failed,omitempty"`
	Failures     int              `json:"lookup_failures"`
	PromisedTo   string           `json:"promised_to,omitempty"`
	Points       []pointJSON      `json:"contact_points"`
}

// pointJSON is one contact point of it.
type pointJSON struct {
	Point   string       `json:"contact_point"`
	Listed  bool         `json:"listed"`
	AgeSecs *float64     `json:"answer_age_seconds,omitempty"` // absent: it has not answered
	Answer  *contactJSON `json:"answer,omitempty"`
	Failed  string       `json:"failed,omitempty"`
}

func explanation(e formation.Explanation) explanationJSON {
	j := explanationJSON{Action: e.Action, Hold: e.Hold, Detail: e.Detail, Member: e.Member, Seeds: []string{},
		Required: e.Required, Expected: e.Expected, StableSecs: e.Stable.Seconds(), MarginSecs: e.Margin.Seconds(),
		LookupFailed: e.LookupFailed, Failures: e.Failures, Points: []pointJSON{}}
	if e.Cluster != 0 {
		j.ClusterID = hex(e.Cluster)
	}
	if e.LookupAge >= 0 {
		age := e.LookupAge.Seconds()
		j.LookupAge = &age
	}
	if !e.Promised.IsZero() {
		j.PromisedTo = e.Promised.String()
	}
	for _, a := range e.Seeds {
		j.Seeds = append(j.Seeds, a.String())
	}
	for _, p := range e.Points {
		o := pointJSON{Point: p.Point.String(), Listed: p.Listed, Failed: p.Failed}
		if p.Age >= 0 {
			age, answer := p.Age.Seconds(), toJSON(p.Reply)
			o.AgeSecs, o.Answer = &age, &answer
		}
		j.Points = append(j.Points, o)
	}
	return j
}
