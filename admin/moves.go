// Orders: what an operator has moved, kept from moving, and sent to an entity, and that a node goes over to another
// cluster.

package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kith-io/kith"
)

// drainPatience is how long an answer waits for what keeps a drain from beginning, which the node knows at once.
const drainPatience = 250 * time.Millisecond

// drain moves everything away from the node. It goes on when the client has gone: GET /v1/types says how far it is.
func (a *api) drain(w http.ResponseWriter, q *http.Request) {
	ctx, cancel := context.WithTimeout(q.Context(), drainPatience)
	defer cancel()
	var goesOn *kith.DrainError
	if err := a.node.Drain(ctx); err != nil && !errors.As(err, &goesOn) &&
		!errors.Is(err, kith.ErrDisksNeeded) {
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

// told answers with the message of what was done, or with the error.
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
	v, to := a.node.View(), short(args.Get("to"))
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
	fail(w, http.StatusNotFound, "no member at "+called(args.Get("to")))
}

// reply is the answer of POST /v1/types/{name}/ask: text, or bytes that are none, in base64.
type reply struct {
	Reply string `json:"reply"`
	Bytes []byte `json:"reply_base64,omitempty"`
}

// unanswered is the answer to a message that was not accepted, or an ask that has no reply.
type unanswered struct {
	Error string `json:"error"`
	// MayHaveRun says whether a handler may have been called for the message (kith.MayHaveRun): false means that it can be
	// sent again.
	MayHaveRun bool   `json:"may_have_run"`
	Code       string `json:"code,omitempty"` // of a kith.Error of the handler
	Kind       string `json:"kind,omitempty"`
}

// ask asks the entity ?id= with the body, for askTime or what ?within= says.
func (a *api) ask(w http.ResponseWriter, q *http.Request) {
	within := askTime
	if text := q.URL.Query().Get("within"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 || d > askMost {
			fail(w, http.StatusBadRequest, fmt.Sprintf("within %s: a duration of at most %v, such as 500ms", called(text),
				askMost))
			return
		}
		within = d
	}
	a.send(w, q, func(r *kith.Region, id string, payload []byte) (any, error) {
		ctx, cancel := context.WithTimeout(q.Context(), within)
		defer cancel()
		b, err := r.Ask(ctx, id, payload)
		switch {
		case err != nil:
			return nil, err
		case len(b) > maxReply:
			return nil, fmt.Errorf("%w: the reply has %d bytes, more than %d are not shown", kith.ErrTooLarge, len(b), maxReply)
		case utf8.Valid(b):
			return reply{Reply: string(b)}, nil
		}
		return reply{Bytes: b}, nil
	})
}

// tell sends the body to the entity ?id=: accepted here, which is not handled.
func (a *api) tell(w http.ResponseWriter, q *http.Request) {
	a.send(w, q, func(r *kith.Region, id string, payload []byte) (any, error) {
		return done{"accepted for " + called(id)}, r.Tell(id, payload)
	})
}

// send does something with the body and the entity of a request.
func (a *api) send(w http.ResponseWriter, q *http.Request, by func(r *kith.Region, id string, payload []byte) (any,
	error)) {
	r, id := a.region(q.PathValue("name")), q.URL.Query().Get("id")
	if r == nil {
		fail(w, http.StatusNotFound, "type "+called(q.PathValue("name"))+" is not registered on this node")
		return
	}
	payload, err := io.ReadAll(q.Body) // it has been read already, within bounds
	if err == nil {
		var out any
		if out, err = by(r, id, payload); err == nil {
			say(w, http.StatusOK, out)
			return
		}
	}
	status, own := http.StatusServiceUnavailable, (*kith.Error)(nil)
	out := unanswered{Error: err.Error(), MayHaveRun: kith.MayHaveRun(err)}
	switch {
	case errors.Is(err, kith.ErrBadID), errors.Is(err, kith.ErrBadShard):
		fail(w, http.StatusBadRequest, err.Error())
		return
	case errors.Is(err, kith.ErrTimeout):
		status = http.StatusGatewayTimeout
	case errors.Is(err, kith.ErrHandler), errors.Is(err, kith.ErrPanic), errors.Is(err, kith.ErrNoReply),
		errors.Is(err, kith.ErrTooLarge):
		status = http.StatusBadGateway
	}
	if errors.As(err, &own) {
		out.Code, out.Kind = own.Code, own.Kind.String()
	}
	say(w, status, out)
}

// maxSeeds bounds the seeds of one request.
const maxSeeds = 16

// join orders the node to join the cluster of ?seeds=, which may be given several times. A node that has company must
// leave its own cluster first: it does so with ?leave=true, and is refused without.
func (a *api) join(w http.ResponseWriter, q *http.Request) {
	goOver, what := a.goOver, "goes over"
	switch leave := q.URL.Query().Get("leave"); leave {
	case "", "false":
	case "true":
		goOver, what = a.leaves, "leaves, and goes over"
	default:
		fail(w, http.StatusBadRequest, "leave: true or false is wanted")
		return
	}
	if goOver == nil {
		fail(w, http.StatusNotImplemented, "this program has no way to go over to another cluster")
		return
	}
	seeds := q.URL.Query()["seeds"]
	if len(seeds) < 1 || len(seeds) > maxSeeds {
		fail(w, http.StatusBadRequest, fmt.Sprintf("seeds: from 1 to %d are wanted, as host:port", maxSeeds))
		return
	}
	for _, s := range seeds {
		if _, _, err := net.SplitHostPort(s); err != nil {
			fail(w, http.StatusBadRequest, fmt.Sprintf("seeds %s: host:port is wanted", called(s)))
			return
		}
	}
	switch err := goOver(q.Context(), seeds); {
	case errors.Is(err, kith.ErrNotAlone), errors.Is(err, kith.ErrJoinPending):
		fail(w, http.StatusConflict, err.Error())
	case err != nil:
		failed(w, err)
	default:
		say(w, http.StatusOK, done{"this node " + what + " to the cluster of " + strings.Join(seeds, ", ")})
	}
}
