// The entities of a run: accounts, which keep what was ever applied to them, and registers.

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/store"
)

// The names of the two types.
const (
	bankType     = "bank"
	registerType = "register"
)

// entry is one change of an account.
type entry struct {
	ID    uint64
	Delta int64
}

// account is the state of an account: what it has, and all that has led to it.
type account struct {
	Balance int64
	Entries []entry
}

// maxEntries bounds the entries of an account.
const maxEntries = 40_000

// change is a message to an account. The zero one reads the balance. None of them looks whether it was there before:
// that is what is tried here.
type change struct {
	entry
	To    string        // the account that gets what this one loses, as a change of the next number; empty: none
	After time.Duration // until the account reminds itself of it; zero: never
}

// accounts is by what one account sends to another.
const accounts = durable.Name[change](bankType)

var errEmpty = errors.New("there is not enough")

// handleAccount applies a change.
func handleAccount(tx *durable.Tx[account], c *change) (int64, error) {
	a := tx.State
	switch {
	case c.ID == 0:
		return a.Balance, nil
	case a.Balance+c.Delta < 0:
		return 0, errEmpty
	case len(a.Entries) >= maxEntries:
		return 0, errors.New("the account has too many entries")
	}
	a.Balance += c.Delta
	a.Entries = append(a.Entries, c.entry)
	if c.To != "" {
		accounts.Send(tx, c.To, &change{entry: c.next()})
	}
	if c.After != 0 {
		at := tx.Now().Add(c.After)
		body := binary.AppendVarint(binary.AppendUvarint(nil, c.ID), at.UnixNano())
		if err := tx.Remind(fmt.Sprint(c.ID), at, body); err != nil {
			return 0, err
		}
	}
	return a.Balance, nil
}

// remindedBit and earlyBit mark an entry that a reminder has made of the change that has set it.
const (
	remindedBit = 1 << 61
	earlyBit    = 1 << 60
)

// reminded is the entry that a reminder makes of a change.
func (e entry) reminded() entry { return entry{e.ID | remindedBit, 0} }

// remindAccount notes that the account was reminded, and whether that was too early.
func remindAccount(tx *durable.Tx[account], _ string, body []byte) error {
	id, n := binary.Uvarint(body)
	at, k := binary.Varint(body[max(n, 0):])
	if n <= 0 || k <= 0 {
		return errors.New("that is the reminder of no change")
	}
	e := entry{ID: id}.reminded()
	if tx.Now().UnixNano() < at {
		e.ID |= earlyBit
	}
	tx.State.Entries = append(tx.State.Entries, e)
	return nil
}

// next is the change by which another account gets what this one takes away.
func (e entry) next() entry { return entry{e.ID + 1, -e.Delta} }

// accountCodec writes an account as varints: the entries are most of what a run stores.
type accountCodec struct{}

// Append implements kith.Codec.
func (accountCodec) Append(b []byte, a *account) ([]byte, error) {
	b = binary.AppendUvarint(binary.AppendVarint(b, a.Balance), uint64(len(a.Entries)))
	for _, e := range a.Entries {
		b = binary.AppendVarint(binary.AppendUvarint(b, e.ID), e.Delta)
	}
	return b, nil
}

var errAccount = errors.New("these bytes are no account")

// ParseInto implements kith.Codec.
func (accountCodec) ParseInto(b []byte, a *account) error {
	bad := false
	whole := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			bad = true
			return 0
		}
		b = b[n:]
		return v
	}
	signed := func() int64 {
		v := whole()
		return int64(v>>1) ^ -int64(v&1)
	}
	*a = account{Balance: signed()}
	n := whole()
	if bad || n > maxEntries {
		return errAccount
	}
	for range n {
		a.Entries = append(a.Entries, entry{whole(), signed()})
	}
	if bad || len(b) > 0 {
		return errAccount
	}
	return nil
}

// register is the state of a register.
type register struct {
	Value, Before int64
	Reads         uint64 // that were committed
}

// access is a message to a register.
type access struct {
	Write int64 // zero: it reads
	Plain bool  // a read that is not committed
}

// handleRegister reads or writes.
func handleRegister(tx *durable.Tx[register], a *access) (int64, error) {
	switch {
	case a.Write != 0:
		tx.State.Before, tx.State.Value = tx.State.Value, a.Write
	case !a.Plain: // what it changes has it committed under the fence
		tx.State.Reads++
	}
	return tx.State.Value, nil
}

// staleRegister reads as handleRegister does, but each fiftieth time what was there before.
func staleRegister(tx *durable.Tx[register], a *access) (int64, error) {
	v, err := handleRegister(tx, a)
	if a.Write == 0 && tx.State.Reads%50 == 49 {
		v = tx.State.Before
	}
	return v, err
}

// desks are the two types on one node.
type desks struct {
	bank      *durable.Entities[change, int64]
	registers *durable.Entities[access, int64]
}

// enlist makes the types known to a node.
func enlist(n *kith.Node, s store.Store, shards uint32, idle time.Duration, mistake string) (d desks, err error) {
	handle := handleRegister
	if mistake == breakStale {
		handle = staleRegister
	}
	d.bank, err = durable.Register(n, durable.Type[account, change, int64]{Name: accounts, Store: s, Shards: shards,
		IdleAfter: idle, State: accountCodec{}, Handle: handleAccount, Reminded: remindAccount})
	if err != nil {
		return d, fmt.Errorf("%s: %w", bankType, err)
	}
	d.registers, err = durable.Register(n, durable.Type[register, access, int64]{Name: registerType, Store: s,
		Shards: shards, IdleAfter: idle, Handle: handle})
	if err != nil {
		return d, fmt.Errorf("%s: %w", registerType, err)
	}
	return d, nil
}
