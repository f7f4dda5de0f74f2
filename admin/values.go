// Values: the stores of values on the disks of nodes, what this disk lacks, and what the replicas of a key have.

package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/internal/runtime/parcels"
	"github.com/kith-io/kith/peer"
)

// stores is the answer of GET /v1/values.
type stores struct {
	Stores []any `json:"stores"` // counts of each, as in GET /v1/stats
}

func (a *api) stores(w http.ResponseWriter, _ *http.Request) {
	if err := a.node.Err(); err != nil {
		failed(w, err)
		return
	}
	out := stores{Stores: []any{}}
	for _, s := range a.node.Stats().Values {
		out.Stores = append(out.Stores, spelled(s))
	}
	say(w, http.StatusOK, out)
}

// storeReport is the answer of GET /v1/values/{name}.
type storeReport struct {
	Store    string     `json:"store"`
	Begun    bool       `json:"begun"`    // this disk is one of the store
	Founders int        `json:"founders"` // disks with which the store began; 0: none, as far as this disk knows
	Disk     string     `json:"disk"`     // of this node
	N        int        `json:"n"`
	R        int        `json:"r"`
	W        int        `json:"w"`
	Mode     string     `json:"mode"`
	Groups   int        `json:"groups"` // of keys, that this disk is a replica of, of 64
	Filling  []filling  `json:"filling"`
	Waits    float64    `json:"waits_s"` // until this disk begins to read what it lacks
	Disks    []diskInfo `json:"disks"`
	Counts   any        `json:"counts"` // as in GET /v1/stats
}

// diskInfo is one disk of a store.
type diskInfo struct {
	Disk      string  `json:"disk"`
	Node      string  `json:"node,omitempty"` // that has it now
	Here      bool    `json:"here"`
	Up        bool    `json:"up"`
	Leaves    bool    `json:"leaves,omitempty"` // for good: others read what it has
	Away      float64 `json:"away_s,omitempty"` // since no node has had it
	Groups    int     `json:"groups"`           // that it is a replica of
	Hints     int     `json:"hints"`            // writes that wait for it at this node
	HintBytes int     `json:"hint_bytes"`
}

// filling is a group of keys that this disk has yet to read from others.
type filling struct {
	Group int    `json:"group"`
	Keys  int    `json:"keys"`           // that this disk has
	From  string `json:"from,omitempty"` // the disk that is read at the moment
	Read  int    `json:"read"`           // replicas of which this disk has all
	Need  int    `json:"need"`           // how many it has to read
}

// store returns a store of this node and its counts; nil: there is none of the name, and the request has been answered.
func (a *api) store(w http.ResponseWriter, name string) (s parcels.Store, counts kith.ValuesStats) {
	if err := a.node.Err(); err != nil {
		failed(w, err)
		return nil, counts
	}
	all := driver.Parcels(driver.Of(a.node)).Stores()
	for _, counts := range a.node.Stats().Values {
		if s := all[counts.Store]; s != nil && counts.Store == name {
			return s, counts
		}
	}
	has := "it has none"
	if names := slices.Sorted(maps.Keys(all)); len(names) > 0 {
		has = "it has " + strings.Join(names[:min(len(names), 16)], ", ")
	}
	fail(w, http.StatusNotFound, "no store of values "+called(name)+" is open on this node; "+has)
	return nil, counts
}

// valuesTime is how long a store may take for its answer; replicas that do not answer are waited for that long, or for
// Store.Timeout.
const valuesTime = 8 * time.Second

func (a *api) storeOf(w http.ResponseWriter, q *http.Request) {
	s, counts := a.store(w, q.PathValue("name"))
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(q.Context(), valuesTime)
	defer cancel()
	r, err := s.Report(ctx)
	if err != nil {
		failed(w, err)
		return
	}
	say(w, http.StatusOK, storeReportOf(&counts, r))
}

