// What an operator wants of one entity: where it lives, what it answers.

package operate

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/kith-io/kith/internal/cli"
)

// Entity is the entity that a verb is about.
type Entity struct {
	Type string `arg:"" help:"Its type."`
	ID   string `arg:"" name:"id" help:"Its id."`
}

// path returns the path of a request about the entity, with further parameters.
func (e *Entity) path(what string, more ...string) string {
	args := url.Values{"id": {e.ID}}
	for i := 0; i+1 < len(more); i += 2 {
		args.Set(more[i], more[i+1])
	}
	return "/v1/types/" + url.PathEscape(e.Type) + "/" + what + "?" + args.Encode()
}

// Validate is called by the parser.
func (e *Entity) Validate() error {
	if e.Type == "" || e.ID == "" {
		return errors.New("type and id must not be empty")
	}
	return nil
}

// Where is the verb that says where an entity lives.
type Where struct {
	Asked
	Entity
}

// Validate is called by the parser.
func (c *Where) Validate() error { return errors.Join(c.Asked.Validate(), c.Entity.Validate()) }

// foundAnswer is where an entity lives.
type foundAnswer struct {
	Shard                    uint32
	Node, Fence              string
	Here, Answered, Stopping bool
	Since                    *time.Time
	Waiting                  int
	Entities, Handled        uint64
	Mailbox                  *struct {
		Lives, Busy    bool
		Waiting, Bytes int
		Idle           float64 `json:"idle_s"`
	}
}

// Run prints where it lives; nowhere is exit code 1.
func (c *Where) Run(to *Console) error {
	var a foundAnswer
	if err := c.ask(to, "GET", c.path("home"), &a); err != nil {
		return err
	}
	if !c.JSON {
		cli.Table(to.Out, a.rows()...)
	}
	if a.Answered {
		return nil
	}
	if err := c.lost(to, &a); err != nil {
		return err
	}
	if a.Node == "" {
		return errors.New("its shard lives nowhere, or its owner has not answered")
	}
	return nil
}

// lost says of which members the owner may be one that do not answer, or were lost, and when it is served again.
func (c *Where) lost(to *Console, a *foundAnswer) error {
	var m membersAnswer
	if c.JSON {
		return nil
	}
	if err := c.ask(to, "GET", "/v1/members", &m); err != nil {
		return err
	}
	for _, o := range m.Outages {
		if a.Node == "" || a.Node == o.Member {
			fmt.Fprintln(to.Out, cli.OneLine(o.Text))
		}
	}
	if a.Node == "" && len(m.Outages) == 0 {
		fmt.Fprintln(to.Out, "no member has the shard: a message to it gives it a home")
	}
	return nil
}

// rows are the lines of a table.
func (a *foundAnswer) rows() [][]string {
	rows := [][]string{{"shard", fmt.Sprint(a.Shard)}}
	add := func(name, value string) { rows = append(rows, []string{name, value}) }
	if a.Node != "" {
		add("node", a.Node+map[bool]string{true: " (the node that was asked)"}[a.Here])
	}
	if a.Since != nil {
		add("known since", a.Since.Format(time.RFC3339))
		add("fence", a.Fence)
	}
	switch {
	case a.Stopping:
		add("owner", "answers: it is giving the shard away")
	case a.Answered:
		add("owner", fmt.Sprintf("answers: entities of this shard: %d", a.Entities))
	default:
		add("owner", "no answer")
	}
	if a.Waiting > 0 {
		add("waiting", fmt.Sprintf("messages of the node that was asked: %d", a.Waiting))
	}
	if a.Here {
		add("shard handled", fmt.Sprint(a.Handled))
	}
	switch m := a.Mailbox; {
	case m == nil:
	case !m.Lives:
		add("entity", "has no instance")
	case m.Busy:
		add("entity", fmt.Sprintf("busy, %d messages wait, %d bytes", m.Waiting, m.Bytes))
	default:
		add("entity", fmt.Sprintf("idle for %.1f s", m.Idle))
	}
	return rows
}

// maxPayload bounds what is sent to an entity, in bytes; the node has the same bound.
const maxPayload = 4 << 10

// Message is the entity that gets a payload.
type Message struct {
	Asked
	Entity
	Payload string `arg:"" optional:"" help:"What it gets, at most 4096 bytes; none: nothing but the message."`
}

// Validate is called by the parser.
func (c *Message) Validate() error {
	var long error
	if len(c.Payload) > maxPayload {
		long = fmt.Errorf("the payload has %d bytes, at most %d are possible", len(c.Payload), maxPayload)
	}
	return errors.Join(c.Asked.Validate(), c.Entity.Validate(), long)
}

// Ask is the verb that asks an entity.
type Ask struct {
	Message
	Within time.Duration `default:"5s" help:"How long the entity has for its answer, at most 8s."`
}

// Validate is called by the parser.
func (c *Ask) Validate() error {
	var late error
	if c.Within <= 0 || c.Within > 8*time.Second {
		late = fmt.Errorf("--within is %v, must be above 0 and at most 8s", c.Within)
	}
	return errors.Join(c.Message.Validate(), late)
}

// Run prints the reply.
func (c *Ask) Run(to *Console) error {
	var a struct {
		Reply string
		Bytes []byte `json:"reply_base64"`
	}
	raw, err := c.sendBody("POST", c.path("ask", "within", c.Within.String()), c.Payload, &a)
	switch {
	case err != nil:
		return err
	case c.JSON:
		_, err = to.Out.Write(raw)
	case a.Bytes != nil:
		_, err = fmt.Fprintf(to.Out, "%q\n", a.Bytes)
	case strings.ContainsFunc(a.Reply, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		_, err = fmt.Fprintf(to.Out, "%q\n", a.Reply) // it might command the terminal
	default:
		_, err = fmt.Fprintln(to.Out, a.Reply)
	}
	return err
}

// Tell is the verb that sends to an entity.
type Tell struct{ Message }

// Run prints that the message was accepted.
func (c *Tell) Run(to *Console) error {
	var d struct{ Message string }
	raw, err := c.sendBody("POST", c.path("tell"), c.Payload, &d)
	switch {
	case err != nil:
		return err
	case c.JSON:
		_, err = to.Out.Write(raw)
	default:
		_, err = fmt.Fprintln(to.Out, cli.OneLine(d.Message))
	}
	return err
}
