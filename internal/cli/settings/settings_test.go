// Tests of settings: what goes before what, and every fault of a file at once with its line.

package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// server is a command with settings of each kind.
type server struct {
	File

	Name    string        `default:"n"`
	Peers   []string      ``
	Wait    time.Duration `default:"1s"`
	Many    int           `default:"3"`
	Share   float64       `default:"0.5"`
	Open    bool          ``
	Level   string        `enum:"low,high" default:"low"`
	Key     string        `secret:""`
	TLSCert string        `name:"tls-cert"`
	Plain   bool          `file:"-"`

	faults error
}

func (s *server) Validate() error {
	if s.Many < 0 {
		s.faults = errors.Join(s.faults, errors.New("bad: Many is negative"), errors.New("--wait, too"))
	}
	if s.TLSCert == "bad" {
		s.faults = errors.Join(s.faults, errors.New("TLS: CertFile is bad"))
	}
	return s.Explain(s.faults)
}

// parsed runs the parser over a file and a command line.
func parsed(t *testing.T, file string, args ...string) (*server, error) {
	t.Helper()
	var c struct {
		Run   server `cmd:""`
		Other struct {
			Name string
		} `cmd:""`
	}
	k, err := kong.New(&c, kong.Vars{"config_help": "file"}, Envs("run"))
	require.NoError(t, err)
	if file != "" {
		args = append(args, "--config="+wrote(t, file))
	}
	_, err = k.Parse(append([]string{"run"}, args...))
	return &c.Run, err
}

// wrote returns the path of a file of this text, below the working directory: so that messages are short.
func wrote(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("f.yaml", []byte(text), 0o600))
	return "f.yaml"
}

// A flag goes before its variable, that before the file, that before the default; each value says where it came from.
func TestPrecedence(t *testing.T) {
	t.Setenv("KITH_NAME", "env")
	t.Setenv("KITH_MANY", "7")
	t.Setenv("KITH_PLAIN", "true")
	file := "name: file\nmany: 8\n# why\nwait: 1m30s\npeers:\n  - a,b\n  - c\nopen: true\nlevel: high\nshare: 0.25\n"
	s, err := parsed(t, file, "--name=flag")
	require.NoError(t, err)
	require.Equal(t, []any{"flag", 7, 90 * time.Second, []string{"a,b", "c"}, true, "high", 0.25, false},
		[]any{s.Name, s.Many, s.Wait, s.Peers, s.Open, s.Level, s.Share, s.Plain})
	all := map[string]Setting{}
	for _, in := range s.InForce() {
		all[in.Name] = in
	}
	require.Equal(t, map[string]Setting{
		"name":     {"name", "flag", "flag", "--name"},
		"many":     {"many", 7, "env", "KITH_MANY"},
		"wait":     {"wait", "1m30s", "file", "f.yaml:4"},
		"peers":    {"peers", []string{"a,b", "c"}, "file", "f.yaml:5"},
		"open":     {"open", true, "file", "f.yaml:8"},
		"level":    {"level", "high", "file", "f.yaml:9"},
		"share":    {"share", 0.25, "file", "f.yaml:10"},
		"key":      {"key", "", "default", ""},
		"tls-cert": {"tls-cert", "", "default", ""},
	}, all)
}

// The file may be named by the environment; one value may stand for a list; an empty file sets nothing.
func TestFileByEnvironment(t *testing.T) {
	t.Setenv("KITH_CONFIG", wrote(t, "peers: a\n"))
	s, err := parsed(t, "")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, s.Peers)
	for _, empty := range []string{"", "# nothing\n", "---\n", "{}\n"} {
		_, err = parsed(t, " \n"+empty)
		require.NoError(t, err, empty)
	}
}

// Secrets are not shown, whatever holds them.
func TestSecrets(t *testing.T) {
	s, err := parsed(t, "key: hunter2\npeers: ['https://u:hunter2@h:1/x', 'plain:1']\nname: http://u:hunter2@h\n")
	require.NoError(t, err)
	require.Equal(t, "hunter2", s.Key)
	require.NotContains(t, fmt.Sprint(s.InForce()), "hunter2")
	require.Contains(t, fmt.Sprint(s.InForce()), "plain:1")
}

