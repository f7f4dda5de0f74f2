// Config: what is exposed, and how it is bounded.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
)

// Defaults and bounds of a Config.
const (
	DefaultMaxBody    = 1 << 20 // bytes
	DefaultTimeout    = 10 * time.Second
	DefaultMaxTimeout = time.Minute
	DefaultBodyTime   = 10 * time.Second
	DefaultMaxCalls   = 256

	MaxTypes   = 1024
	MaxHeaders = 64  // names in Config.Headers
	MaxKey     = 255 // bytes of an Idempotency-Key
	maxCalls   = 1 << 20
)

// TimeoutHeader is the header of a request that says how long the call may take: a duration such as 500ms or 1.5s. The
// parameter "timeout" of the query says the same; the header goes before it.
const TimeoutHeader = "Kith-Timeout"

// KeyHeader is the header of an ask that may be repeated: asks of an entity with one key have their effect once.
const KeyHeader = "Idempotency-Key"

// Config says what a gateway exposes, and how much of it at once. The zero value of every field is a safe default: no
// type, and the bounds above.
type Config struct {
	// Types are those that may get asks and tells. None: none may.
	Types []Type
	// Authorize, if not nil, judges each call before its body is read. Its error ends the call: a *kith.Error has the
	// status of its kind, any other is 403. It is called by many goroutines at once and may block as long as the request's
	// context lives. Nil: every call is let in, so the handler gets only callers that are known already.
	Authorize func(q *http.Request, c *Call) error
	// Headers are the names of the headers of a request that go to the entity with the message (ParseHeaders), at most
	// MaxHeaders. None: no headers go.
	Headers []string
	// MaxBody is the most bytes of a request's body; zero means 1 MiB. What is longer is refused with 413, before
	// anything of it is read where its length was said. Config.MaxMessage of the node bounds it too.
	MaxBody int64
	// Timeout is how long a call may take that says nothing of it, MaxTimeout the most that it may say. Zero means 10 s
	// and 1 min; at most a day.
	Timeout, MaxTimeout time.Duration
	// BodyTime is how long the body of a request may take to come, and a reply to go; zero means 10 s, at most a day. It
	// holds where the server's connections have deadlines, as those of net/http do.
	BodyTime time.Duration
	// MaxCalls is how many calls may be under way; zero means 256. Of one address at most a fair share may be: half of
	// them while it is alone, a third while there is another one, and so on.
	MaxCalls int
	// Address names the client whose share a request uses. Nil: its address (of IPv6 the network of 64 bits), which behind
	// a proxy is the proxy's for all.
	Address func(q *http.Request) string
}

// Type is a type of entities that a gateway exposes.
type Type struct {
	// Region sends to the entities.
	Region *kith.Region
	// Name stands for the type in paths; empty: its own name.
	Name string
	// Ask and Tell are what may be done; at least one.
	Ask, Tell bool
	// AskBy, if not nil, carries out asks without a key, in the place of Region.Ask: AskOf makes one of
	// durable.Entities.Ask for a type with answers that are more than its handler's bytes.
	AskBy func(ctx context.Context, c *Call) (reply []byte, err error)
	// Once, if not nil, carries out the asks that have an Idempotency-Key, so that those with one key have their effect
	// once: OnceOf makes one of durable.Entities.AskOnce. An ask with a key of a type without it is refused, since nobody
	// would heed the key.
	Once func(ctx context.Context, c *Call) (reply []byte, err error)
	// Errors, if not nil, gives errors an identity that have none, so that they have a status of their own: as durable's
	// ErrKeyUsed, for which it may return a kith.Error of KindConflict. Nil leaves an error as it is.
	Errors func(err error) *kith.Error
	// MediaType is that of messages and replies; empty: application/octet-stream.
	MediaType string
	// Doc, Message and Reply are for the OpenAPI document: a text, and the schemas of messages and replies in JSON. Empty:
	// nothing is said.
	Doc            string
	Message, Reply json.RawMessage
}

// Call is one call of a request.
type Call struct {
	Type    string // as Type.Name has it
	ID      string // of the entity
	Ask     bool   // else it is a tell
	Key     string // the Idempotency-Key; empty: none
	Payload []byte // the message; nil for Authorize, which is called before it was read
	Headers []byte // what goes with it (ParseHeaders)
}

// AskOf returns a Type.AskBy of a function that asks with values, as durable.Entities.Ask does. It is OnceOf without a
// key.
func AskOf[M, R any](ask func(ctx context.Context, id string, m *M) (R, error), message kith.Codec[M],
	reply kith.Codec[R]) func(ctx context.Context, c *Call) ([]byte, error) {
	return OnceOf(func(ctx context.Context, _, id string, m *M) (R, error) { return ask(ctx, id, m) }, message, reply)
}

