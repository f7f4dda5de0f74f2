// Tests of the accounts: the rules alone, and one node with all that is around them.

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/store"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// TestApply: the rules, without a node. What is refused changes nothing.
func TestApply(t *testing.T) {
	for _, c := range []struct {
		has  int64
		o    order
		then int64
		err  string
	}{
		{7, order{}, 7, ""},
		{7, order{Deposit: 5}, 12, ""},
		{7, order{Transfer: 7, To: "ben"}, 0, ""},
		{7, order{Transfer: 8, To: "ben"}, 7, "not enough"},
		{7, order{Transfer: 5}, 7, "another account"},
		{7, order{Transfer: 5, To: "anna"}, 7, "another account"},
		{7, order{Deposit: 5, To: "ben"}, 7, "another account"},
		{7, order{Deposit: 5, Transfer: 5, To: "ben"}, 7, "another account"},
		{7, order{To: "ben"}, 7, "another account"},
		{7, order{Deposit: -5}, 7, "an amount"},
		{7, order{Transfer: -5, To: "ben"}, 7, "an amount"},
		{7, order{Deposit: most + 1}, 7, "an amount"},
		{most, order{Transfer: most + 1, To: "ben"}, most, "an amount"},
		{most - 5, order{Deposit: 5}, most, ""},
		{most - 5, order{Deposit: 6}, most - 5, "full"},
	} {
		a := account{Balance: c.has}
		if err := a.apply("anna", &c.o); c.err != "" {
			require.ErrorContains(t, err, c.err, "%+v", c)
		} else {
			require.NoError(t, err, "%+v", c)
		}
		require.Equal(t, c.then, a.Balance, "%+v", c)
	}
}

// door serves the accounts of a node over HTTP.
func door(t *testing.T, n *kith.Node, db store.Store) string {
	t.Helper()
	h, err := bank(n, db)
	require.NoError(t, err)
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String()
}

// TestOverHTTP: what a client sees: a repeated order has its effect once, a refused one none, and money that cannot
// arrive comes back.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	n, err := kith.Start(t.Context(), kith.Config{Name: "bank"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	doors := []string{door(t, n, store.Memory())}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	number := 0
	balance := func(id string) int64 {
		number++
		a, err := ask(ctx, doors, fmt.Sprint("read ", number), id, order{})
		require.NoError(t, err)
		return a.Balance
	}
	for range 3 {
		a, err := ask(ctx, doors, "salary", "anna", order{Deposit: 100})
		require.NoError(t, err)
		require.Equal(t, account{100}, a)
	}
	for range 3 {
		a, err := ask(ctx, doors, "rent", "anna", order{Transfer: 30, To: "ben"})
		require.NoError(t, err)
		require.Equal(t, account{70}, a)
	}
	for balance("ben") < 30 {
	}
	_, err = ask(ctx, doors, "car", "anna", order{Transfer: 71, To: "ben"})
	require.ErrorContains(t, err, "there is not enough")
	_, err = ask(ctx, doors, "rent", "anna", order{Transfer: 31, To: "ben"})
	require.ErrorContains(t, err, "the key was used for another message")

	_, err = ask(ctx, doors, "luck", "cara", order{Deposit: most})
	require.NoError(t, err)
	a, err := ask(ctx, doors, "gift", "anna", order{Transfer: 10, To: "cara"})
	require.NoError(t, err)
	require.Equal(t, account{60}, a)
	for balance("anna") < 70 {
	}
	require.Equal(t, []int64{70, 30, most}, []int64{balance("anna"), balance("ben"), balance("cara")})
}
