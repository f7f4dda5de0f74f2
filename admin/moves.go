// Moves: what an operator has moved, and kept from moving.

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

// drainPatience is how long an answer waits for what keeps a drain from beginning, which the node knows at once.
const drainPatience = 250 * time.Millisecond

// drain moves everything away from the node. It goes on when the client has gone: GET /v1/types says how far it is.
func (a *api) drain(w http.ResponseWriter, q *http.Request) {
	ctx, cancel := context.WithTimeout(q.Context(), drainPatience)
	defer cancel()
	var goesOn *kith.DrainError
	if err := a.node.Drain(ctx); err != nil && !errors.As(err, &goesOn) {
		failed(w, err)
		return
	}
	say(w, http.StatusAccepted, done{"draining " + a.node.ID().String()})
}

func (a *api) undrain(w http.ResponseWriter, q *http.Request) {
	a.told(w, a.node.Undrain(q.Context()), "this node may be given shards again")
}

func (a *api) pause(w http.ResponseWriter, q *http.Request) {
	a.told(w, a.node.PauseRebalancing(q.Context()), "nothing moves for balance until it is resumed")
}

func (a *api) resume(w http.ResponseWriter, q *http.Request) {
	a.told(w, a.node.ResumeRebalancing(q.Context()), "shards move for balance again")
}

// told answers with what was done, or why not.
func (a *api) told(w http.ResponseWriter, err error, message string) {
	if err != nil {
		failed(w, err)
		return
	}
	say(w, http.StatusOK, done{message})
}

// move moves ?shard= to ?to=, an address or an identity.
func (a *api) move(w http.ResponseWriter, q *http.Request) {
	r, args := a.region(q.PathValue("name")), q.URL.Query()
	if r == nil {
		fail(w, http.StatusNotFound, "type "+called(q.PathValue("name"))+" is not registered on this node")
		return
	}
	n, err := strconv.ParseUint(args.Get("shard"), 10, 32)
	if err != nil || n >= uint64(r.Type().Shards) {
		fail(w, http.StatusBadRequest, fmt.Sprintf("shard %s: a number below %d", called(args.Get("shard")),
			r.Type().Shards))
		return
	}
	v, to := a.node.View(), args.Get("to")
	for i := range v.Members {
		m := &v.Members[i]
		if m.ID.Addr.String() != to && m.ID.String() != to || m.Status == kith.Down {
			continue
		}
		err := r.Move(q.Context(), kith.ShardID(n), m.ID)
		switch {
		case err == nil:
			say(w, http.StatusAccepted, done{fmt.Sprintf("shard %d moves to %s", n, m.ID)})
		case errors.Is(err, kith.ErrStopped), errors.Is(err, context.Canceled):
			failed(w, err)
		default:
			fail(w, http.StatusConflict, err.Error())
		}
		return
	}
	fail(w, http.StatusNotFound, "no member at "+called(to))
}
