// What an operator asks a running node.

package operate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// Status is the verb that asks where a node stands.
type Status struct{ Asked }

// Run prints where the node stands; one that is not ready is exit code 1.
func (c *Status) Run(to *Console) error {
	var h healthAnswer
	raw, err := c.get("/health/ready", &h, http.StatusServiceUnavailable)
	if err != nil {
		return err
	}
	var m membersAnswer
	rest, err := c.get("/v1/members", &m)
	if err != nil {
		return err
	}
	if c.JSON {
		all, err := statusOf(raw, rest, len(m.Members))
		if err != nil {
			return err
		}
		if err := json.NewEncoder(to.Out).Encode(all); err != nil {
			return err
		}
		return h.fault()
	}
	cli.Table(to.Out, []string{"node", m.Self}, []string{"state", h.State + " since " + h.Since.Format(time.RFC3339)},
		[]string{"cluster", m.Cluster}, []string{"members", fmt.Sprintf("%d, %d up", len(m.Members), m.Up)},
		[]string{"leader", m.Leader}, []string{"converged", fmt.Sprint(m.Converged)})
	orders(to, &h, &m)
	return h.fault()
}

// statusOf is all that status says as one object: what the node says of its health, and of its cluster, of which only
// the number of members.
func statusOf(health, members []byte, count int) (map[string]any, error) {
	all := map[string]any{}
	if err := errors.Join(json.Unmarshal(members, &all), json.Unmarshal(health, &all)); err != nil {
		return nil, fmt.Errorf("%w: %w", errForeign, err)
	}
	all["node"], all["members"] = all["self"], count
	delete(all, "self")
	return all, nil
}

type healthAnswer struct {
	State, Reason string
	Since         time.Time
	Draining      bool
	Twins         []struct {
		Cluster, Via string
		Birth        uint64
	}
}

// orders prints what operators have ordered of the node, or the cluster, and not taken back, and what wants them: a
// twin.
func orders(to *Console, h *healthAnswer, m *membersAnswer) {
	for _, t := range h.Twins {
		what := "another cluster of this name, " + t.Cluster + ","
		if t.Cluster == m.Cluster {
			what = "another side of this cluster, which has removed this one,"
		}
		fmt.Fprintf(to.Out, "%s lives at %s: one of the two has to end (docs/troubleshooting.md)\n", cli.OneLine(what),
			cli.OneLine(t.Via))
	}
	if h.Draining {
		fmt.Fprintln(to.Out, "it drains: everything moves away from it, and it is given no shards (kith drain --undo)")
	}
	for _, o := range m.Outages {
		fmt.Fprintln(to.Out, cli.OneLine(o.Text))
	}
	if m.Tenure.Text != "" {
		fmt.Fprintln(to.Out, cli.OneLine(m.Tenure.Text))
	}
	if m.PausedBy != "" {
		fmt.Fprintf(to.Out, "nothing moves for balance: paused at %s (kith rebalancing resume)\n", cli.OneLine(m.PausedBy))
	}
}

// fault is what keeps the node from being ready, or nil.
func (h *healthAnswer) fault() error {
	switch {
	case h.State == "ready" && h.Reason == "":
		return nil
	case h.State == "ready": // the program says so, or it stands still
		return fmt.Errorf("this node is not ready: %s", cli.OneLine(h.Reason))
	}
	return fmt.Errorf("this node is %s: %s", cli.OneLine(h.State), cli.OneLine(h.Reason))
}

type membersAnswer struct {
	Self, Cluster, Leader string
	Converged             bool
	Up                    int
	PausedBy              string `json:"rebalancing_paused_by"`
	Outages               []struct{ Member, Text string }
	Tenure                struct{ Text string }
	Members               []struct {
		Addr, Status string
		UpNumber     uint32 `json:"up_number"`
		Roles        []string
		AppVersion   string `json:"app_version"`
		Reachable    bool
		AccusedBy    []string `json:"accused_by"`
	}
}

