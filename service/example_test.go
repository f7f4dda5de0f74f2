// The program of docs/service.md, compiled.

package service_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/service"
)

var cart kith.EntityType

func front(*kith.Region) http.Handler { return nil }

// page:begin
func main() {
	service.Main(service.Config{
		Node:  kith.Config{Name: "shop", Listen: "127.0.0.1:7355", Seeds: os.Args[1:], JoinTimeout: 40 * time.Second},
		Admin: &admin.Config{}, AdminToken: "token.txt", // probes, metrics, dashboard on 127.0.0.1:7626
	}, serve)
}

func serve(ctx context.Context, node *kith.Node) error {
	carts, err := node.Register(cart)
	if err != nil {
		return err
	}
	return service.Serve(ctx, &http.Server{Addr: "127.0.0.1:8080", Handler: front(carts)})
}

// page:end

// TestExampleCompiles: the page shows what stands above, to the letter (CARD-5).
func TestExampleCompiles(t *testing.T) {
	own, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/service.md")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(own), "// page:begin\n")
	require.True(t, found)
	shown, _, found = strings.Cut(shown, "\n// page:end")
	require.True(t, found)
	require.Contains(t, string(page), "```go\n"+shown+"```")
	_ = main
}
