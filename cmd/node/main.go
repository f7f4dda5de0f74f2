// Command node is kith, the node binary, by the name that it had: go install of it goes on working, and says so.
package main

import (
	"os"

	"github.com/kith-io/kith/internal/command"
)

func main() { os.Exit(command.Main(command.OldName)) }
