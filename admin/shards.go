// Shards: types, where their shards live, which moves are under way, and the counters of this node.

package admin

import (
	"context"
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
		out.Types = append(out.Types, typeInfo{t.Name, t.Shards, t.Role, t.Mode.String(), s.Hosted, s.Entities})
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
	say(w, http.StatusOK, counted{a.node.Stats(), a.counts.read()})
}
