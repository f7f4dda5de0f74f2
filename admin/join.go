// Join: has a node go over to the cluster of others.

package admin

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/kith-io/kith"
)

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