// Members is the verb that lists the members as a node sees them.
type Members struct{ Asked }

// Run prints the members.
func (c *Members) Run(to *Console) error {
	var m membersAnswer
	if err := c.ask(to, "GET", "/v1/members", &m); err != nil || c.JSON {
		return err
	}
	rows := [][]string{{"ADDRESS", "STATUS", "NUMBER", "REACHABLE", "ROLES", "VERSION"}}
	for _, o := range m.Members {
		reach := "yes"
		if !o.Reachable {
			reach = "no, say " + strings.Join(o.AccusedBy, " ")
		}
		rows = append(rows, []string{o.Addr, o.Status, fmt.Sprint(o.UpNumber), reach, strings.Join(o.Roles, ","),
			o.AppVersion})
	}
	cli.Table(to.Out, rows...)
	return nil
}

type typesAnswer struct {
	Types []struct {
		Name, Role, Kind string
		Mode             string
		Shards, Hosted   int
		Entities         uint64
	}
}

// Shards is the verb that lists the types of a node, or where the shards of one live.
type Shards struct {
	Asked
	Type *string `arg:"" optional:"" help:"A type: where its shards live, on all members. None: the types of the node."`
}

// Validate is called by the parser.
func (c *Shards) Validate() error {
	var empty error
	if c.Type != nil && *c.Type == "" {
		empty = errors.New("the name of the type is empty")
	}
	return errors.Join(c.Asked.Validate(), empty)
}

// Run prints the types, or the shards of one.
func (c *Shards) Run(to *Console) error {
	if c.Type == nil {
		var a typesAnswer
		if err := c.ask(to, "GET", "/v1/types", &a); err != nil || c.JSON {
			return err
		}
		rows := [][]string{{"TYPE", "SHARDS", "HERE", "ENTITIES", "KIND", "MODE", "ROLE"}}
		for _, t := range a.Types {
			rows = append(rows, []string{t.Name, fmt.Sprint(t.Shards), fmt.Sprint(t.Hosted), fmt.Sprint(t.Entities),
				t.Kind, t.Mode, t.Role})
		}
		cli.Table(to.Out, rows...)
		return nil
	}
	var r struct {
		Coordinator   string
		Shards, Homed int
		Nodes         []struct {
			Node       string
			Registered bool
			Shards     int
			Entities   uint64
		}
		Moves []struct {
			Shard           int
			From, To, Phase string
			Age             float64 `json:"age_s"`
		}
		Missing []string
	}
	if err := c.ask(to, "GET", "/v1/types/"+url.PathEscape(*c.Type), &r); err != nil || c.JSON {
		return err
	}
	var m membersAnswer
	if err := c.ask(to, "GET", "/v1/members", &m); err != nil {
		return err
	}
	fmt.Fprintf(to.Out, "%s; coordinator %s\n", homes(r.Homed, r.Shards, len(m.Outages) > 0), cli.OneLine(r.Coordinator))
	for _, o := range m.Outages {
		fmt.Fprintln(to.Out, cli.OneLine(o.Text))
	}
	rows := [][]string{{"NODE", "SHARDS", "ENTITIES"}}
	for _, n := range r.Nodes {
		rows = append(rows, []string{n.Node, fmt.Sprint(n.Shards), fmt.Sprint(n.Entities)})
	}
	for _, id := range r.Missing {
		rows = append(rows, []string{id, "no answer", ""})
	}
	cli.Table(to.Out, rows...)
	for _, m := range r.Moves {
		fmt.Fprintf(to.Out, "shard %d moves from %s to %s: %s, for %.1f s\n", m.Shard, cli.OneLine(m.From),
			cli.OneLine(m.To), cli.OneLine(m.Phase), m.Age)
	}
	return nil
}

// homes says how many shards have one. A shard to which nobody has sent yet needs none; while a member is lost, it is
// not known here which do.
func homes(homed, all int, lost bool) string {
	switch {
	case homed == all:
		return fmt.Sprintf("all %d shards live somewhere", all)
	case lost:
		return fmt.Sprintf("%d of %d shards live somewhere", homed, all)
	}
	return fmt.Sprintf("%d of %d shards live somewhere, the others need no home yet", homed, all)
}

