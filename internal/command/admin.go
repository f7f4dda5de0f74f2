// What an operator asks a running node, and has it do, over its admin interface (kith run --admin).

package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// adminFlags say which node is asked.
type adminFlags struct {
	Admin     string        `default:"127.0.0.1:7626" env:"KITH_ADMIN" help:"${admin_help}"`
	CA        string        `name:"ca" type:"existingfile" placeholder:"FILE" help:"${adminca_help}"`
	TokenFile string        `type:"existingfile" env:"KITH_TOKEN_FILE" placeholder:"FILE" help:"${tokenfile_help}"`
	Timeout   time.Duration `default:"10s" help:"How long to wait for an answer."`
	JSON      bool          `name:"json" help:"Print the answer as the node gives it."`
}

// Validate is called by the parser.
func (f *adminFlags) Validate() error {
	if f.Timeout <= 0 {
		return errors.New("--timeout must be more than zero")
	}
	return nil
}

// errAsked is wrapped by the error of a request that the node refused.
var errAsked = errors.New("the node refuses")

// request sends one request and returns its answer, which is not an error of the node.
func (f *adminFlags) request(ctx context.Context, method, path string) (*http.Response, error) {
	base := f.Admin
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	q, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(base, "/")+path, nil)
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	if f.TokenFile != "" {
		token, err := os.ReadFile(f.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	client, err := clientFor(f.CA)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	a, err := client.Do(q)
	if err != nil {
		return nil, fmt.Errorf("no answer of the admin interface (kith run --admin): %w", err)
	}
	return a, nil
}

// ask sends a request, and decodes its answer into v; with --json it is printed as it came. An answer in want is none
// that the node refuses.
func (f *adminFlags) ask(e *env, method, path string, v any, want ...int) error {
	ctx, cancel := context.WithTimeout(context.Background(), f.Timeout)
	defer cancel()
	a, err := f.request(ctx, method, path)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	if a.StatusCode/100 != 2 && !slices.Contains(want, a.StatusCode) {
		var p struct{ Error string }
		if json.Unmarshal(body, &p) != nil || p.Error == "" {
			p.Error = a.Status
		}
		return fmt.Errorf("%w: %s", errAsked, p.Error)
	}
	if f.JSON {
		_, err := e.stdout.Write(body)
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("the answer is none of this interface: %w", err)
	}
	return nil
}

// order sends a request that changes something, and prints what became of it.
func (f *adminFlags) order(e *env, path string) error {
	var d struct{ Message string }
	if err := f.ask(e, "POST", path, &d); err != nil || f.JSON {
		return err
	}
	_, err := fmt.Fprintln(e.stdout, d.Message)
	return err
}

type statusCmd struct{ adminFlags }

// Run prints where the node stands; one that is not ready is exit code 1.
func (c *statusCmd) Run(e *env) error {
	var h struct {
		State, Reason string
		Since         time.Time
	}
	if err := c.ask(e, "GET", "/health/ready", &h, http.StatusServiceUnavailable); err != nil || c.JSON {
		return err
	}
	var m membersAnswer
	if err := c.ask(e, "GET", "/v1/members", &m); err != nil {
		return err
	}
	table(e, []string{"node", m.Self}, []string{"state", h.State + " since " + h.Since.Format(time.RFC3339)},
		[]string{"cluster", m.Cluster}, []string{"members", fmt.Sprintf("%d, %d up", len(m.Members), m.Up)},
		[]string{"leader", m.Leader}, []string{"converged", fmt.Sprint(m.Converged)})
	if h.State != "ready" {
		return fmt.Errorf("this node is %s: %s", h.State, h.Reason)
	}
	return nil
}

type membersAnswer struct {
	Self, Cluster, Leader string
	Converged             bool
	Up                    int
	Members               []struct {
		Addr, Status string
		UpNumber     uint32 `json:"up_number"`
		Roles        []string
		AppVersion   string `json:"app_version"`
		Reachable    bool
		AccusedBy    []string `json:"accused_by"`
	}
}

type membersCmd struct{ adminFlags }

// Run prints the members.
func (c *membersCmd) Run(e *env) error {
	var m membersAnswer
	if err := c.ask(e, "GET", "/v1/members", &m); err != nil || c.JSON {
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
	table(e, rows...)
	return nil
}

type typesAnswer struct {
	Types []struct {
		Name, Role, Mode string
		Shards, Hosted   int
		Entities         uint64
	}
}

type shardsCmd struct {
	adminFlags
	Type string `arg:"" optional:"" help:"A type: where its shards live, on all members. None: the types of the node."`
}

// Run prints the types, or the shards of one.
func (c *shardsCmd) Run(e *env) error {
	if c.Type == "" {
		var a typesAnswer
		if err := c.ask(e, "GET", "/v1/types", &a); err != nil || c.JSON {
			return err
		}
		rows := [][]string{{"TYPE", "SHARDS", "HERE", "ENTITIES", "MODE", "ROLE"}}
		for _, t := range a.Types {
			rows = append(rows, []string{t.Name, fmt.Sprint(t.Shards), fmt.Sprint(t.Hosted), fmt.Sprint(t.Entities),
				t.Mode, t.Role})
		}
		table(e, rows...)
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
	if err := c.ask(e, "GET", "/v1/types/"+url.PathEscape(c.Type), &r); err != nil || c.JSON {
		return err
	}
	fmt.Fprintf(e.stdout, "%d of %d shards live somewhere; coordinator %s\n", r.Homed, r.Shards, r.Coordinator)
	rows := [][]string{{"NODE", "SHARDS", "ENTITIES"}}
	for _, n := range r.Nodes {
		rows = append(rows, []string{n.Node, fmt.Sprint(n.Shards), fmt.Sprint(n.Entities)})
	}
	for _, id := range r.Missing {
		rows = append(rows, []string{id, "no answer", ""})
	}
	table(e, rows...)
	for _, m := range r.Moves {
		fmt.Fprintf(e.stdout, "shard %d moves from %s to %s: %s, for %.1f s\n", m.Shard, m.From, m.To, m.Phase, m.Age)
	}
	return nil
}

type explainCmd struct{ adminFlags }

// Run prints what the node waits for, who holds up convergence, and what the resolver decided.
func (c *explainCmd) Run(e *env) error {
	var h struct{ State, Reason string }
	if err := c.ask(e, "GET", "/health/ready", &h, http.StatusServiceUnavailable); err != nil {
		return err
	}
	var v struct {
		Converged bool
		For       string
		Blockers  []struct{ Why string }
		Decisions []struct {
			At   time.Time
			Text string
		}
	}
	for _, path := range []string{"/v1/convergence", "/v1/decisions"} {
		if err := c.ask(e, "GET", path, &v); err != nil {
			return err
		}
	}
	if c.JSON {
		return nil
	}
	fmt.Fprintf(e.stdout, "this node is %s%s\n", h.State, strings.TrimSuffix(": "+h.Reason, ": "))
	if v.Converged {
		fmt.Fprintln(e.stdout, "all members have seen one state")
	} else {
		fmt.Fprintf(e.stdout, "no convergence for %s:\n", v.For)
	}
	for _, b := range v.Blockers {
		fmt.Fprintf(e.stdout, "  %s\n", b.Why)
	}
	for _, o := range v.Decisions {
		fmt.Fprintf(e.stdout, "%s  %s\n", o.At.Format(time.RFC3339), o.Text)
	}
	return nil
}

type eventsCmd struct {
	adminFlags
	Shards bool `help:"What happens in sharding on the node, not changes of membership."`
}

// Run prints events until the node ends or a signal comes.
func (c *eventsCmd) Run(e *env) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	path := "/v1/events"
	if c.Shards {
		path = "/v1/shard-events"
	}
	a, err := c.request(ctx, "GET", path)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", errAsked, a.Status)
	}
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 16<<20) // a snapshot of a large cluster
	for lines.Scan() {
		data, is := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		var v struct{ Text string }
		switch {
		case !is:
		case c.JSON:
			fmt.Fprintf(e.stdout, "%s\n", data)
		case json.Unmarshal(data, &v) == nil:
			fmt.Fprintln(e.stdout, v.Text)
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the stream broke off: %w", err)
	}
	return nil
}

type leaveCmd struct{ adminFlags }

// Run has the node leave.
func (c *leaveCmd) Run(e *env) error { return c.order(e, "/v1/leave") }

type drainCmd struct {
	adminFlags
	Undo bool `help:"Let the node be given shards again."`
	Wait bool `help:"Wait until nothing lives there any more, for --timeout at most."`
}

// Run has everything move away from the node, which stays a member.
func (c *drainCmd) Run(e *env) error {
	if c.Undo {
		return c.order(e, "/v1/undrain")
	}
	if err := c.order(e, "/v1/drain"); err != nil || !c.Wait {
		return err
	}
	deadline := time.Now().Add(c.Timeout)
	quiet := c.adminFlags
	quiet.JSON = false
	for {
		var a typesAnswer
		if err := quiet.ask(e, "GET", "/v1/types", &a); err != nil {
			return err
		}
		left := 0
		for _, t := range a.Types {
			left += t.Hosted
		}
		switch {
		case left == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%d shards live there still; the drain goes on", left)
		}
		cli.Pause(context.Background(), 100*time.Millisecond)
	}
}

type moveCmd struct {
	adminFlags
	Type  string `arg:"" help:"Type of the shard."`
	Shard uint32 `arg:"" help:"Number of the shard."`
	To    string `arg:"" help:"Address of the member that is to get it, host:port."`
}

// Run moves a shard by hand.
func (c *moveCmd) Run(e *env) error {
	q := url.Values{"shard": {fmt.Sprint(c.Shard)}, "to": {c.To}}
	return c.order(e, "/v1/types/"+url.PathEscape(c.Type)+"/move?"+q.Encode())
}

type balanceCmd struct {
	adminFlags
	What string `arg:"" enum:"pause,resume" help:"pause or resume."`
}

// Run pauses or resumes the balance of the whole cluster.
func (c *balanceCmd) Run(e *env) error { return c.order(e, "/v1/rebalancing/"+c.What) }

type downCmd struct {
	adminFlags
	Addr   string `arg:"" help:"Address of the member, host:port. Its process must be dead."`
	DryRun bool   `help:"Only show the member as the node sees it."`
}

// Run marks a member as gone.
func (c *downCmd) Run(e *env) error {
	if !c.DryRun {
		return c.order(e, "/v1/members/"+url.PathEscape(c.Addr)+"/down")
	}
	var m struct {
		ID, Status string
		Reachable  bool
	}
	err := c.ask(e, "GET", "/v1/members/"+url.PathEscape(c.Addr), &m)
	if err == nil && !c.JSON {
		fmt.Fprintf(e.stdout, "%s is %s, reachable: %v; it would be downed\n", m.ID, m.Status, m.Reachable)
	}
	return err
}
