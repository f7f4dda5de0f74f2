// What an operator has a running node do.

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// Leave is the verb that has a node leave its cluster.
type Leave struct{ Asked }

// Run makes the node leave.
func (c *Leave) Run(to *Console) error { return c.order(to, "/v1/leave") }

// Drain is the verb that has everything move away from a node.
type Drain struct {
	Asked
	Undo bool `help:"Let the node be given shards again."`
	Wait bool `help:"Wait until nothing lives there any more, for --timeout at most."`
}

// Run moves everything away from the node, which stays a member.
func (c *Drain) Run(to *Console) error {
	if c.Undo {
		return c.order(to, "/v1/undrain")
	}
	if err := c.order(to, "/v1/drain"); err != nil || !c.Wait {
		return err
	}
	return c.await(to, time.Now().Add(c.Timeout))
}

// await waits until nothing lives on the node, which drains.
func (c *Drain) await(to *Console, deadline time.Time) error {
	quiet := c.Asked
	quiet.JSON = false
	for {
		var a typesAnswer
		if err := quiet.ask(to, "GET", "/v1/types", &a); err != nil {
			return unknown(err)
		}
		left := 0
		for _, t := range a.Types {
			left += t.Hosted
		}
		some := fmt.Sprintf("%d shards live there still", left)
		if left == 0 {
			needed, err := quiet.needed()
			if err != nil {
				return unknown(err)
			}
			if needed == "" {
				return drains(&quiet, "nothing lives there")
			}
			some = needed
		}
		if time.Now().After(deadline) {
			return cmp.Or(drains(&quiet, some), errors.New(some+"; the drain goes on"))
		}
		cli.Pause(context.Background(), 100*time.Millisecond)
	}
}

// needed says what others need the disks of stores on a node for that drains, "" where they do not.
func (c *Asked) needed() (some string, err error) {
	var a struct{ Stores []storeCounts }
	if _, err := c.get("/v1/values", &a, http.StatusNotFound); err != nil {
		return "", err
	}
	for _, s := range a.Stores {
		if h := s.HandOn; h.Disks+h.Shards > 0 {
			return fmt.Sprintf("%d disks, and %d shards of records, need its disk of %s still", h.Disks, h.Shards, s.Store), nil
		}
	}
	return "", nil
}

// drains returns why a node does not drain any more, after a word on what lives there, or nil. On one that has ended,
// leaves, or was started again, nothing lives for another reason.
func drains(c *Asked, what string) error {
	var h healthAnswer
	if _, err := c.get("/health/ready", &h, http.StatusServiceUnavailable); err != nil {
		return unknown(err)
	}
	switch {
	case h.State == "ended" || h.State == "leaving":
		return fmt.Errorf("%s, but for another reason than the drain: %w", what, h.fault())
	case !h.Draining:
		return fmt.Errorf("%s, but it does not drain: that was taken back, or it has been started again", what)
	}
	return nil
}

// unknown is the error of a drain that had begun when the node answered no more.
func unknown(err error) error {
	return fmt.Errorf("the drain began, and how it ended is not known, for the node says no more: %w", err)
}

// Move is the verb that moves a shard by hand.
type Move struct {
	Asked
	Type  string `arg:"" help:"Type of the shard."`
	Shard uint32 `arg:"" help:"Number of the shard."`
	To    string `arg:"" help:"Address of the member that is to get it, host:port."`
}

// Run moves a shard by hand.
func (c *Move) Run(to *Console) error {
	q := url.Values{"shard": {fmt.Sprint(c.Shard)}, "to": {c.To}}
	return c.order(to, "/v1/types/"+url.PathEscape(c.Type)+"/move?"+q.Encode())
}

// Rebalancing is the verb that pauses or resumes the balance of the whole cluster, or says whether it is paused.
type Rebalancing struct {
	Asked
	What string `arg:"" optional:"" enum:"pause,resume,show" default:"show" help:"pause, resume, or show whether it is."`
}

// Run pauses or resumes the balance of the whole cluster, or says whether it is paused.
func (c *Rebalancing) Run(to *Console) error {
	if c.What != "show" {
		return c.order(to, "/v1/rebalancing/"+c.What)
	}
	var m membersAnswer
	if err := c.ask(to, "GET", "/v1/members", &m); err != nil || c.JSON {
		return err
	}
	if m.PausedBy == "" {
		fmt.Fprintln(to.Out, "shards move for balance")
	}
	orders(to, &healthAnswer{}, &m)
	return nil
}

// Refound is the verb by which an operator says that all lost members have ended.
type Refound struct {
	Asked
}

// Help says what comes before it.
func (*Refound) Help() string {
	return "Where nodes have tenures (kith run --tenure) and more than half of the seats are lost for good, nothing is " +
		"handled any more. Make sure that the lost processes are dead, and say kith down for each of them first. refound, " +
		"at any node that lives, says that all members which are down or were removed are dead: their seats go to others, " +
		"and what lived there begins elsewhere. If one of them lives after all, its entities live twice. It is refused " +
		"while more than half of the seats are held by members that are not down."
}

// Run gives that word.
func (c *Refound) Run(to *Console) error { return c.order(to, "/v1/refound") }

// Down is the verb that marks a member as gone.
type Down struct {
	Asked
	Addr   string `arg:"" help:"Address of the member, host:port. Its process must be dead."`
	DryRun bool   `help:"Change nothing: show the member as the node sees it, and what down would do."`
}

// Run marks a member as gone.
func (c *Down) Run(to *Console) error {
	if !c.DryRun {
		return c.order(to, "/v1/members/"+url.PathEscape(c.Addr)+"/down")
	}
	var m struct {
		ID, Status string
		Reachable  bool
		AccusedBy  []string `json:"accused_by"`
	}
	if err := c.ask(to, "GET", "/v1/members/"+url.PathEscape(c.Addr), &m); err != nil || c.JSON {
		return err
	}
	fmt.Fprintf(to.Out, "%s is %s\n", cli.OneLine(m.ID), cli.OneLine(m.Status))
	if m.Reachable {
		fmt.Fprintln(to.Out, "WARNING: nobody holds it unreachable. While its process lives, its entities live twice.")
	} else {
		fmt.Fprintln(to.Out, cli.OneLine("unreachable, say "+strings.Join(m.AccusedBy, " ")))
	}
	fmt.Fprintln(to.Out, "down marks it as gone: it is removed, what lives there starts elsewhere after the takeover "+
		"time, and its process ends when it hears of it. It cannot be taken back.")
	return nil
}