// Explain is the verb that asks what a node waits for, and what its resolver decided.
type Explain struct{ Asked }

// Run prints what the node waits for, which members hold up convergence, and what the resolver decided.
func (c *Explain) Run(to *Console) error {
	var h healthAnswer
	var v struct {
		Converged bool
		For       float64 `json:"for_s"`
		Blockers  []struct{ Why string }
		Error     string // there is no convergence to tell of: the node has ended
		Decisions []struct {
			At   time.Time
			Text string
		}
	}
	var m membersAnswer
	said := map[string]json.RawMessage{}
	for name, path := range map[string]string{"health": "/health/ready", "convergence": "/v1/convergence",
		"decisions": "/v1/decisions", "members": "/v1/members"} {
		var into any = &v
		switch name {
		case "health":
			into = &h
		case "members":
			into = &m
		}
		raw, err := c.get(path, into, http.StatusServiceUnavailable)
		if err != nil {
			return err
		}
		said[name] = raw
	}
	if c.JSON {
		return json.NewEncoder(to.Out).Encode(said)
	}
	fmt.Fprintf(to.Out, "this node is %s%s\n", cli.OneLine(h.State), cli.OneLine(strings.TrimSuffix(": "+h.Reason, ": ")))
	orders(to, &h, &m)
	switch {
	case v.Error != "" && v.Error == h.Reason: // said already
	case v.Error != "":
		fmt.Fprintf(to.Out, "convergence is not known: %s\n", cli.OneLine(v.Error))
	case v.Converged:
		fmt.Fprintln(to.Out, "all members have seen one state")
	case v.For == 0:
		fmt.Fprintln(to.Out, "no convergence")
	default:
		fmt.Fprintf(to.Out, "no convergence for %v:\n", time.Duration(v.For*float64(time.Second)).Round(time.Millisecond))
	}
	for _, b := range v.Blockers {
		fmt.Fprintf(to.Out, "  %s\n", cli.OneLine(b.Why))
	}
	for _, o := range v.Decisions {
		fmt.Fprintf(to.Out, "%s  %s\n", o.At.Format(time.RFC3339), cli.OneLine(o.Text))
	}
	return nil
}

// Events is the verb that prints what happens at a node.
type Events struct {
	Asked
	Shards bool `help:"What happens in sharding on the node, not changes of membership."`
}

// Run prints events until the node ends or a signal comes. --timeout is for the first one.
func (c *Events) Run(to *Console) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	late := fmt.Errorf("%s within %v", unanswered, c.Timeout)
	first := time.AfterFunc(c.Timeout, func() { end(late) })
	defer first.Stop()
	err := c.follow(ctx, to, func() { first.Stop() })
	if context.Cause(ctx) == late {
		return late
	}
	return err
}

// follow prints events, and calls begun before the first of them.
func (c *Events) follow(ctx context.Context, to *Console, begun func()) error {
	path := "/v1/events"
	if c.Shards {
		path = "/v1/shard-events"
	}
	a, err := c.open(ctx, path)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if kind := a.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return fmt.Errorf("%w: it has the type %q, and is no stream of events", errForeign, kind)
	}
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 16<<20) // a snapshot of a large cluster
	for lines.Scan() {
		data, is := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !is {
			continue
		}
		begun()
		var v struct {
			At   time.Time
			Text string
		}
		switch {
		case c.JSON:
			_, err = fmt.Fprintf(to.Out, "%s\n", data)
		case json.Unmarshal(data, &v) == nil:
			at := v.At.Format(time.RFC3339)
			if v.At.IsZero() { // of a node that says no times
				at = "-"
			}
			_, err = fmt.Fprintf(to.Out, "%s  %s\n", at, cli.OneLine(v.Text))
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the stream broke off: %w", err)
	}
	return nil
}
