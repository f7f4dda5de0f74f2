// kith config: the settings that kith run would have, and where each of them came from.

package command

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/settings"
)

// configCmd is the flags of kith config: all of kith run, and how to print.
type configCmd struct {
	runCmd

	Check string `placeholder:"FILE" file:"-" help:"${check_help}"`
	JSON  bool   `name:"json" file:"-" help:"Print as one JSON object."`
}

// Run prints the settings in force; what is wrong with them the parser has said.
func (c *configCmd) Run(e *env.Env) error {
	all := c.InForce()
	for _, text := range c.Strays() {
		fmt.Fprintf(e.Stderr, "kith: check the environment: %s\n", text)
	}
	if c.Check != "" {
		if err := c.filesFaults(); err != nil {
			return &env.Exit{Code: env.ExitUsage, Err: err}
		}
		given := 0
		for _, s := range all {
			if s.From == settings.FromFile {
				given++
			}
		}
		_, err := fmt.Fprintf(e.Stdout, "%s is good: settings in force from it: %d\n", c.Check, given)
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.Stdout).Encode(map[string][]settings.Setting{"settings": all})
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
	cli.Table(e.Stdout, rows...)
	return nil
}

// filesFaults returns what kith run would refuse of the files that the settings name, each fault where its setting
// stands, or nil.
func (c *configCmd) filesFaults() error {
	err := c.config(slog.New(slog.DiscardHandler)).CheckFiles()
	return c.Explain(cli.About(cli.About(err, kith.ErrBadConfig, "", "--tls-cert"), kith.ErrRecord, "", "--data-dir"))
}