// All faults of a file come at once, each with its line, and those of its values with them.
func TestFaults(t *testing.T) {
	s, err := parsed(t, strings.Join([]string{"nmae: x", "max_many: 1", "Many: 1", "wait: soon", "share: [1]",
		"open: 'yes'", "level: middle", "name:", "peers: [a, {b: c}]", "tls-cert: bad", "key: {a: b}", "open: true",
		"plain: true",
		"many: -1", "? [x]\n: y", "config: x"}, "\n"))
	require.Equal(t, "n", s.Name, "nothing wrong has been taken")
	got := strings.Split(err.Error(), "\n")
	for i, want := range []string{
		"f.yaml:1: nmae is no setting", "f.yaml:2: max_many is no setting", "f.yaml:3: Many is no setting; many is",
		"f.yaml:4: wait: ", "f.yaml:5: share: one value is wanted, not a list", `f.yaml:6: open: true or false is wanted, ` +
			`not "yes"`, `f.yaml:7: level: "middle" is none of low, high`, "f.yaml:8: name: it has no value",
		"f.yaml:9: peers: number 2 of the list is no single value", "f.yaml:11: key: a value is wanted, not settings",
		"f.yaml:12: open is set twice, first in line 6", "f.yaml:13: plain is no setting",
		"f.yaml:15: the name of a setting is wanted", "f.yaml:17: config is no setting",
		"f.yaml:14: bad: Many is negative", "--wait, too", "f.yaml:10: TLS: CertFile is bad",
	} {
		require.Contains(t, got[i], want, "%s", err)
	}
	require.Len(t, got, 17)
}

// What is no file of settings at all is said in one line.
func TestNoFile(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n\tb: 1\n":                          "f.yaml:2: no YAML: ",
		"- a\n":                                 "f.yaml:1: settings are wanted",
		"hello":                                 "f.yaml:1: settings are wanted",
		"name: a\n---\nb: ":                     "f.yaml:2: a second document",
		"name: 'a":                              "no YAML: ",
		"name: &x a\nkey: *x\n":                 "f.yaml:2: key: an alias of YAML",
		"name: " + strings.Repeat("a", maxFile): "f.yaml: too large: more than 1048576 bytes",
	} {
		_, err := parsed(t, text)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := parsed(t, "", "--config="+filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A variable of a command without settings is none.
func TestEnvsAreOfTheCommandsNamed(t *testing.T) {
	t.Setenv("KITH_NAME", "env")
	t.Setenv("KITH_MANY", "-1")
	var c struct {
		Run   server                `cmd:""`
		Other struct{ Name string } `cmd:""`
	}
	k, err := kong.New(&c, kong.Vars{"config_help": "file"}, Envs("run"))
	require.NoError(t, err)
	_, err = k.Parse([]string{"other"})
	require.NoError(t, err)
	require.Empty(t, c.Other.Name)
	_, err = k.Parse([]string{"run"})
	require.ErrorContains(t, err, "KITH_MANY: bad: Many is negative")
}

// TestStrays: a variable that begins as those of settings do and is none is named, and one that is set and says
// nothing, but not what Kubernetes sets for a service of that name (OPS-3).
func TestStrays(t *testing.T) {
	for name, value := range map[string]string{"KITH_NAMES": "typo", "KITH_NAME": "", "KITH_PORT": "tcp://10.0.0.1:7355",
		"KITH_SERVICE_HOST": "10.0.0.1", "KITH_SERVICE_PORT_MEMBERS": "7355", "KITH_PORT_7355_TCP_ADDR": "10.0.0.1",
		"KITH_MANY": "7"} {
		t.Setenv(name, value)
	}
	s, err := parsed(t, "")
	require.NoError(t, err)
	require.Equal(t, []string{"KITH_NAME is empty", "KITH_NAMES is no setting"}, s.Strays())
}