// idOf is an id as answers have it, "" for none.
func idOf(id peer.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

var quorumModes = map[quorum.Mode]string{quorum.Siblings: "siblings", quorum.Register: "register"}

func storeReportOf(counts *kith.ValuesStats, r *quorum.Report) storeReport {
	out := storeReport{Store: counts.Store, Begun: r.Begun, Founders: r.Founders, Disk: idOf(r.Disk), N: r.Config.N,
		R: r.Config.R, W: r.Config.W, Mode: quorumModes[r.Config.Mode], Groups: r.Groups, Filling: []filling{},
		Waits: r.Waits.Seconds(), Disks: []diskInfo{}, Counts: spelled(*counts)}
	for _, f := range r.Filling {
		out.Filling = append(out.Filling, filling{f.Group, f.Keys, idOf(f.From), f.Read, f.Need})
	}
	for i := range r.Disks {
		d := &r.Disks[i]
		out.Disks = append(out.Disks, diskInfo{idOf(d.Disk), idOf(d.Node), d.Disk == r.Disk, d.Up, d.Leaves,
			d.Away.Seconds(), d.Groups, d.Hints, d.HintBytes})
	}
	return out
}

// keyReport is the answer of GET /v1/values/{name}/key.
type keyReport struct {
	Store    string    `json:"store"`
	Key      string    `json:"key"` // each byte that is no text is written as \x and two digits
	Replicas []replica `json:"replicas"`
	Values   int       `json:"values"` // of all replicas together, without those that others replace, and deletions
}

// replica is one of the N replicas of a key.
type replica struct {
	Disk     string    `json:"disk"`
	Up       bool      `json:"up"`
	Answered bool      `json:"answered"`
	Lacking  bool      `json:"lacking"` // its disk has yet to read what others hold of the key's group
	Behind   bool      `json:"behind"`  // it lacks a version that another replica has
	Hints    int       `json:"hints"`   // writes of the key that wait for it at this node
	Versions []version `json:"versions"`
}

// version is one value of a key, or its deletion. Its data is not shown.
type version struct {
	By        string     `json:"by"` // the disk that made the change
	Number    uint64     `json:"number"`
	Counter   uint64     `json:"counter,omitempty"` // of a register
	Past      []change   `json:"past,omitempty"`    // of siblings: what its writer had read
	Bytes     int        `json:"bytes"`
	Hash      string     `json:"hash"` // of value and version: the same at two replicas that have the same
	Deleted   bool       `json:"deleted,omitempty"`
	DeletedAt *time.Time `json:"deleted_at,omitempty"`
}

// change is the last change of a disk that a version knows.
type change struct {
	By     string `json:"by"`
	Number uint64 `json:"number"`
}

// key says what each replica of ?key= has. Nothing is repaired by it.
func (a *api) key(w http.ResponseWriter, q *http.Request) {
	s, counts := a.store(w, q.PathValue("name"))
	if s == nil {
		return
	}
	key := q.URL.Query().Get("key")
	ctx, cancel := context.WithTimeout(q.Context(), valuesTime)
	defer cancel()
	looks, values, err := s.Look(ctx, []byte(key))
	switch {
	case errors.Is(err, quorum.ErrTooLarge):
		fail(w, http.StatusBadRequest, "the key is missing, or longer than keys of this store may be")
	case errors.Is(err, quorum.ErrNotFounded):
		fail(w, http.StatusConflict, err.Error())
	case err != nil:
		failed(w, err)
	default:
		say(w, http.StatusOK, keyReportOf(counts.Store, key, looks, values))
	}
}

func keyReportOf(store, key string, looks []quorum.Look, values int) keyReport {
	quoted := strconv.Quote(key)
	out := keyReport{Store: store, Key: quoted[1 : len(quoted)-1], Replicas: []replica{}, Values: values}
	for i := range looks {
		l := &looks[i]
		x := replica{idOf(l.Disk), l.Up, l.Answered, l.Lacking, l.Behind, l.Hints, []version{}}
		for k := range l.Entry {
			x.Versions = append(x.Versions, versionOf(&l.Entry[k]))
		}
		out.Replicas = append(out.Replicas, x)
	}
	slices.SortFunc(out.Replicas, func(a, b replica) int { return cmp.Compare(a.Disk, b.Disk) })
	return out
}

func versionOf(v *quorum.Versioned) version {
	out := version{By: idOf(v.By), Number: v.Seq, Counter: v.Counter, Bytes: len(v.Data), Deleted: v.Deleted,
		Hash: fmt.Sprintf("%016x", v.Hash)}
	for _, c := range v.Past {
		out.Past = append(out.Past, change{idOf(c.ID), c.N})
	}
	if v.Deleted {
		at := time.UnixMilli(v.At).UTC()
		out.DeletedAt = &at
	}
	return out
}
