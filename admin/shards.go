// Shards: types, where their shards live, which moves are under way, and the counters of this node.

package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/kith-io/kith"
)

// types is the answer of GET /v1/types.
type types struct {
	Types []typeInfo `json:"types"`
}

// typeInfo is one type registered on this node.
type typeInfo struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"` // entities, singleton, daemons or pool
	Shards   uint32 `json:"shards"`
	Role     string `json:"role,omitempty"`
	Mode     string `json:"mode"`
	Hosted   int    `json:"hosted"`   // shards that live here
	Entities uint64 `json:"entities"` // that live here
}

func (a *api) types(w http.ResponseWriter, _ *http.Request) {
	out := types{Types: []typeInfo{}}
	here := map[string]kith.TypeStats{}
	for _, s := range a.node.Stats().Types {
		here[s.Name] = s
	}
	for _, r := range a.node.Regions() {
		t := r.Type()
		s := here[t.Name]
		out.Types = append(out.Types, typeInfo{t.Name, s.Kind, t.Shards, t.Role, t.Mode.String(), s.Hosted, s.Entities})
	}
	say(w, http.StatusOK, out)
}

// report is the answer of GET /v1/types/{name}.
type report struct {
	Name        string       `json:"name"`
	Shards      uint32       `json:"shards"`
	Homed       int          `json:"homed"` // shards that live somewhere
	Entities    uint64       `json:"entities"`
	Coordinator string       `json:"coordinator,omitempty"` // absent: no member that answered coordinates it
	Nodes       []nodeReport `json:"nodes"`
	Moves       []move       `json:"moves"`
	Missing     []string     `json:"missing"` // members that did not answer in time
}

// nodeReport is what one member has of a type.
type nodeReport struct {
	Node       string       `json:"node"`
	Registered bool         `json:"registered"`
	Shards     int          `json:"shards"`
	Entities   uint64       `json:"entities"`
	List       []shardState `json:"list,omitempty"` // with ?shards=true
}

type shardState struct {
	Shard    kith.ShardID `json:"shard"`
	Entities uint32       `json:"entities"`
	Stopping bool         `json:"stopping,omitempty"`
}

type move struct {
	Shard kith.ShardID   `json:"shard"`
	From  string         `json:"from"`
	To    string         `json:"to"`
	Phase kith.MovePhase `json:"phase"`
	Age   float64        `json:"age_s"`
}

// shards asks all members, for reportTime or what ?timeout= says, at most.
func (a *api) shards(w http.ResponseWriter, q *http.Request) {
	r := a.region(q.PathValue("name"))
	if r == nil {
		fail(w, http.StatusNotFound, "type "+called(q.PathValue("name"))+" is not registered on this node")
		return
	}
	within, each := reportTime, false
	if text := q.URL.Query().Get("timeout"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 || d > reportTime {
			fail(w, http.StatusBadRequest, fmt.Sprintf("timeout %s: a duration of at most %v, such as 500ms", called(text),
				reportTime))
			return
		}
		within = d
	}
	if text := q.URL.Query().Get("shards"); text != "" {
		var err error
		if each, err = strconv.ParseBool(text); err != nil {
			fail(w, http.StatusBadRequest, fmt.Sprintf("shards %s: true or false", called(text)))
			return
		}
	}
	ctx, cancel := context.WithTimeout(q.Context(), within)
	defer cancel()
	rep, err := r.Report(ctx)
	if err != nil {
		failed(w, err)
		return
	}
	done, err := a.counts.reads.Work(q.Context()) // members have been waited for: the rest is work
	if err != nil {
		return
	}
	defer done()
	say(&worker{w, done}, http.StatusOK, reportOf(&rep, each))
}

// found is the answer of GET /v1/types/{name}/home.
type found struct {
	Type     string       `json:"type"`
	ID       string       `json:"id"`
	Shard    kith.ShardID `json:"shard"`
	Node     string       `json:"node,omitempty"` // absent: the shard lives nowhere, or no member that answered has it
	Here     bool         `json:"here"`           // it is the node that was asked
	Fence    string       `json:"fence,omitempty"`
	Since    *time.Time   `json:"since,omitempty"` // when the node that was asked learnt that
	Waiting  int          `json:"waiting"`         // messages of that node that wait for the home
	Answered bool         `json:"answered"`        // the owner has said that the shard lives there
	Stopping bool         `json:"stopping,omitempty"`
	Entities uint64       `json:"entities"`          // of its shard, if the owner has answered
	Handled  uint64       `json:"handled,omitempty"` // by its shard, if it lives here
	Mailbox  *mailbox     `json:"mailbox,omitempty"` // of a Blocking entity that lives here
}

