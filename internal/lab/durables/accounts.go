// Accounts: the entities of a storm. Each keeps a list of all that it has done and never looks whether it has done
// something already: that is the library's.

package durables

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
)

// What an account is asked, and what stands in its list then.
type verb string

const (
	read     verb = "read"
	deposit  verb = "deposit"
	transfer verb = "transfer"
	remind   verb = "remind"
	forget   verb = "forget"
	remove   verb = "delete"
	credit   verb = "credit"   // the other end of a transfer
	fired    verb = "fired"    // a reminder
	refunded verb = "refunded" // a transfer that was reported as not handled
	unsure   verb = "unsure"   // one that was reported as perhaps handled
)

// entry is one line of an account's list. Op and N name what it comes of: N counts the times that a reminder came.
type entry struct {
	Op     int
	Do     verb
	N      int   `json:",omitempty"`
	Amount int64 `json:",omitempty"`
}

// account is the state.
type account struct {
	Gen     int // of the entity: another one each time that it begins without a record
	Balance int64
	List    []entry
	Waits   []int `json:",omitempty"` // reminders that it has, by what they come of
}

// order is what an account is asked.
type order struct {
	Op     int
	Do     verb
	N      int
	Amount int64
	To     string
}

// archive is what an account that is deleted sends away.
type archive struct {
	Op int
	ID string
	account
}

// alarm is the body of a reminder.
type alarm struct {
	Op, N, Left int
	Every       time.Duration
	At          int64 // in milliseconds
	To          string
}

const (
	accounts = durable.Name[order]("account")
	vaults   = durable.Name[archive]("vault")
)

// writes puts an entry into the list.
func writes(s *run, a *account, e entry) {
	if a.Gen == 0 {
		s.gens++
		a.Gen = s.gens
	}
	a.Balance += e.Amount
	a.List = append(slices.Clip(a.List), e)
}

// handle is the handler of accounts.
func (s *run) handle(tx *durable.Tx[account], o *order) (account, error) {
	a, op := tx.State, s.ops[o.Op]
	if op.slow > 0 && s.load.IntN(2) == 0 {
		s.c.Wait(op.slow)
	}
	switch o.Do {
	case read:
		return *a, nil
	case deposit, credit:
		writes(s, a, entry{o.Op, o.Do, o.N, o.Amount})
	case transfer:
		gives(s, tx, o.Op, 0, transfer, o.Amount, o.To)
	case remind:
		writes(s, a, entry{Op: o.Op, Do: remind})
		if err := sets(s, tx, alarm{Op: o.Op, Left: op.times, Every: op.every, To: o.To}); err != nil {
			return *a, err
		}
	case forget:
		n := 0
		if tx.Forget(name(op.target)) {
			n = 1
			a.Waits = slices.DeleteFunc(slices.Clone(a.Waits), func(r int) bool { return r == op.target })
		}
		writes(s, a, entry{Op: o.Op, Do: forget, N: n})
	case remove:
		writes(s, a, entry{Op: o.Op, Do: remove})
		vaults.Send(tx, fmt.Sprint("v", o.Op%2), &archive{o.Op, tx.ID(), *a})
		tx.Delete()
	}
	op.stumbled = op.panics > 0 && o.Do == op.do || op.stumbled
	stumbles(s, op)
	if op.refused && (o.Do == credit) == (op.do == transfer) {
		return *a, errors.New("as the seed decided")
	}
	return *a, nil
}

// stumbles panics, if the handler is to.
func stumbles(s *run, op *op) {
	if op.panics > 0 {
		op.panics--
		s.counts.Panics++
		panic("as the seed decided")
	}
}

// gives makes an account send to another one.
func gives(s *run, tx *durable.Tx[account], op, n int, do verb, amount int64, to string) {
	writes(s, tx.State, entry{op, do, n, -amount})
	accounts.Send(tx, to, &order{Op: op, Do: credit, N: n, Amount: amount})
}

func name(op int) string { return fmt.Sprint("r", op) }

// sets sets a reminder, for the first time or again.
func sets(s *run, tx *durable.Tx[account], r alarm) error {
	at := tx.Now().Add(r.Every)
	r.At = at.UnixMilli()
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if a := tx.State; !slices.Contains(a.Waits, r.Op) {
		a.Waits = append(slices.Clip(a.Waits), r.Op)
	}
	return tx.Remind(name(r.Op), at, body)
}

// reminded is the handler of reminders.
func (s *run) reminded(tx *durable.Tx[account], _ string, body []byte) error {
	var r alarm
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	op := s.ops[r.Op]
	if now := tx.Now().UnixMilli(); now < r.At {
		s.violate("early", "reminder %d of %s came %d ms before its time", r.Op, tx.ID(), r.At-now)
	}
	if r.To != "" {
		gives(s, tx, r.Op, r.N, fired, 1, r.To)
	} else {
		writes(s, tx.State, entry{Op: r.Op, Do: fired, N: r.N})
	}
	r.N, r.Left = r.N+1, r.Left-1
	if r.Left > 0 {
		if err := sets(s, tx, r); err != nil {
			return err
		}
	} else {
		a := tx.State
		a.Waits = slices.DeleteFunc(slices.Clone(a.Waits), func(o int) bool { return o == r.Op })
	}
	stumbles(s, op)
	if op.fails > 0 {
		op.fails--
		return errors.New("as the seed decided")
	}
	return nil
}

// undelivered gets what did not arrive.
func (s *run) undelivered(tx *durable.Tx[account], u *durable.Undelivered) {
	o, ok := accounts.Of(u)
	switch {
	case !ok:
		s.violate("strange", "%s is told that %s of %s did not arrive: %v", tx.ID(), u.Body, u.Type, u.Err)
	case u.MayHaveRun:
		writes(s, tx.State, entry{o.Op, unsure, o.N, 0})
	default:
		writes(s, tx.State, entry{o.Op, refunded, o.N, o.Amount})
	}
}

// vault keeps what was deleted.
type vault struct{ List []archive }

func (s *run) keeps(tx *durable.Tx[vault], a *archive) (int, error) {
	tx.State.List = append(slices.Clip(tx.State.List), *a)
	return len(tx.State.List), nil
}

// older is the form of states of schema 1; those of schema 2 have other names for the same.
type older struct {
	Gen   int
	Money int64
	List  []entry
	Waits []int `json:",omitempty"`
}

// build is the codec of states of one schema.
type build struct{ schema uint32 }

// codec returns it.
func (b build) codec() kith.Codec[account] { return b }

// Append implements kith.Codec.
func (b build) Append(dst []byte, a *account) ([]byte, error) {
	var v any = a
	if b.schema == 1 {
		v = older{a.Gen, a.Balance, a.List, a.Waits}
	}
	out, err := json.Marshal(v)
	return append(dst, out...), err
}

// ParseInto implements kith.Codec.
func (b build) ParseInto(in []byte, a *account) error {
	if b.schema != 1 {
		*a = account{}
		return json.Unmarshal(in, a)
	}
	var o older
	err := json.Unmarshal(in, &o)
	*a = account{o.Gen, o.Money, o.List, o.Waits}
	return err
}

// upgrades makes a state of schema 2 of one of schema 1.
func upgrades(_ uint32, state []byte) ([]byte, error) {
	var a account
	if err := (build{1}).ParseInto(state, &a); err != nil {
		return nil, err
	}
	return build{2}.Append(nil, &a)
}
