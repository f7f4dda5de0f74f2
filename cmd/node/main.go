// Command node is the node binary, as cmd/kith is.
package main

import (
	"os"

	"github.com/kith-io/kith/internal/cli/command"
)

func main() { os.Exit(command.Main("node")) }
