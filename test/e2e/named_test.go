// Errors with an identity, over real sockets.

package e2e_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

var errOutOfStock = kith.NewError("out-of-stock", kith.KindConflict, "nothing is left")

// A handler's error keeps its code, kind and text on the way to an asker on another node, and through a handler there
// that returns it; and so does the error of a handler's own ask, which says that nothing was handled (SHD-5, ACC-2).
func TestErrorsWithAnIdentity(t *testing.T) {
	var shops []*kith.Region
	cluster(t, 2, func(i int, cfg *kith.Config) { cfg.Roles = []string{fmt.Sprint("node", i)} },
		func(i int, node *kith.Node) {
			shops = append(shops, register(t, node, kith.EntityType{Name: "shop", Role: "node0"}, actor{
				receive: func(c *kith.Context, p []byte) error {
					if string(p) == "later" {
						token := c.Detach()
						return token.Fail(errOutOfStock)
					}
					return fmt.Errorf("%s: %w", p, errOutOfStock)
				}}))
			front := register(t, node, kith.EntityType{Name: "front", Role: "node1"}, actor{
				receive: func(c *kith.Context, p []byte) error {
					_, err := c.Ask(patience, string(p), "a", []byte("tea"))
					return err
				}})
			shops = append(shops, front)
		})
	for i, r := range shops {
		ask := "tea"
		if i%2 == 1 {
			ask = "shop"
		}
		_, err := r.Ask(within(t), "a", []byte(ask))
		require.ErrorIs(t, err, errOutOfStock)
		require.ErrorIs(t, err, kith.ErrHandler)
		require.True(t, kith.MayHaveRun(err))
		var named *kith.Error
		require.True(t, errors.As(err, &named))
		require.Equal(t, kith.KindConflict, named.Kind)
		require.Contains(t, named.Text, "tea: nothing is left")
	}
	for _, front := range []*kith.Region{shops[1], shops[3]} {
		_, err := front.Ask(within(t), "a", []byte("nobody has this type"))
		require.ErrorIs(t, err, kith.ErrHandler)
		require.ErrorIs(t, err, kith.ErrNotRegistered)
		require.False(t, kith.MayHaveRun(err))
	}
	for _, shop := range []*kith.Region{shops[0], shops[2]} {
		_, err := shop.Ask(within(t), "a", []byte("later"))
		require.ErrorIs(t, err, errOutOfStock)
	}
}
