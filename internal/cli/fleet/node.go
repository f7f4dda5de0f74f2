// Node: what every node process of a fleet does alike, whatever it is called for beside.

package fleet

import (
	"context"
	"errors"
	"io"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// Node is the node of a process that answers calls; nil until one of them has started it.
type Node struct{ *kith.Node }

// Serve answers calls until the parent has closed in, or has gone; then the node is closed, however it stands.
func (n *Node) Serve(in io.Reader, out io.Writer, ops cli.Ops) error {
	err := cli.Serve(in, out, ops)
	if n.Node != nil {
		_ = n.Close()
	}
	return err
}

// Depart is a call that has the node leave; without one it does nothing. It returns when the node is removed and has
// ended. What the end gave up is no error: ledgers and Undelivered tell of it.
func (n *Node) Depart(ctx context.Context, _ cli.None) (cli.None, error) {
	if n.Node == nil {
		return cli.None{}, nil
	}
	err := n.Leave(ctx)
	if errors.Is(err, kith.ErrAbandoned) {
		err = nil
	}
	return cli.None{}, err
}
