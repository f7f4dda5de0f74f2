// The example of the package.

package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/gateway"
)

type account struct{ balance int }

func (a *account) deposit(_ *kith.Context, deposit *int) (int, error) {
	a.balance += *deposit
	return a.balance, nil
}

func (*account) Stop(*kith.Context) {}

// A node lets others ask its accounts over HTTP.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	deposit := kith.Message[int, int]{Type: "account"}
	accounts, err := node.Register(kith.EntityType{Name: "account", Typed: kith.Methods(
		func(*kith.Context) (*account, error) { return &account{}, nil }, kith.On(deposit, (*account).deposit))})
	if err != nil {
		log.Fatal(err)
	}
	gate, err := gateway.New(gateway.Config{
		Types: []gateway.Type{{Region: accounts, Ask: true, MediaType: "application/json"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(gate) // an http.Server of yours
	defer server.Close()
	for _, message := range []string{"5", "37", "no number"} {
		answer, err := http.Post(server.URL+"/v1/ask/account/anna", "application/json", strings.NewReader(message))
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, strings.TrimSpace(string(body)))
	}
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// 200 5
	// 200 42
	// 400 {"error":"bad-payload","text":"the message cannot be read","may_have_run":false}
}
