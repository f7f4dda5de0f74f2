// Counts: how often a storm met what the data plane does beyond the fast path.

package sim

// PlaneCounts says how often a storm met what a node does with a message beyond the fast path.
type PlaneCounts struct {
	Rehomed int `json:"rehomed"` // dead ends: a route led to a member that is forgotten, and another home was asked for
	Expired int `json:"expired"` // messages that waited too long for a home
}

func (c *PlaneCounts) add(o *PlaneCounts) {
	c.Rehomed += o.Rehomed
	c.Expired += o.Expired
}
