// The example of messages that have their effect once.

package durable_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/store"
)

// deposits is the state of an entity, transfer a message to one.
type deposits struct{ Balance int64 }

type transfer struct {
	Deposit, Credit, Transfer int64
	To                        string
}

const accounts = durable.Name[transfer]("account")

// transfers takes what is transferred from the balance and sends it: both are stored in one commit, and the receiver
// handles what was sent once, whatever ends and begins again meanwhile.
func transfers(tx *durable.Tx[deposits], o *transfer) (int64, error) {
	a := tx.State
	switch {
	case o.Transfer > a.Balance:
		return 0, fmt.Errorf("%s has %d", tx.ID(), a.Balance) // nothing is written, and nothing sent
	case o.Transfer > 0:
		a.Balance -= o.Transfer
		accounts.Send(tx, o.To, &transfer{Credit: o.Transfer}) // leaves with the commit, is handled once
	default:
		a.Balance += o.Deposit + o.Credit
	}
	return a.Balance, nil // the asker gets it when it is stored
}

// An account that is transferred from, and one that is transferred to. A caller that does not know whether its ask had
// its effect asks again with the same key.
func ExampleName_Send() {
	ctx := context.Background()
	node, err := kith.Start(ctx, kith.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	bank, err := durable.Register(node, durable.Type[deposits, transfer, int64]{Name: accounts, Store: store.Memory(),
		Handle: transfers})
	if err != nil {
		log.Fatal(err)
	}
	if _, err = bank.Ask(ctx, "anna", &transfer{Deposit: 7}); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		left, err := bank.AskOnce(ctx, "payment 4711", "anna", &transfer{Transfer: 5, To: "ben"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(left)
	}
	for balance := int64(0); balance < 5; { // it is on its way
		if balance, err = bank.Ask(ctx, "ben", &transfer{}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("ben has it")
	// Output:
	// 2
	// 2
	// ben has it
}
