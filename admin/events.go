// Events: streams of what happens, as server-sent events. A slow reader is cut off, and so is one too many.

package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kith-io/kith"
)

// beat is how often a stream without events says that it lives.
const beat = 10 * time.Second

// snapshotKind is what a snapshot is called.
const snapshotKind = "snapshot"

// event is the data of one event of membership.
type event struct {
	Kind     string    `json:"kind"`
	At       time.Time `json:"at"` // when this node reported it, on its clock
	Reason   string    `json:"reason,omitempty"`
	Member   *member   `json:"member,omitempty"`
	Previous string    `json:"previous,omitempty"`
	Leader   string    `json:"leader,omitempty"`
	Role     string    `json:"role,omitempty"`
	Text     string    `json:"text"`
	Missed   bool      `json:"missed,omitempty"`  // of a snapshot: the reader was too slow
	Members  *members  `json:"members,omitempty"` // of a snapshot
}

func eventOf(e *kith.Event) event {
	out := event{Kind: e.Kind.String(), At: time.Now().UTC(), Reason: reasonOf(e), Role: e.Role, Text: e.String(),
		Missed: e.Missed}
	if e.Kind == kith.Snapshot {
		all := membersOf(e.View)
		out.Kind, out.Members = snapshotKind, &all
		return out
	}
	if !e.Leader.IsZero() {
		out.Leader = e.Leader.String()
	}
	if !e.Member.ID.IsZero() {
		m := memberOf(e.View, &e.Member)
		out.Member, out.Previous = &m, e.Previous.String()
	}
	return out
}

// reasonOf is why something happened, as far as the event says.
func reasonOf(e *kith.Event) string {
	if why := e.Reason(); why != "" {
		return why
	}
	return e.Detail
}

// shardEvent is the data of one event of sharding.
type shardEvent struct {
	Kind  string       `json:"kind"`
	At    time.Time    `json:"at"`
	Type  string       `json:"type,omitempty"`
	Shard kith.ShardID `json:"shard"`
	Home  string       `json:"home,omitempty"`
	To    string       `json:"to,omitempty"`
	Text  string       `json:"text"`
}

func shardEventOf(e *kith.ShardEvent) shardEvent {
	out := shardEvent{Kind: e.Kind.String(), At: e.At, Type: e.Name, Shard: e.Shard, Text: e.String()}
	if e.Kind == kith.ShardEventsBegin {
		out.Kind = "begin"
	}
	if !e.Home.IsZero() {
		out.Home = e.Home.String()
	}
	if !e.To.IsZero() {
		out.To = e.To.String()
	}
	return out
}

// maxKinds bounds the kinds of one request.
const maxKinds = 64

// kinds are those that a stream has; nil: all.
type kinds map[kith.EventKind]bool

// kindsOf returns the kinds of a request; when ok is false, it has been answered.
func kindsOf(w http.ResponseWriter, q *http.Request) (k kinds, ok bool) {
	words := q.URL.Query()["kind"]
	if len(words) > maxKinds {
		fail(w, http.StatusBadRequest, fmt.Sprintf("kind: at most %d are taken", maxKinds))
		return nil, false
	}
	for _, word := range words {
		var kind kith.EventKind
		named := !strings.HasPrefix(word, "event-") && kind.UnmarshalText([]byte(word)) == nil
		if !named && word != snapshotKind {
			fail(w, http.StatusBadRequest, "kind: there are no events called "+called(word))
			return nil, false
		}
		if k == nil {
			k = kinds{}
		}
		k[kind] = true
	}
	return k, true
}

// standing is the event by which a member of a status came there.
var standing = map[kith.Status]kith.EventKind{kith.Joining: kith.MemberJoined, kith.WeaklyUp: kith.MemberWeaklyUp,
	kith.Up: kith.MemberUp, kith.Leaving: kith.MemberLeft, kith.Exiting: kith.MemberExited, kith.Down: kith.MemberDowned,
	kith.PreparingForShutdown: kith.MemberPreparingForShutdown, kith.ReadyForShutdown: kith.MemberReadyForShutdown}

// of returns what an event is in such a stream: itself, nothing, or, of a snapshot, what it shows as events.
func (k kinds) of(e *kith.Event) (list []event) {
	if k == nil || k[e.Kind] {
		list = append(list, eventOf(e))
	}
	if k == nil || e.Kind != kith.Snapshot {
		return list
	}
	add := func(kind kith.EventKind, m kith.Member) {
		if k[kind] {
			one := kith.Event{View: e.View, Missed: e.Missed}
			one.Kind, one.Member = kind, m
			if kind == kith.LeaderChanged {
				one.Leader = e.View.Leader
			}
			o := eventOf(&one)
			o.Previous = ""
			list = append(list, o)
		}
	}
	for _, m := range e.View.Members {
		add(standing[m.Status], m)
		if !e.View.Reachable(m.ID) {
			add(kith.UnreachableMember, m)
		}
	}
	if !e.View.Leader.IsZero() {
		add(kith.LeaderChanged, kith.Member{})
	}
	return list
}

func (a *api) events(w http.ResponseWriter, q *http.Request) {
	k, ok := kindsOf(w, q)
	if !ok {
		return
	}
	a.stream(w, q, func(ctx context.Context, put func(kind string, v any) bool) {
		for e := range a.node.Events(ctx) {
			for _, v := range k.of(&e) {
				if !put(v.Kind, v) {
					return
				}
			}
		}
	})
}

func (a *api) shardEvents(w http.ResponseWriter, q *http.Request) {
	a.stream(w, q, func(ctx context.Context, put func(kind string, v any) bool) {
		for e := range a.node.ShardEvents(ctx) {
			if v := shardEventOf(&e); !put(v.Kind, v) {
				return
			}
		}
	})
}

// line is one event on its way to the reader.
type line struct {
	kind string
	data []byte
}

// stream serves one stream: read puts what happens until its context ends, which it does with the request, with the
// server, with a reader that takes longer than writeTime for an event, and when the node has ended.
func (a *api) stream(w http.ResponseWriter, q *http.Request, read func(context.Context, func(string, any) bool)) {
	ctx, free, ok := a.counts.streams.take(w, q)
	if !ok {
		return
	}
	defer free()
	ctx, cancel := context.WithCancel(ctx)
	lines, over := make(chan line), make(chan struct{})
	defer func() { cancel(); <-over }()
	go func() {
		defer close(over)
		read(ctx, func(kind string, v any) bool {
			data, err := json.Marshal(v)
			if err != nil { // no value of ours
				return false
			}
			select {
			case lines <- line{kind, data}:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	rest := time.NewTicker(beat)
	defer rest.Stop()
	out := begin(w)
	for {
		text := ": alive\n\n"
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-rest.C:
		case l := <-lines:
			text = fmt.Sprintf("event: %s\ndata: %s\n\n", l.kind, l.data)
		}
		if !a.counts.streams.put(out, w, []byte(text)) {
			return
		}
	}
}
