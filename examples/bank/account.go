// Accounts: what they keep, what they are asked, and how it is stored.

package main

import (
	"errors"
	"net/http"
	"strings"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/gateway"
	"github.com/kith-io/kith/store"
)

// account is what is stored of an account, and what an ask is answered.
type account struct {
	Balance int64 `json:"balance"`
}

// order is what an account is asked. An empty one reads the balance.
type order struct {
	Deposit  int64  `json:"deposit,omitempty"`
	Transfer int64  `json:"transfer,omitempty"` // takes so much away, for the account To
	To       string `json:"to,omitempty"`
}

const (
	accounts durable.Name[order] = "account"
	most                         = 1_000_000_000 // of one order, and of a balance behind a deposit
)

// apply changes the account by an order, or refuses it.
func (a *account) apply(self string, o *order) error {
	switch {
	case o.Deposit < 0 || o.Deposit > most || o.Transfer < 0 || o.Transfer > most:
		return errors.New("an amount is between 0 and 1000000000")
	case o.Deposit > 0 && o.Transfer > 0 || (o.To != "") != (o.Transfer > 0) || o.To == self:
		return errors.New("an order is a deposit, or a transfer to another account")
	case o.Transfer > a.Balance:
		return errors.New("there is not enough")
	case o.Deposit > 0 && a.Balance > most-o.Deposit:
		return errors.New("the account is full")
	}
	a.Balance += o.Deposit - o.Transfer
	return nil
}

// handle handles an order: the balance and what is sent are stored in one commit, and the answer leaves after it.
func handle(tx *durable.Tx[account], o *order) (account, error) {
	if err := tx.State.apply(tx.ID(), o); err != nil {
		return account{}, err
	}
	if o.Transfer > 0 {
		accounts.Send(tx, o.To, &order{Deposit: o.Transfer}) // is handled once, whatever ends meanwhile
	}
	return *tx.State, nil
}

// refund takes back what a full account has refused. What may have arrived is not paid twice.
func refund(tx *durable.Tx[account], u *durable.Undelivered) {
	if o, ok := accounts.Of(u); ok && !u.MayHaveRun {
		tx.State.Balance += o.Deposit
	}
}

// bank registers the accounts on a node and returns what serves them over HTTP.
func bank(node *kith.Node, db store.Store) (http.Handler, error) {
	all, err := durable.Register(node, durable.Type[account, order, account]{Name: accounts, Store: db,
		Handle: handle, Undelivered: refund})
	if err != nil {
		return nil, err
	}
	in, out := kith.JSON[order](), kith.JSON[account]()
	return gateway.New(gateway.Config{Types: []gateway.Type{{Region: all.Region(), Ask: true, Errors: named,
		AskBy: gateway.AskOf(all.Ask, in, out), Once: gateway.OnceOf(all.AskOnce, in, out),
		MediaType: "application/json"}}})
}

// named gives what was refused for good a status of its own, 409, and its text.
func named(err error) *kith.Error {
	if errors.Is(err, durable.ErrRejected) || errors.Is(err, durable.ErrKeyUsed) {
		text := strings.TrimPrefix(err.Error(), durable.ErrRejected.Error()+": ")
		return kith.NewError("refused", kith.KindConflict, text)
	}
	return nil
}
