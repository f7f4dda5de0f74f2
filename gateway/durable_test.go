// Test of the gateway before durable entities: asks with one key have their effect once.

package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/gateway"
	"github.com/kith-io/kith/store"
)

// TestDurable: an ask that is repeated with its key has its effect once and gets the same reply; another message with
// that key is a conflict; asks without a key and tells have theirs each time.
func TestDurable(t *testing.T) {
	node, err := kith.Start(t.Context(), kith.Config{Name: "durable gateway"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	bank, err := durable.Register(node, durable.Type[int, int, int]{Name: "account", Store: store.Memory(),
		Handle: func(tx *durable.Tx[int], deposit *int) (int, error) {
			*tx.State += *deposit
			return *tx.State, nil
		}})
	require.NoError(t, err)
	number := kith.JSON[int]()
	gate, err := gateway.New(gateway.Config{Types: []gateway.Type{{Region: bank.Region(), Ask: true, Tell: true,
		AskBy: gateway.AskOf(bank.Ask, number, number), Once: gateway.OnceOf(bank.AskOnce, number, number),
		Errors: func(err error) *kith.Error {
			if errors.Is(err, durable.ErrKeyUsed) {
				return kith.NewError("key-used", kith.KindConflict, "the key was used for another message")
			}
			return nil
		}}}})
	require.NoError(t, err)
	s := httptest.NewServer(gate)
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	post := func(verb, body, key string) (int, string) {
		q, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
			s.URL+"/v1/"+verb+"/account/anna?timeout=1m", strings.NewReader(body))
		require.NoError(t, err)
		if key != "" {
			q.Header.Set(gateway.KeyHeader, key)
		}
		a, err := http.DefaultClient.Do(q)
		require.NoError(t, err)
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		return a.StatusCode, string(b)
	}
	for range 3 {
		status, body := post("ask", "5", "payment 4711")
		require.Equal(t, []any{200, "5"}, []any{status, body})
	}
	status, body := post("ask", "6", "payment 4711")
	require.Equal(t, 409, status)
	require.Contains(t, body, "key-used")
	status, body = post("ask", "2", "")
	require.Equal(t, []any{200, "7"}, []any{status, body})
	status, _ = post("tell", "3", "")
	require.Equal(t, 202, status)
	status, body = post("ask", "0", "")
	require.Equal(t, []any{200, "10"}, []any{status, body})
	status, _ = post("ask", "no number", "")
	require.Equal(t, 400, status)
}