// mailbox is what waits for an entity, and whether it runs.
type mailbox struct {
	Lives   bool    `json:"lives"`
	Busy    bool    `json:"busy"`
	Waiting int     `json:"waiting"`
	Bytes   int     `json:"bytes"`
	Idle    float64 `json:"idle_s"`
}

// home says where ?id= lives: what this node knows, and what the members say that have its shard. They are asked as for
// GET /v1/types/{name}: once for all callers at the same time.
func (a *api) home(w http.ResponseWriter, q *http.Request) {
	r, id := a.region(q.PathValue("name")), q.URL.Query().Get("id")
	if r == nil {
		fail(w, http.StatusNotFound, "type "+called(q.PathValue("name"))+" is not registered on this node")
		return
	}
	h, err := r.Home(id)
	if err != nil {
		unfit(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(q.Context(), reportTime)
	defer cancel()
	rep, err := r.Report(ctx)
	if err != nil {
		failed(w, err)
		return
	}
	done, err := a.counts.reads.Work(q.Context())
	if err != nil {
		return
	}
	defer done()
	say(&worker{w, done}, http.StatusOK, foundOf(r.Type().Name, id, h, &rep))
}

// unfit answers that an id cannot be one, or whatever else keeps a region from looking.
func unfit(w http.ResponseWriter, err error) {
	if errors.Is(err, kith.ErrBadID) || errors.Is(err, kith.ErrBadShard) {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	failed(w, err)
}

// foundOf puts together what a node knows and what the members say; their word is newer.
func foundOf(name, id string, h kith.Home, rep *kith.TypeReport) found {
	out := found{Type: name, ID: id, Shard: h.Shard, Here: h.Here, Waiting: h.Waiting}
	at := h.Node
	for i := range rep.Nodes {
		for _, s := range rep.Nodes[i].Shards {
			if s.Shard == h.Shard && (!out.Answered || out.Stopping) { // of two, the one that does not give it away
				at, out.Answered, out.Stopping = rep.Nodes[i].Node, true, s.Stopping
				out.Entities = uint64(s.Entities)
			}
		}
	}
	if !at.IsZero() {
		out.Node = at.String()
	}
	if out.Here = h.Here && at == h.Node; at == h.Node && !at.IsZero() {
		since := h.Since.UTC()
		out.Fence, out.Since = h.Fence.String(), &since
	}
	if act := h.Activity; act != nil && out.Here {
		out.Handled = act.Handled
		if m := act.Mailbox; m != nil {
			out.Mailbox = &mailbox{m.Lives, m.Busy, m.Waiting, m.Bytes, m.Idle.Seconds()}
		}
	}
	return out
}

func (a *api) region(name string) *kith.Region {
	for _, r := range a.node.Regions() {
		if r.Type().Name == name {
			return r
		}
	}
	return nil
}

func reportOf(rep *kith.TypeReport, each bool) report {
	out := report{Name: rep.Name, Shards: rep.Shards, Nodes: []nodeReport{}, Moves: []move{}, Missing: []string{}}
	if !rep.Coordinator.IsZero() {
		out.Coordinator = rep.Coordinator.String()
	}
	homed := map[kith.ShardID]bool{}
	for i := range rep.Nodes {
		n := &rep.Nodes[i]
		o := nodeReport{Node: n.Node.String(), Registered: n.Registered, Shards: len(n.Shards), Entities: n.Entities}
		for _, s := range n.Shards {
			homed[s.Shard] = true
			if each {
				o.List = append(o.List, shardState{s.Shard, s.Entities, s.Stopping})
			}
		}
		out.Nodes, out.Entities = append(out.Nodes, o), out.Entities+n.Entities
	}
	out.Homed = len(homed)
	for _, m := range rep.Moves {
		out.Moves = append(out.Moves, move{m.Shard, m.From.String(), m.To.String(), m.Phase, m.Age.Seconds()})
	}
	for _, id := range rep.Missing {
		out.Missing = append(out.Missing, id.String())
	}
	return out
}

// counted is the answer of GET /v1/stats: the counters of the node, and beside them those of this interface.
type counted struct {
	kith.Stats
	Admin Stats
}

func (a *api) stats(w http.ResponseWriter, _ *http.Request) {
	say(w, http.StatusOK, spelled(counted{a.node.Stats(), a.counts.read()}))
}
