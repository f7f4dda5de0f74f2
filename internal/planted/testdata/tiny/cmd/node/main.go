// Command node is the smallest thing with a storm: it checks addition for as many seeds as it is told.
package main

import (
	"flag"
	"fmt"
	"os"

	"example.com/tiny/lib"
)

func main() {
	flags := flag.NewFlagSet("storm", flag.ExitOnError)
	seeds := flags.Int("seeds", 1, "")
	first := flags.Int("first", 1, "")
	if len(os.Args) < 2 || os.Args[1] != "storm" || flags.Parse(os.Args[2:]) != nil {
		os.Exit(3)
	}
	violations := 0
	for seed := *first; seed < *first+*seeds; seed++ {
		if lib.Add(seed, 5) != seed+5 {
			fmt.Fprintf(os.Stderr, "violation: seed %d\n", seed)
			violations++
		}
	}
	fmt.Printf("storm {\"seeds\": %d, \"violations\": %d}\n", *seeds, violations)
	if violations > 0 {
		os.Exit(1)
	}
}