// OnceOf returns a Type.Once of a function that asks with a key and values, as durable.Entities.AskOnce does. No
// headers go with its messages. A message that the codec refuses is a kith.ErrBadPayload, and nothing was done.
func OnceOf[M, R any](ask func(ctx context.Context, key, id string, m *M) (R, error), message kith.Codec[M],
	reply kith.Codec[R]) func(ctx context.Context, c *Call) ([]byte, error) {
	return func(ctx context.Context, c *Call) ([]byte, error) {
		var m M
		if err := message.ParseInto(c.Payload, &m); err != nil {
			return nil, fmt.Errorf("%w: %w", kith.ErrBadPayload, err)
		}
		r, err := ask(ctx, c.Key, c.ID, &m)
		if err != nil {
			return nil, err
		}
		b, err := reply.Append(nil, &r)
		if err != nil {
			return nil, route.Ran(fmt.Errorf("the reply: %w", err))
		}
		return b, nil
	}
}

// WithDefaults returns c with zero fields replaced by their defaults.
func (c Config) WithDefaults() Config {
	def := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	def(&c.Timeout, DefaultTimeout)
	def(&c.MaxTimeout, max(DefaultMaxTimeout, c.Timeout))
	def(&c.BodyTime, DefaultBodyTime)
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.MaxCalls == 0 {
		c.MaxCalls = DefaultMaxCalls
	}
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		t := &c.Types[i]
		if t.Name == "" && t.Region != nil {
			t.Name = t.Region.Type().Name
		}
		if t.MediaType == "" {
			t.MediaType = "application/octet-stream"
		}
	}
	return c
}

// Validate returns all faults of c joined, or nil. It judges c as given, so apply WithDefaults first.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Types) > MaxTypes {
		fault("Types has %d entries, must have at most %d", len(c.Types), MaxTypes)
	}
	names := map[string]bool{}
	for i := range c.Types {
		if names[c.Types[i].Name] {
			fault("type %q is there twice", c.Types[i].Name)
		}
		names[c.Types[i].Name] = true
		c.Types[i].validate(fault)
	}
	if len(c.Headers) > MaxHeaders {
		fault("Headers has %d names, must have at most %d", len(c.Headers), MaxHeaders)
	}
	for _, h := range c.Headers {
		if h == "" || strings.ContainsAny(h, " \t\r\n:") {
			fault("Headers has %q, which is no name of a header", h)
		}
	}
	if c.MaxBody < 1 || c.MaxBody > 1<<30 {
		fault("MaxBody is %d, must be 1 to %d", c.MaxBody, 1<<30)
	}
	if c.MaxTimeout <= 0 || c.MaxTimeout > 24*time.Hour {
		fault("MaxTimeout is %v, must be above 0 and at most 24h", c.MaxTimeout)
	}
	if c.Timeout <= 0 || c.Timeout > c.MaxTimeout {
		fault("Timeout is %v, must be above 0 and at most MaxTimeout, %v", c.Timeout, c.MaxTimeout)
	}
	if c.BodyTime <= 0 || c.BodyTime > 24*time.Hour {
		fault("BodyTime is %v, must be above 0 and at most 24h", c.BodyTime)
	}
	if c.MaxCalls < 1 || c.MaxCalls > maxCalls {
		fault("MaxCalls is %d, must be 1 to %d", c.MaxCalls, maxCalls)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: gateway: %w", kith.ErrBadConfig, errors.Join(errs...))
}

// validate returns the faults of one type.
func (t *Type) validate(fault func(format string, args ...any)) {
	if t.Region == nil {
		fault("type %q has no Region", t.Name)
	}
	if t.Name == "" && t.Region != nil || len(t.Name) > 255 {
		fault("the name of a type has %d bytes, must have 1 to 255", len(t.Name))
	}
	if !t.Ask && !t.Tell {
		fault("type %q can be neither asked nor told", t.Name)
	}
	if (t.Once != nil || t.AskBy != nil) && !t.Ask {
		fault("type %q has a Once or an AskBy and cannot be asked", t.Name)
	}
	for what, schema := range map[string]json.RawMessage{"Message": t.Message, "Reply": t.Reply} {
		if len(schema) > 0 && !json.Valid(schema) {
			fault("%s of type %q is no JSON", what, t.Name)
		}
	}
}
