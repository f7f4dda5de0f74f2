// Package command is the node binary: it runs one kith node, or a local cluster of real processes, or asks a
// running node. cmd/kith and cmd/node are the program.
package command

import (
	"os"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/operate"
	"github.com/kith-io/kith/internal/cli/settings"
	"github.com/kith-io/kith/lease"
)

// commands is the command line. The field names are the names of the flags.
type commands struct {
	Run     runCmd     `cmd:"" group:"run" help:"${run_help}"`
	Config  configCmd  `cmd:"" group:"run" help:"${configcmd_help}"`
	Version versionCmd `cmd:"" group:"run" help:"Print version, commit, and the wire versions that it speaks."`

	Completion env.Completion `cmd:"" group:"run" help:"Print how bash, zsh or fish complete commands and flags."`
	Help       env.Help       `cmd:"" group:"run" help:"Say what a command and its flags do, as --help does."`

	operate.Verbs `embed:"" group:"operate"`

	Replay replayCmd `cmd:"" group:"operate" help:"Replay a flight record; print what its node saw and decided."`
	Cert   certCmd   `cmd:"" group:"certificates" help:"Make a certificate authority and certificates of nodes, revoke or show them."`
	Dev    devCmd    `cmd:"" group:"try" help:"Run a local cluster of real processes with demo entities, and count every message."`

	Children children `embed:""`

	env.Bounds
}

// children are the processes that commands start.
type children struct {
	Child childCmd `cmd:"" hidden:"" help:"Be a node process of dev: answer calls on stdin."`
}

var groups = []kong.Group{{Key: "run", Title: "Run:"}, {Key: "operate", Title: "Operate a running node:"},
	{Key: "certificates", Title: "Certificates:"}, {Key: "try", Title: "Try:"}}

// Name is the name of the program.
const Name = "kith"

// Main runs the program with the arguments and streams of its process, under the name that it was built by, with kinds
// of leases beside those of package lease. It returns the exit code.
func Main(program string, kinds ...lease.Kind) int {
	return executeWith(kinds, os.Args[1:], env.Of(program))
}

// parserOf returns the parser of the whole command line.
func parserOf(c *commands, program string, more ...kong.Option) (*kong.Kong, error) {
	more = append(more, kong.Name(program), kong.Description(about()), kong.ExplicitGroups(groups), texts,
		settings.Envs("run", "config"), kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true}))
	return kong.New(c, more...)
}

// execute parses args, runs the command and returns the exit code.
func execute(args []string, e *env.Env) int { return executeWith(nil, args, e) }

// executeWith is execute with kinds of leases that this build has beside those of package lease.
func executeWith(kinds []lease.Kind, args []string, e *env.Env) int {
	parser := func(more ...kong.Option) (*kong.Kong, error) {
		c := &commands{}
		c.Run.kinds, c.Config.kinds = kinds, kinds
		return parserOf(c, e.Program, more...)
	}
	console := func() []any { return []any{&operate.Console{Out: e.Stdout, Clear: e.Clear}} }
	return env.Execute(args, e, &children{}, parser, console)
}
