// Command kith is the node binary: it runs a node of a kith cluster, and asks or tells a running one.

//go:build unix

package main

import (
	"os"

	"github.com/kith-io/kith/internal/cli/command"
)

func main() { os.Exit(command.Main(command.Name)) }
