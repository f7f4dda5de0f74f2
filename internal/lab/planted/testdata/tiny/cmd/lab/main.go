// Command kith is the smallest thing with a storm: it checks addition for as many seeds as its flag says.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"example.com/tiny/lib"
)

type failure struct {
	Seed int `json:"seed"`
}

func main() {
	flags := flag.NewFlagSet("storm", flag.ExitOnError)
	seeds := flags.Int("seeds", 1, "")
	first := flags.Int("first", 1, "")
	if len(os.Args) < 2 || os.Args[1] != "storm" || flags.Parse(os.Args[2:]) != nil {
		os.Exit(3)
	}
	var failures []failure
	for seed := *first; seed < *first+*seeds; seed++ {
		if lib.Add(seed, 5) != seed+5 {
			failures = append(failures, failure{seed})
		}
	}
	line, _ := json.Marshal(map[string]any{"seeds": *seeds, "violations": len(failures), "failures": failures})
	fmt.Printf("storm %s\n", line)
	if len(failures) > 0 {
		os.Exit(1)
	}
}
