// Config: what a rolling restart is made of.

package rolling

import (
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// Job says what entities there are, and what they and their senders do.
type Job struct {
	Entities int    // to which everything is sent
	Shards   uint32 // that they are spread over
	Mode     kith.Mode
	Takes    time.Duration // what each call of a handler takes; Blocking
	Large    int           // one tell of so many is a large message; zero: none
	Nested   int           // one ask of so many is answered by way of another entity; zero: none; Blocking
	State    int           // padding of the state that each entity carries along, in bytes; zero: no state
	Kept     int           `json:",omitempty"` // the entities are kept alive, and so many daemons; zero: none
}

// Bounds of what is carried along: of one state, and of how many instances are remembered.
const (
	maxState = 1 << 20
	maxLives = 10_000_000
)

// Config says what is run.
type Config struct {
	Job
	Nodes    int           // processes that host, each restarted in turn
	Rounds   int           // restarts in all
	Together int           // how many leave at one time
	Senders  int           // a quarter of them is on the process that only sends
	Rate     float64       // messages a second of all senders together, asks among them
	Asks     float64       // asks a second of all senders together
	TLS      bool          // mutual, with a certificate authority that is thrown away
	Pause    time.Duration // between a restart and the next
	Link     int           // megabits a second of each process's link, each way; zero: loopback, without a bound
	Stall    time.Duration // a bystander is stopped for so long during each restart; zero: none is
	Bound    time.Duration // 999 of 1,000 asks are to be answered within this time

	Child    cli.Options // how a child is started: Path, Args, Env, Stderr
	Progress *cli.Progress
}

// Validate returns all faults joined, or nil.
func (c *Config) Validate() error {
	var errs cli.Faults
	errs.Must(c.Nodes >= 2 && c.Nodes <= 16, "--nodes must be 2 to 16")
	errs.Must(c.Rounds >= 1 && c.Rounds <= 1000, "--rounds must be 1 to 1000")
	errs.Must(c.Together >= 1 && c.Together < max(c.Nodes, 2), "--together must be at least 1 and below --nodes")
	errs.Must(c.Entities >= 1 && c.Entities <= 100_000, "--entities must be 1 to 100000")
	errs.Must(c.Shards >= 1 && c.Shards <= 10_000, "--shards must be 1 to 10000")
	errs.Must(c.Senders >= 1 && c.Senders <= 64, "--senders must be 1 to 64")
	errs.Must(c.Rate > 0 && c.Rate <= 1e6, "--rate must be more than 0 and at most 1000000")
	errs.Must(c.Asks > 0 && c.Asks <= c.Rate, "--asks must be more than 0 and at most --rate, of which they are a part")
	errs.Must(c.Pause >= 0 && c.Pause <= time.Hour, "--pause must be 0 to 1h")
	errs.Must(c.Takes >= 0 && c.Takes <= time.Minute, "--work must be 0 to 1m")
	errs.Must(c.Large >= 0, "--large is negative")
	errs.Must(c.Nested >= 0, "--nested is negative")
	errs.Must(c.State >= 0 && c.State <= maxState, "--state must be 0 to 1MiB")
	errs.Must(c.State <= 0 || c.Entities*c.Rounds <= maxLives,
		"with --state, --entities times --rounds must be at most %d", maxLives)
	errs.Must(c.Mode == kith.Blocking || c.Takes == 0 && c.Nested == 0,
		"--work and --nested need --mode=blocking: others must not wait")
	errs.Must(c.Link >= 0 && c.Link <= 10_000, "--link must be 0 to 10000 mbit")
	errs.Must(c.Stall >= 0 && c.Stall <= time.Minute, "--stall must be 0 to 1m")
	errs.Must(c.Stall == 0 || c.Nodes > c.Together+1, "--stall needs a node beside those that leave, and another one")
	errs.Must(c.Link == 0 || !c.TLS, "--link and --tls do not go together")
	errs.Must(c.Bound > 0, "--bound must be more than 0")
	return errs.Err()
}

// askTime bounds one ask. One that takes longer is an error.
const askTime = 30 * time.Second

// Time limits of the phases.
const (
	joinLimit   = 60 * time.Second // of a process that was started again, until all see it Up
	leaveTime   = 30 * time.Second // kith.Config.LeaveTimeout
	leaveLimit  = 60 * time.Second
	settleLimit = 10 * time.Second // for moves that are on their way at the end, where states are followed
	callLimit   = 60 * time.Second // longer than askTime: senders end when all is answered
	steadyTime  = time.Second      // under load before the first restart and behind the last
)
