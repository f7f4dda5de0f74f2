// Health: answers for the probes of an orchestrator.

package admin

import (
	"net/http"
	"time"

	"github.com/kith-io/kith"
)

// health is the answer of GET /health/...: 200, or 503 when it is not so.
type health struct {
	State  kith.NodeState `json:"state"`
	Since  time.Time      `json:"since"`
	Reason string         `json:"reason,omitempty"`
	Drains bool           `json:"draining,omitempty"` // everything moves, or has moved, away from it
}

func healthOf(h kith.Health) health { return health{h.State, h.Since, h.Reason, h.Draining} }

func probe(w http.ResponseWriter, h kith.Health, good bool) {
	status := http.StatusOK
	if !good {
		status = http.StatusServiceUnavailable
	}
	say(w, status, healthOf(h))
}

// started is yes once the node was admitted to a cluster, until it has ended: an orchestrator gives it time until then.
func (a *api) started(w http.ResponseWriter, _ *http.Request) {
	h := a.node.Health()
	probe(w, h, h.State != kith.StateStarting && h.State != kith.StateEnded)
}

// ready is yes while the node may be sent work: not two seconds after its control goroutine stood still.
func (a *api) ready(w http.ResponseWriter, _ *http.Request) {
	h := a.node.Health()
	probe(w, h, h.Ready())
}

// alive is yes until the node has ended, or its control goroutine has stood still for so long that the others have
// given it up: only then does a new process help.
func (a *api) alive(w http.ResponseWriter, _ *http.Request) {
	h := a.node.Health()
	probe(w, h, h.Alive())
}
