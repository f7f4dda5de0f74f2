// Health: answers for the probes of an orchestrator.

package admin

import (
	"net/http"
	"strings"
	"time"

	"github.com/kith-io/kith"
)

// health is the answer of GET /health/...: 200, or 503 when it is not so.
type health struct {
	State  kith.NodeState `json:"state"`
	Since  time.Time      `json:"since"`
	Reason string         `json:"reason,omitempty"`
	Drains bool           `json:"draining,omitempty"` // everything moves, or has moved, away from it
	Twins  []twin         `json:"twins,omitempty"`    // other clusters of this one's name, and other sides of this one
}

// twin is another cluster of this one's name, or another side of this cluster: both live, and one of them is to end.
type twin struct {
	Cluster string `json:"cluster"` // its id, in hexadecimal: this one's own, if it is another side
	Birth   uint64 `json:"birth"`   // zero: not known
	Via     string `json:"via"`     // the address at which it was met
}

// maxTwins bounds the twins in one answer.
const maxTwins = 16

func healthOf(h kith.Health) health {
	out := health{State: h.State, Since: h.Since, Reason: h.Reason, Drains: h.Draining}
	for _, t := range h.Duplicates[:min(len(h.Duplicates), maxTwins)] {
		out.Twins = append(out.Twins, twin{hex(t.ClusterID), t.Birth, t.Via.String()})
	}
	return out
}

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

// maxWords bounds what a program says of itself, in bytes.
const maxWords = 256

// ready is yes while the node may be sent work, and the program says nothing against it: not two seconds after the
// node's control goroutine stood still.
func (a *api) ready(w http.ResponseWriter, _ *http.Request) {
	h := a.node.Health()
	good := h.Ready()
	if good && a.unfit != nil {
		if why := a.unfit(); why != "" {
			good, h.Reason = false, strings.ToValidUTF8(why[:min(len(why), maxWords)], "")
		}
	}
	probe(w, h, good)
}

// alive is yes until the node has ended, or its control goroutine has stood still for so long that the others have
// given it up: only then does a new process help.
func (a *api) alive(w http.ResponseWriter, _ *http.Request) {
	h := a.node.Health()
	probe(w, h, h.Alive())
}
