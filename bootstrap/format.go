// Format: what contact points say to each other, as JSON. Its names are frozen: nodes of any version read them.

package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/kith-io/kith/bootstrap/formation"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Format is the version of the JSON. Later ones add fields, which earlier readers pass over.
const Format = 1

// Bounds of what is read.
const (
	maxName  = 64
	maxAddrs = formation.MaxSeeds
)

// errFormat is wrapped by the error of JSON that is none of a contact point.
var errFormat = errors.New("no answer of a contact point")

// contactJSON is the answer of GET /bootstrap/v1/contact.
type contactJSON struct {
	Format      int      `json:"format"`
	Cluster     string   `json:"cluster"`
	Node        string   `json:"node"`
	Incarnation string   `json:"incarnation"`
	Wire        string   `json:"wire"`
	ClusterID   string   `json:"cluster_id,omitempty"` // absent: the node is in no cluster
	Seeds       []string `json:"seeds"`
	Forms       bool     `json:"forms"`
	Ended       uint64   `json:"ended_attempts"`
	Never       bool     `json:"never_forms,omitempty"`
}

// askJSON is the body of POST /bootstrap/v1/promise.
type askJSON struct {
	Format      int    `json:"format"`
	Cluster     string `json:"cluster"`
	Node        string `json:"node"`
	Incarnation string `json:"incarnation"`
	Contact     string `json:"contact"`
	Attempt     uint64 `json:"attempt"`
	Wants       bool   `json:"wants"`
}

// answerJSON is the answer to it.
type answerJSON struct {
	Contact contactJSON `json:"contact"`
	Granted bool        `json:"granted"`
	Attempt uint64      `json:"attempt"`
	Holder  string      `json:"holder,omitempty"`
}

func hex(n uint64) string { return fmt.Sprintf("%016x", n) }

func toJSON(r formation.Reply) contactJSON {
	c := contactJSON{Format: Format, Cluster: r.Cluster, Node: r.Node.Addr.String(), Incarnation: hex(r.Node.Inc),
		Wire: r.Wire.String(), Seeds: []string{}, Forms: r.Forms, Ended: r.Ended,
		Never: r.Never}
	if r.ClusterID != 0 {
		c.ClusterID = hex(r.ClusterID)
	}
	for _, a := range r.Seeds {
		c.Seeds = append(c.Seeds, a.String())
	}
	return c
}

// readID reads a node's address and incarnation.
func readID(addr, incarnation string) (id peer.ID, err error) {
	if id.Addr, err = peer.ParseAddr(addr); err != nil {
		return id, fmt.Errorf("%w: node: %w", errFormat, err)
	}
	if id.Inc, err = strconv.ParseUint(incarnation, 16, 64); err != nil || id.Inc == 0 {
		return id, fmt.Errorf("%w: an incarnation of %d bytes is none", errFormat, len(incarnation))
	}
	return id, nil
}

// reply is what c says, checked.
func (c *contactJSON) reply() (r formation.Reply, err error) {
	if c.Format < 1 || c.Cluster == "" || len(c.Cluster) > maxName || len(c.Seeds) > maxAddrs {
		return r, fmt.Errorf("%w: format %d, a name of %d bytes, %d seeds", errFormat, c.Format, len(c.Cluster),
			len(c.Seeds))
	}
	r = formation.Reply{Cluster: c.Cluster, Forms: c.Forms, Ended: c.Ended, Never: c.Never}
	if r.Node, err = readID(c.Node, c.Incarnation); err != nil {
		return r, err
	}
	known := false
	if r.Wire, known = wire.ParseVersions(c.Wire); !known {
		return r, fmt.Errorf("%w: wire versions %.20q", errFormat, c.Wire)
	}
	if c.ClusterID != "" {
		if r.ClusterID, err = strconv.ParseUint(c.ClusterID, 16, 64); err != nil || r.ClusterID == 0 {
			return r, fmt.Errorf("%w: cluster id %.20q", errFormat, c.ClusterID)
		}
	} else if len(c.Seeds) > 0 {
		return r, fmt.Errorf("%w: seeds without a cluster", errFormat)
	}
	for _, s := range c.Seeds {
		a, err := peer.ParseAddr(s)
		if err != nil {
			return r, fmt.Errorf("%w: seed: %w", errFormat, err)
		}
		r.Seeds = append(r.Seeds, a)
	}
	return r, nil
}

func readContact(body []byte) (r formation.Reply, err error) {
	var c contactJSON
	if err := json.Unmarshal(body, &c); err != nil {
		return r, fmt.Errorf("%w: %w", errFormat, err)
	}
	return c.reply()
}

func askToJSON(a formation.Ask) askJSON {
	return askJSON{Format: Format, Cluster: a.Cluster, Node: a.From.Addr.String(), Incarnation: hex(a.From.Inc),
		Contact: a.Point.String(), Attempt: a.Attempt, Wants: a.Wants}
}

func readAsk(body []byte) (a formation.Ask, err error) {
	var j askJSON
	if err := json.Unmarshal(body, &j); err != nil {
		return a, fmt.Errorf("%w: %w", errFormat, err)
	}
	if j.Format < 1 || j.Cluster == "" || len(j.Cluster) > maxName || j.Attempt == 0 {
		return a, fmt.Errorf("%w: format %d, a name of %d bytes, attempt %d", errFormat, j.Format, len(j.Cluster), j.Attempt)
	}
	a = formation.Ask{Cluster: j.Cluster, Attempt: j.Attempt, Wants: j.Wants}
	if a.From, err = readID(j.Node, j.Incarnation); err != nil {
		return a, err
	}
	if a.Point, err = peer.ParseAddr(j.Contact); err != nil {
		return a, fmt.Errorf("%w: contact: %w", errFormat, err)
	}
	return a, nil
}

func answerToJSON(a formation.Answer) answerJSON {
	j := answerJSON{Contact: toJSON(a.Reply), Granted: a.Granted, Attempt: a.Attempt}
	if !a.Holder.IsZero() {
		j.Holder = a.Holder.String()
	}
	return j
}

func readAnswer(body []byte) (a formation.Answer, err error) {
	var j answerJSON
	if err := json.Unmarshal(body, &j); err != nil {
		return a, fmt.Errorf("%w: %w", errFormat, err)
	}
	a.Granted, a.Attempt = j.Granted, j.Attempt
	a.Reply, err = j.Contact.reply()
	return a, err
}
