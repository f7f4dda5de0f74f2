// kith config: the settings that kith run would have, and where each of them came from.

package command

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/settings"
)

// configCmd is the flags of kith config: all of kith run, and how to print.
type configCmd struct {
	runCmd

	Check string `placeholder:"FILE" file:"-" help:"Only look whether this file is good: exit code 2 when it is not."`
	JSON  bool   `name:"json" file:"-" help:"Print as one JSON object."`
}

// Run prints the settings in force; what is wrong with them the parser has said.
func (c *configCmd) Run(e *env) error {
	all := c.InForce()
	if c.Check != "" {
		given := 0
		for _, s := range all {
			if s.From == settings.FromFile {
				given++
			}
		}
		_, err := fmt.Fprintf(e.stdout, "%s is good: settings in force from it: %d\n", c.Check, given)
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(map[string][]settings.Setting{"settings": all})
	}
	rows := [][]string{{"SETTING", "VALUE", "FROM"}}
	for _, s := range all {
		from := s.At
		if s.From == settings.FromDefault {
			from = s.From
		}
		value := fmt.Sprint(s.Value)
		if list, is := s.Value.([]string); is {
			value = strings.Join(list, ",")
		}
		rows = append(rows, []string{s.Name, value, from})
	}
	cli.Table(e.stdout, rows...)
	return nil
}
